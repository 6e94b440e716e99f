"""Whether a fault would leave a core dump: where the variables must be set, and what spoils the dumps."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_core_dump import core_dump
from tests.probes.asking import word
from tests.probes.scripts import RAY_START, ask_script, script

ON = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"
FILE = "/shared/cores/cuda_coredump_%h.%p.%t"


def env(**values: str) -> str:
    """Return rows of the runtime env."""
    return "".join(f',\n    \\"{name}\\": \\"{value}\\"' for name, value in values.items())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(script(env=env(**{ON: "1", "CUDA_COREDUMP_FILE": FILE})), "ok:written", id="runtime env"),
        pytest.param(script(env=env(CUDA_ENABLE_LIGHTWEIGHT_COREDUMP="1")), "ok:written", id="lightweight"),
        pytest.param(script(exports=f"export {ON}=1"), "ok:written", id="before ray start"),
        pytest.param(script(before=f"{RAY_START}\nexport {ON}=1"), "warning:not-passed", id="after ray start"),
        pytest.param(script(env=env(**{ON: "0"})), "ok:off", id="zero"),
        pytest.param(script(exports=f"# export {ON}=1"), "ok:off", id="a comment"),
        pytest.param(script(), "ok:off", id="not set"),
        pytest.param(script(exports=f'if [ -n "$D" ]; then export {ON}=1; fi'), "unknown", id="a condition"),
        pytest.param("echo\n", "unknown", id="no command"),
    ],
)
def test_where_it_is_set(tmp_path: Path, text: str, expected: str) -> None:
    """Only what reaches the workers leaves a dump."""
    assert word(ask_script(core_dump, tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"CUDA_COREDUMP_FILE": "/shared/core_%h"}, "lacks %p"),
        ({"CUDA_COREDUMP_FILE": "/tmp/core_%h.%p"}, "own disk"),
        ({"CUDA_COREDUMP_GENERATION_FLAGS": "skip_global_memory,skip_abort"}, "skip_abort"),
    ],
)
def test_what_spoils_the_dumps(tmp_path: Path, values: dict[str, str], said: str) -> None:
    """One file for all ranks, a disk that nobody else sees, and a process that runs on are named."""
    finding = ask_script(core_dump, tmp_path, script(env=env(**{ON: "1", **values})))
    assert word(finding) == "warning:flawed"
    assert said in finding.summary.en

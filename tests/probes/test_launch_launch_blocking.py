"""CUDA_LAUNCH_BLOCKING=1 and how far it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_launch_blocking import launch_blocking
from tests.probes.asking import word
from tests.probes.scripts import RAY_START, ask_script, cited, script

BLOCKING = "export CUDA_LAUNCH_BLOCKING=1"
PASSED = ',\n    \\"CUDA_LAUNCH_BLOCKING\\": \\"1\\"'


@pytest.mark.parametrize(
    ("exports", "env", "before", "flags", "expected"),
    [
        ("", PASSED, RAY_START, (), "ok:on"),
        (BLOCKING, "", RAY_START, (), "ok:on"),
        ("", "", RAY_START + "\n" + BLOCKING, (), "warning:not-passed"),
        (BLOCKING, "", "", (), "warning:not-passed"),
        ("", "", RAY_START, ('--train-env-vars \'{"CUDA_LAUNCH_BLOCKING":"1"}\'',), "ok:train-only"),
        ("", "", RAY_START, (), "ok:off"),
        ("export CUDA_LAUNCH_BLOCKING=0", "", RAY_START, (), "ok:off"),
        ("export CUDA_LAUNCH_BLOCKING=10", "", RAY_START, (), "ok:off"),
        ('echo "CUDA_LAUNCH_BLOCKING=1"', "", RAY_START, (), "ok:off"),
        (f'if [ -n "$DEBUG" ]; then {BLOCKING}; fi', "", RAY_START, (), "unknown"),
        ("", PASSED.replace('1\\"', '${CUDA_LAUNCH_BLOCKING:-1}\\"'), RAY_START, (), "unknown"),
    ],
)
def test_launch_blocking_must_reach_the_workers(
    tmp_path: Path, exports: str, env: str, before: str, flags: tuple[str, ...], expected: str
) -> None:
    """The runtime env and an export before `ray start` reach them; a later export does not."""
    finding = ask_script(launch_blocking, tmp_path, script(*flags, exports=exports, env=env, before=before))
    assert word(finding) == expected


def test_the_runtime_env_is_cited_at_its_line(tmp_path: Path) -> None:
    """The citation is the line of the variable inside the JSON, not of the command."""
    finding = ask_script(launch_blocking, tmp_path, script(env=PASSED))
    assert cited(finding) == ['\\"CUDA_LAUNCH_BLOCKING\\": \\"1\\"']

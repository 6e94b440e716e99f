"""Whether SGLang releases its memory, by slime's own rules for the offload flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_offload import offload
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--colocate",), "ok:released"),
        (("--colocate", "--no-offload-rollout"), "ok:kept"),
        (("--colocate", "--debug-rollout-only"), "ok:kept"),
        (("--offload",), "ok:released"),
        (("--rollout-num-gpus 8",), "ok:kept"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """Colocation, --offload and their exceptions decide."""
    assert word(ask_script(offload, tmp_path, script(*flags))) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"colocate": True, "offload_rollout": False}, "ok:kept"),
        ({"colocate": True, "offload_rollout": True}, "ok:released"),
    ],
)
def test_the_table_tells(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """The arguments table alone answers as well."""
    assert word(ask(offload, log=write(tmp_path, "job.log", table(**rows)))) == expected

"""DeepEP in Megatron and in SGLang."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_deepep import deepep
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write

DEEP = ("--moe-token-dispatcher-type flex", "--moe-enable-deepep")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "ok:off"),
        (DEEP, "ok:train"),
        (("--moe-token-dispatcher-type flex", "--moe-flex-dispatcher-backend deepep"), "ok:train"),
        (("--sglang-moe-a2a-backend deepep",), "ok:rollout"),
        (("--sglang-enable-deepep-moe",), "ok:rollout"),
        ((*DEEP, "--sglang-moe-a2a-backend deepep"), "ok:both"),
        (("--sglang-moe-a2a-backend none",), "ok:off"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """Each side has flags of its own, old and new."""
    assert word(ask_script(deepep, tmp_path, script(*flags))) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"moe_enable_deepep": True, "sglang_moe_a2a_backend": "none"}, "ok:train"),
    ],
)
def test_the_table_tells(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """The arguments table alone answers as well."""
    assert word(ask(deepep, log=write(tmp_path, "job.log", table(**rows)))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(deepep, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"

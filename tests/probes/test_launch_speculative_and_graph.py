"""Speculative decoding and CUDA graphs of SGLang."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_speculative_and_graph import speculative_and_graph
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "ok:graph-only"),
        (("--sglang-speculative-algorithm EAGLE",), "ok:both"),
        (("--sglang-speculative-algorithm EAGLE", "--sglang-disable-cuda-graph"), "ok:speculative-only"),
        (("--sglang-cuda-graph-backend-decode disabled",), "ok:neither"),
        (("--debug-train-only",), "not_applicable"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """Graphs are on unless disabled, in the old and the new form of the flag."""
    assert word(ask_script(speculative_and_graph, tmp_path, script(*flags))) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"sglang_speculative_algorithm": "EAGLE", "sglang_disable_cuda_graph": True}, "ok:speculative-only"),
    ],
)
def test_the_table_tells(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """The arguments table alone answers as well."""
    assert word(ask(speculative_and_graph, log=write(tmp_path, "job.log", table(**rows)))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(speculative_and_graph, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"

"""A broken file of inductor's cache, told from any other broken JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_inductor_cache import inductor_cache_in_log
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, word

HEAD = "Traceback (most recent call last):"
JSON = '  File "/usr/lib/python3.12/json/decoder.py", line 340, in decode'
LOADS = '  File "/usr/lib/python3.12/json/__init__.py", line 346, in loads'
RAISE = '    raise JSONDecodeError("Extra data", s, end)'
ERROR = "json.decoder.JSONDecodeError: Extra data: line 1 column 128 (char 127)"
INDUCTOR = '  File "/usr/lib/python3/dist-packages/torch/_inductor/runtime/autotune_cache.py", line 100, in _read'
DATASET = '  File "/root/slime/slime/utils/data.py", line 40, in read_file'


@pytest.mark.parametrize(
    ("lines", "proof"),
    [
        ((HEAD, DATASET, INDUCTOR, LOADS, JSON, RAISE, ERROR), [8, 4]),
        (("torch._inductor.exc.InductorError: JSONDecodeError: Extra data: line 1 column 5 (char 4)",), [2]),
        (
            (
                "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
                "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            ),
            [3, 2],
        ),
    ],
)
def test_an_error_out_of_inductor_is_reported(lines: tuple[str, ...], proof: list[int], tmp_path: Path) -> None:
    """The frame that called the decoder, or the exception that wraps it, ties the error to inductor and is cited."""
    finding = ask_text(inductor_cache_in_log, tmp_path, *lines)
    assert word(finding) == "problem:broken"
    assert [citation.line for citation in finding.citations] == proof


@pytest.mark.parametrize(
    "lines",
    [
        (HEAD, DATASET, LOADS, JSON, RAISE, ERROR),
        (HEAD, INDUCTOR, DATASET, LOADS, JSON, RAISE, ERROR),
        (RAISE,),
        (ERROR,),
    ],
)
def test_any_other_broken_json_is_none(lines: tuple[str, ...], tmp_path: Path) -> None:
    """A broken data file, an error without its traceback, and the decoder's own source prove nothing of inductor."""
    assert word(ask_text(inductor_cache_in_log, tmp_path, *lines)) == "ok:none"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A healthy log answers none."""
    assert word(ask(inductor_cache_in_log, DATA / f"{name}.log")) == "ok:none"

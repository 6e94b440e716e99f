"""Tests of what --check-weight-update-equal is said to have reported, for all versions of its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.weights_update_check import update_check
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word

ENGINE = "(SGLangEngine pid=952) [2026-08-21 10:00:00 TP0] "
COMPARE = f"{ENGINE}[WeightChecker] handle action=compare allow_quant_error=False"
EQUAL = f"{ENGINE}[check_tensors] equal tensors: ['model.embed_tokens.weight', 'model.norm.weight']"
ERROR = f"{ENGINE}check_weights see error: check tensor equality failed:"
ROW = (
    "(SGLangEngine pid=952) name=model.layers.{}.self_attn.qkv_proj.weight max_abs_err=0.9 mean_abs_err=0.3 "
    "num_exceed=9 expect=raw(shape=(64, 64) dtype=torch.bfloat16) actual=raw(shape=(64, 64) dtype=torch.bfloat16)"
)
BUFFER = (
    "(SGLangEngine pid=952) name=model.layers.0.self_attn.rotary_emb.cos_sin_cache max_abs_err=1.9 mean_abs_err=0.6"
)
DRIVER = "requests.exceptions.HTTPError: {} Client Error: Bad Request for url: http://192.0.2.2:15000/weights_checker"
NOTE = (
    'response.text=\'{"success":false,"message":"check tensor equality failed:'
    "\\\\nname=model.norm.weight max_abs_err=0.9\"}'"
)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((COMPARE, EQUAL), "ok:equal"),
        ((f"{ENGINE}[WeightChecker] handle action=compare", EQUAL), "ok:equal"),
        ((COMPARE, EQUAL, ERROR, ROW.format(4)), "problem:differs"),
        ((COMPARE, ERROR), "problem:differs"),
        ((DRIVER.format(400), NOTE), "problem:differs"),
        ((COMPARE, ERROR, BUFFER), "warning:equal"),
        ((DRIVER.format(404),), "warning:failed"),
        ((f"{ENGINE}check_weights see error: Unsupported action='compare'",), "warning:failed"),
        ((COMPARE,), "unknown"),
        ((f"{ENGINE}[check_tensors] equal tensors: []", COMPARE), "unknown"),
        (("  check_weight_update_equal ....................... True",), "unknown"),
        (("  check_weight_update_equal ....................... False",), "ok:not-run"),
        ((f"{ENGINE}[WeightChecker] checksum computed for 398 tensors in 1.204s",), "ok:not-run"),
    ],
)
def test_what_the_lines_come_to(tmp_path: Path, lines: tuple[str, ...], wanted: str) -> None:
    """Each form of the result has its answer; a check without a result is unknown, not passed."""
    assert word(ask_text(update_check, tmp_path, *lines)) == wanted


def test_the_tensors_that_differ_are_listed_once(tmp_path: Path) -> None:
    """Rows that the traceback repeats are one tensor; layers and the parts of fused parameters are named."""
    rows = [ROW.format(layer) for layer in (4, 5, 6)]
    traceback = [f"(SGLangEngine pid=952) {row.split(') ', 1)[1]}" for row in rows]
    finding = ask_text(update_check, tmp_path, COMPARE, EQUAL, ERROR, *rows, f"{STAMP}x", *traceback)
    assert "3 tensors" in finding.summary.en
    assert "layers 4-6" in finding.summary.en
    (table,) = finding.tables
    assert [row[:2] for row in table.rows] == [
        (f"model.layers.{layer}.self_attn.qkv_proj.weight", "q, k, v") for layer in (4, 5, 6)
    ]
    assert finding.measurements[0].value == 0.9


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_did_not_run_it(name: str) -> None:
    """A log of a whole job without the checker's lines says that it was not run."""
    assert word(ask(update_check, *sorted(DATA.glob(f"{name}*")))) in ("ok:not-run", "unknown")

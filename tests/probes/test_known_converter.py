"""What slime's converter refuses, and what SGLang only warns of."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_converter import converter_in_log
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, word

TRAINER = "(MegatronTrainRayActor pid=7) "
WARNS = "(SGLangEngine pid=9) [2026-08-21 10:00:00 TP0] Parameter model.layers.0.mlp.gate.x not found in params_dict"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((f"{TRAINER}ValueError: Unsupported model: gemma3config",), "problem:unsupported"),
        ((f"{TRAINER}ValueError: Unknown parameter name: module.module.decoder.layers.0.foo",), "problem:unsupported"),
        ((WARNS, f"{TRAINER}ValueError: Unsupported model: gemma3config"), "problem:unsupported"),
        ((WARNS, WARNS), "unknown"),
        ((f'{TRAINER}    raise ValueError(f"Unknown parameter name: {{name}}")',), "ok:clean"),
        ((f"{TRAINER}KeyError: 'Unsupported model: x'",), "ok:clean"),
    ],
)
def test_errors_are_proof_and_warnings_are_not(lines: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    """The converter's two errors are reported; names that SGLang does not hold are shown and stay open."""
    finding = ask_text(converter_in_log, tmp_path, *lines)
    assert word(finding) == expected
    if expected == "unknown":
        assert (finding.citations[0].line, finding.citations[0].count) == (2, 2)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_are_clean(name: str) -> None:
    """A healthy log answers clean."""
    assert word(ask(converter_in_log, DATA / f"{name}.log")) == "ok:clean"

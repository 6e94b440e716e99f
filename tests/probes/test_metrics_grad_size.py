"""What is unusual of a gradient norm, and what is proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_grad_size import grad_size
from tests.probes.asking import ask_text, step, word


@pytest.mark.parametrize(
    ("norms", "expected"),
    [
        ((35.0, 36.0, 34.0, 37.0), "warning:explainable"),
        ((0.5, 0.5), "ok:explainable"),
        ((2955012562.8, 2217390918.5), "problem:impossible"),
        ((15.0, 12.0), "unknown"),
    ],
)
def test_only_what_no_backward_gives_is_impossible(tmp_path: Path, norms: tuple[float, ...], expected: str) -> None:
    """Four steps at 35 are explainable; the norms of a public broken run are not."""
    lines = [step(number, pg_loss=0.0, grad_norm=norm) for number, norm in enumerate(norms)]
    assert word(ask_text(grad_size, tmp_path, *lines)) == expected

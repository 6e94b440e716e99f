"""Ordinary, large and jumping gradient norms."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.metrics_grad_norm import grad_norm
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, step, word


def _steps(*norms: float, **more: float) -> list[str]:
    return [step(number, pg_loss=0.0, grad_norm=norm, **more) for number, norm in enumerate(norms)]


@pytest.mark.parametrize("name", [*HEALTHY, "kl-nonzero", "nan", "garbled-after-update"])
def test_real_logs_have_small_norms(name: str) -> None:
    """Norms of about 0.8 are small; those that are NaN are another probe's."""
    assert word(ask(grad_norm, DATA / f"{name}.log")) == "ok:small"


@pytest.mark.parametrize(
    ("norms", "expected"),
    [
        pytest.param((2955012562.8, 2217390918.5), "problem:large", id="a public run"),
        pytest.param((15310134.6,), "problem:large", id="one step is enough for the first one"),
        pytest.param((35.0, 36.0, 34.0, 37.0), "warning:large", id="every step above a limit of ours"),
        pytest.param((350.0, 410.0, 390.0, 380.0), "warning:large", id="every step far above it"),
        pytest.param((2e7, 3e6, 2e7), "warning:large", id="beyond doubt in some of the first steps only"),
        pytest.param((0.8, 0.7, 250.0, 0.8), "warning:spike", id="a jump"),
        pytest.param((0.8, 0.9, 0.7, 0.8, 90.0, 95.0), "warning:spike", id="a jump that stays"),
        pytest.param((0.8, 2.0, 5.0, 9.0), "ok:small", id="growth within the usual"),
        pytest.param((0.01, 0.01, 0.9), "ok:small", id="a jump among small numbers"),
        pytest.param((15.0, 12.0, 9.0, 4.0), "unknown", id="unusual but no proof"),
    ],
)
def test_norms_are_judged_by_size_and_history(tmp_path: Path, norms: tuple[float, ...], expected: str) -> None:
    """Large from the start is a warning, a problem only beyond doubt; a jump is a warning, growth neither."""
    assert word(ask_text(grad_norm, tmp_path, *_steps(*norms))) == expected


def test_an_unusual_start_is_told_by_its_own_step(tmp_path: Path) -> None:
    """12 at step 1 is what is unusual; that the norm reaches 40 much later is no part of the first steps."""
    finding = ask_text(grad_norm, tmp_path, *_steps(5.0, 12.0, 9.0, *[11.0] * 10, 40.0))
    assert word(finding) == "unknown"
    assert "12 at step 1" in finding.summary.en
    assert "step 1" in finding.citations[0].excerpt


def test_a_large_norm_is_cited_at_its_first_step(tmp_path: Path) -> None:
    """The first step is quoted and the number of steps like it told."""
    finding = ask_text(grad_norm, tmp_path, *_steps(350.0, 410.0))
    assert (finding.citations[0].line, finding.citations[0].count) == (2, 2)
    assert finding.measurements[0].value == 350.0
    assert finding.measurements[0].source


def test_supervised_losses_start_higher(tmp_path: Path) -> None:
    """Without a policy loss a norm of 40 is ordinary, ten thousand is odd and a billion impossible."""
    assert word(ask_text(grad_norm, tmp_path, step(0, loss=2.0, grad_norm=40.0))) == "ok:small"
    assert word(ask_text(grad_norm, tmp_path, step(0, loss=2.0, grad_norm=1e4))) == "warning:large"
    assert word(ask_text(grad_norm, tmp_path, step(0, loss=2.0, grad_norm=1e9))) == "problem:large"


def test_the_critics_norm_is_not_judged(tmp_path: Path) -> None:
    """A critic's loss has another scale."""
    critic = step(0, **{"critic-grad_norm": 900.0}).replace("- step", "- critic-step")
    assert word(ask_text(grad_norm, tmp_path, critic, *_steps(0.5, 0.5))) == "ok:small"


def test_norms_that_are_no_numbers_are_unknown(tmp_path: Path) -> None:
    """Where every norm is NaN there is nothing to judge here."""
    assert word(ask_text(grad_norm, tmp_path, *_steps(float("nan"), float("inf")))) == "unknown"

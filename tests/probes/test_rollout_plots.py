"""Rollouts are drawn over their numbers, and only when they make a course."""

from __future__ import annotations

import pytest

from probes.rollout_plots import rollout_plots
from probes.samples import Verdicts, judge_dump
from tests.probes.test_samples import dump
from tests.probes.test_text_quality import GARBLED, HEALTHY


def verdicts(*responses: str, log_prob: float = -0.5, length: int = 10) -> Verdicts:
    """Judge a rollout of these responses."""
    fields = {"rollout_log_probs": [log_prob], "response_length": length}
    return judge_dump(dump(*({"index": n, "response": text, **fields} for n, text in enumerate(responses))))


def test_three_rollouts_are_drawn_with_the_first_bad_one_marked() -> None:
    """Shares, log-probs and lengths over the rollout number, in order of the number."""
    fine, bad = verdicts(HEALTHY["de"], HEALTHY["fr"]), verdicts(GARBLED["symbols"], HEALTHY["fr"], log_prob=-4.0)
    shares, log_probs, lengths = rollout_plots([(0, fine), (2, bad), (1, fine)], 2)
    assert [curve.name for curve in shares.curves] == ["garbled", "truncated"]
    assert shares.curves[0].points == ((0.0, 0.0), (1.0, 0.0), (2.0, 0.5))
    assert log_probs.curves[0].points == ((0.0, -0.5), (1.0, -0.5), (2.0, -4.0))
    assert lengths.curves[0].points[0] == (0.0, 10.0)
    assert {plot.unit for plot in (shares, log_probs, lengths)} == {"of the samples", "nat/token", "token"}
    assert all(plot.marks[0][0] == 2.0 for plot in (shares, log_probs, lengths))


@pytest.mark.parametrize("numbers", [[0, 1], [0, None, 2], [0, 1, 1]])
def test_what_makes_no_course_is_not_drawn(numbers: list[int | None]) -> None:
    """Two rollouts, one without a number, or one twice give no plot."""
    assert rollout_plots([(number, verdicts(HEALTHY["de"])) for number in numbers], None) == ()

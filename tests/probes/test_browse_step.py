"""The reward of a sample is a number that can be drawn, whatever a dump holds."""

from __future__ import annotations

from typing import Any

import pytest

from probes.browse_step import reward_of


@pytest.mark.parametrize(
    ("rollout", "train", "reward"),
    [
        ({"reward": 1}, {}, 1.0),
        ({"reward": {"score": 0.5}}, {}, 0.5),
        ({"reward": {"a": 1, "b": 2}}, {"raw_reward": 3}, 3.0),
        ({"reward": 10**400}, {}, None),
        ({"reward": -(10**400)}, {"raw_reward": 2}, 2.0),
        ({"reward": True}, {}, None),
    ],
)
def test_a_reward_is_a_number_that_a_float_holds(
    rollout: dict[str, Any], train: dict[str, Any], reward: float | None
) -> None:
    """A dict of rewards counts by its only number; an integer beyond every float is none and breaks no page."""
    assert reward_of(train, rollout) == reward

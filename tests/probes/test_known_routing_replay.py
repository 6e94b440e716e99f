"""What slime says when routing replay lacks the experts that it replays."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_routing_replay import routing_replay_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word

TRAINER = "(MegatronTrainRayActor pid=7) "
MANAGER = "(RolloutManager pid=3) "


MISSING = (
    "ValueError: rollout_routed_experts is required in rollout_data when use_rollout_routing_replay is set.",
    "KeyError: 'routed_experts'",
    "ValueError: Cannot append partial routed experts without existing routed experts (routed_experts_start_len=7).",
)
MISFIT = (
    "ValueError: SGLang routed_experts element count does not match sample tokens: got=1, expected=2 (tokens=3).",
    "ValueError: SGLang routed_experts_start_len must be non-negative, got -1.",
    "ValueError: Existing routed experts shorter than routed_experts_start_len: existing_rows=1.",
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [*((line, "problem:missing") for line in MISSING), *((line, "problem:misfit") for line in MISFIT)],
)
def test_each_refusal_is_reported(line: str, expected: str, tmp_path: Path) -> None:
    """Every error with which slime refuses the routed experts is told, with its line."""
    finding = ask_text(routing_replay_in_log, tmp_path, f"{TRAINER}{line}")
    assert word(finding) == expected
    assert finding.citations[0].line == 2


@pytest.mark.parametrize(
    "line",
    [
        f"{STAMP}arguments.py:1 -   use_rollout_routing_replay ..................... True",
        f'{TRAINER}    "rollout_routed_experts is required in rollout_data when use_rollout_routing_replay is"',
        f"{MANAGER}KeyError: 'routed_experts_len'",
        f"{STAMP}x.py:1 - Finish rollout: [\"KeyError: 'routed_experts'\"]",
    ],
)
def test_what_only_looks_like_it_is_none(line: str, tmp_path: Path) -> None:
    """The flag, quoted source, another key and the text of the model are no error."""
    assert word(ask_text(routing_replay_in_log, tmp_path, line)) == "ok:none"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A healthy log answers none."""
    assert word(ask(routing_replay_in_log, DATA / f"{name}.log")) == "ok:none"

"""Phases of a cycle folded from events: what is open, how long phases take, and what the order of the loop tells."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.phase_timeline import NAMES, PHASES, Timeline, rows, standing, timeline
from probes.readers.logfiles import LogFile
from probes.readers.timers import WAIT, Event, Process

FILE = LogFile("job.log", 1)
ACTOR, CRITIC = Process("MegatronTrainRayActor", 7), Process("MegatronTrainRayActor", 8)
MANAGER, ENGINE = Process("RolloutManager", 3), Process("SGLangEngine", 9)


def events(*words: str) -> list[Event]:
    """Return events, a second apart, of words such as "wake_up+", "wake_up-", "critic:train+" and "release"."""
    found = []
    for second, word in enumerate(words):
        name = word.rstrip("+-!")
        who = CRITIC if name.startswith("critic:") else ACTOR
        name = name.removeprefix("critic:")
        edge = {"+": "start", "-": "end"}.get(word[-1], "mark")
        kind = "timer"
        if name in ("release", "resume"):
            kind, who = "engine", ENGINE
        elif name == "generate":
            kind, who = "rollout", MANAGER
        elif edge == "mark":
            kind = "metric"
        elif name == "checkpoint":
            kind = "save"
        found.append(
            Event(kind, name, edge, who, float(second), None, FILE, second + 1, second, not word.endswith("!"))
        )
    return found


HEAD = (
    "generate+", "generate-", "release", "wake_up+", "wake_up-", "data_preprocess+", "data_preprocess-", "train_wait-",
    "train+", "ref_log_probs+", "ref_log_probs-", "rollout", "actor_train+", "step", "actor_train-", "train-",
    "train_wait+", "perf", "sleep+", "sleep-", "resume", "update_weights+", "update_weights-", "resume",
)  # fmt: skip
"""One cycle at HEAD (FACTS 10.4): the trainer sleeps inside train()."""
OLD = (
    "generate+", "generate-", "release", "train_wait-", "train+", "actor_train+", "actor_train-", "train-",
    "train_wait+", "checkpoint+", "checkpoint-", "sleep+", "sleep-", "resume", "update_weights+", "update_weights-",
    "resume",
)  # fmt: skip
"""v0.1.0 to v0.2.4: the driver puts the trainer to sleep after the save."""


def after(words: Sequence[str], *, past: Sequence[str] = ()) -> tuple[str | None, str | None]:
    """Return the open phase and, where none is open, what the order tells, after a past cycle and these words."""
    told = timeline(events(*past, *words))
    inner = told.innermost()
    return (inner[0].phase if inner else None, standing(told))


def upto(words: Sequence[str], last: str, nth: int = 1) -> list[str]:
    """Return the words up to and with the nth occurrence of one."""
    places = [at for at, word in enumerate(words) if word == last]
    return list(words[: places[nth - 1] + 1])


@pytest.mark.parametrize(
    ("last", "phase"),
    [
        ("generate+", "generate"), ("wake_up+", "wake"), ("data_preprocess+", "train-forward"),
        ("ref_log_probs+", "train-forward"), ("actor_train+", "train"), ("sleep+", "sleep"),
        ("update_weights+", "update"),
    ],
)  # fmt: skip
def test_the_innermost_open_timer_is_the_phase(last: str, phase: str) -> None:
    """Whatever encloses it, the timer that began last and did not end names the phase."""
    assert after(upto(HEAD, last), past=HEAD)[0] == phase


@pytest.mark.parametrize(
    ("last", "nth", "phase"),
    [
        ("sleep-", 1, "resume"), ("resume", 1, "between"), ("update_weights-", 1, "onload"), ("resume", 2, "generate"),
        ("generate-", 1, "between"), ("release", 1, "between"),
    ],
)  # fmt: skip
def test_between_two_phases_the_order_tells(last: str, nth: int, phase: str) -> None:
    """Engines resume twice, before and behind the update; their requests show only once they were answered."""
    assert after(upto(HEAD, last, nth), past=HEAD) == (None, phase)


@pytest.mark.parametrize(("last", "open_", "order"), [("checkpoint+", "save", None), ("checkpoint-", None, "between")])
def test_the_older_order_saves_before_it_sleeps(last: str, open_: str | None, order: str | None) -> None:
    """Nothing assumes that sleep comes first."""
    opened, told = after(upto(OLD, last), past=OLD)
    assert opened == open_
    assert order in (None, told)
    assert after(upto(OLD, "sleep-"), past=OLD) == (None, "resume")


def test_without_release_and_resume_the_engines_are_never_waited_for() -> None:
    """train_async.py has no such rows: behind the update the job is between two phases, and both sides may be open."""
    cycle = ["generate+", "train+", "actor_train+", "actor_train-", "train-", "update_weights+", "update_weights-"]
    assert after(cycle) == ("generate", "between")
    told = timeline(events("generate+", "train+", "actor_train+"))
    assert [one.phase for one in told.innermost()] == ["train", "generate"]


def test_a_critic_has_its_own_timers() -> None:
    """Timers of two groups with one name do not end each other."""
    told = timeline(events("wake_up+", "critic:wake_up+", "wake_up-"))
    assert [(one.phase, one.process) for one in told.innermost()] == [("wake", CRITIC)]


def test_starting_is_told_by_a_trainer_that_waits() -> None:
    """train_wait opens at the trainer's start; before anything trained, release and sleep belong to the start."""
    assert standing(timeline(events("train_wait+"))) == "start"
    assert standing(timeline(events("train_wait+", "release", "sleep+", "sleep-"))) == "start"
    assert standing(Timeline()) is None


def test_a_refused_resume_is_still_the_resume() -> None:
    """An engine that answers with an error has not taken its memory back."""
    assert after([*upto(HEAD, "sleep-"), "resume!"], past=HEAD) == (None, "resume")


def test_a_timer_that_begins_again_is_open_once() -> None:
    """Ray hides repeated lines: a start behind a start means that the end between them was not printed."""
    told = timeline(events("generate+", "wake_up+", "wake_up+", "sleep+"))
    assert [(one.name, one.start.line) for one in told.spans] == [("generate", 1), ("wake_up", 3), ("sleep", 4)]
    assert [span.start.line for span, _, _ in rows(told, 9.0) if span.name == "wake_up"] == [3]


def test_usual_times_are_medians_of_the_past() -> None:
    """Durations are printed ones, else between the lines; the open phase is not among them."""
    seconds = (12.0, 10.0, 30.0)
    made = []
    for number, took in enumerate(seconds):
        start, end = events("sleep+", "sleep-")
        made += [start, Event(end.kind, end.name, end.edge, end.process, end.time, took, FILE, number, number)]
    told = timeline([*made, *events("sleep+")])
    usual = told.usual(ACTOR, "sleep")
    assert usual is not None
    assert (usual.median, usual.spread, usual.count) == (12.0, 2.0, 3)
    assert timeline(events("sleep+", "train+", "sleep-")).usual(ACTOR, "sleep").median == 2.0  # type: ignore[union-attr]


def test_the_rows_are_those_of_the_last_cycle() -> None:
    """Older cycles stay as usual times only; the open phase counts up to now."""
    told = timeline(events(*HEAD, *HEAD, *upto(HEAD, "update_weights+")))
    shown = rows(told, now=1000.0)
    assert [one.name for one, _, _ in shown] == [
        "generate", "wake_up", "data_preprocess", "train", "ref_log_probs", "actor_train", "sleep", "update_weights",
    ]  # fmt: skip
    span, seconds, usual = shown[-1]
    assert span.end is None
    assert seconds == 1000.0 - (2 * len(HEAD) + HEAD.index("update_weights+"))
    assert usual is not None
    assert (usual.median, usual.count) == (1.0, 2)


def test_a_long_job_keeps_only_its_last_cycles() -> None:
    """Memory does not grow with cycles, also where the manager prints no sample (--debug-train-only)."""
    for cycle in (HEAD, ("train_wait-", "train+", "train-", "train_wait+")):
        told = timeline(events(*(cycle * 300)))
        assert len(told.spans) < 3 * len(cycle)


WORDS = st.sampled_from(
    [*(f"{name}{edge}" for name in (*NAMES, WAIT, "odd") for edge in "+-"), "release", "resume", "step"]
)


@given(st.lists(WORDS, max_size=40))
def test_any_order_gives_a_phase_or_none(words: list[str]) -> None:
    """Ends without starts, starts twice and unknown timers never break the fold."""
    told = timeline(events(*words))
    assert standing(told) in (None, *PHASES)
    assert all(one.phase is None or one.phase in PHASES for one in told.innermost())
    assert all(seconds is None or seconds >= 0 for _, seconds, _ in rows(told, 100.0))

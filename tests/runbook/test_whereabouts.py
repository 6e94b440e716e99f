"""Five lines that say where a session stands: the right things in the right words, short, and safe to draw."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from runbook.finding import Citation, Finding, Verdict
from runbook.flow.model import Cause, Change, Flow, Node
from runbook.session import events as ev
from runbook.session.state import Note, SessionState, replay
from runbook.text import Text
from runbook.ticket.build import transcript
from runbook.ticket.parts import Speaker
from runbook.ticket.story import next_action
from runbook.walk import By
from runbook.whereabouts import WIDTH, _begins, cut, note_head, whereabouts
from tests.helpers import hostile_text, is_safe
from tests.runbook.ticket import sample

DAY = 1_764_500_000.0
"""2025-11-30 10:53:20 UTC."""


def _both(words: str) -> Text:
    return Text(words, f"中{words}")


FLOW = Flow(
    "bread",
    _both("Bad bread"),
    _both("The bread is flat."),
    "oven",
    {
        "oven": Node(question=_both("Is the oven hot?"), probes=("p.oven",), branches={"hot": "again", "cold": "off"}),
        "again": Node(
            question=_both("Is it flat without yeast?"),
            change=Change(remove=("--yeast",)),
            probes=("p.flat",),
            branches={"flat": "flour", "fine": "yeast"},
        ),
        "off": Node(cause="oven-off", fix=_both("Switch it on.")),
        "flour": Node(cause="bad-flour", fix=_both("Buy flour.")),
        "yeast": Node(cause="old-yeast", fix=_both("Buy yeast.")),
    },
)
FLOWS = {"bread": FLOW}
VOCABULARY = {
    name: Cause("-", _both(title))
    for name, title in (("oven-off", "The oven is off"), ("bad-flour", "The flour is bad"), ("old-yeast", "Old yeast"))
}
COLD = Finding(Verdict.PROBLEM, "cold", _both("It is cold"), (Citation("/run/logs/oven.log", 12),), probe="p.oven")
HOT = Finding(Verdict.OK, "hot", _both("It is hot"), (Citation("/run/logs/oven.log", 3),), probe="p.oven")


def _lines(*events: ev.Event, language: str = "en", width: int | None = WIDTH) -> tuple[str, ...]:
    opened = ev.Opened("1", {}, "/run", "ann")
    records = (ev.Record(n, DAY + 60 * n, event) for n, event in enumerate((opened, *events)))
    state = replay(records, FLOWS)
    return whereabouts(state, state.report(FLOWS.values(), VOCABULARY), FLOWS, VOCABULARY, language, width=width)


def test_a_confirmed_cause_with_its_line_its_fix_and_who_was_last() -> None:
    """The problem names the proving line as seen from RUN; what is ruled out has names; the fix is next."""
    lines = _lines(ev.FlowStarted("bread"), ev.Found(COLD), ev.Noted("look\nhere", "bob", "bread", "oven"))
    assert lines == (
        "Problem: The oven is off (confirmed, logs/oven.log:12)",
        "Walk: Bad bread, at oven; evidence answered 1 of 2 questions, people 0",
        "Ruled out 2: The flour is bad, Old yeast; Open: nothing",
        "Next: Fix: Switch it on.",
        "Last change: 2025-11-30 10:56 UTC by bob; note 10:56 UTC by bob: look / here",
    )
    assert _lines(ev.FlowStarted("bread"), ev.Found(COLD), language="zh") == (
        "问题：中The oven is off（已确认，logs/oven.log:12）",
        "走查：中Bad bread，位于 oven；2 个问题中 1 个由证据回答，0 个由人回答",
        "已排除 2 个：中The flour is bad、中Old yeast；待定：无",
        "下一步：修复：中Switch it on.",
        "最后更改：2025-11-30 10:55 UTC 由 ann",
    )


def test_an_experiment_says_which_copy_waits_since_when() -> None:
    """At an experiment: which copy is written, since when its run is waited for, and the run once there is one."""
    walked = (ev.FlowStarted("bread"), ev.Found(HOT), ev.Answered("bread", "oven", "hot", By.PERSON, "bob"))
    copied = ev.CopyChanged("bread", "again", "/run/launch.sh", "/s/changed/bread.again/launch.sh", "", (), (), "sh")
    attached = ev.RunAttached("bread", "again", "run-2", "/run2")
    assert _lines(*walked)[3] == (
        "Next: Is it flat without yeast? no changed copy is written yet; waiting since 2025-11-30 10:56 UTC"
    )
    assert _lines(*walked, copied, width=None)[3] == (
        "Next: Is it flat without yeast? the changed copy launch.sh is to be run; waiting since 2025-11-30 10:56 UTC"
    )
    assert _lines(*walked, copied, attached)[3] == "Next: Is it flat without yeast? run-2 is attached"
    assert _lines(*walked)[1:3] == (
        "Walk: Bad bread, at again; evidence answered 0 of 2 questions, people 1",
        "Ruled out 1: The oven is off; Open 1: Is it flat without yeast?",
    )


def test_nothing_is_known_yet() -> None:
    """A session in which nothing was found says so, and asks the first question."""
    lines = _lines()
    assert lines[:4] == (
        "Problem: No cause confirmed yet: 3 possible, 2 questions open",
        "Walk: none begun; evidence answered 0 of 2 questions",
        "Ruled out: nothing; Open 2: Is the oven hot?",
        "Next: Is the oven hot? Answer it in a walk.",
    )
    assert whereabouts(SessionState(), SessionState().report((), {}), {}, {}) == (
        "Problem: Nothing wrong was found",
        "Walk: none begun; evidence answered 0 of 0 questions",
        "Ruled out: nothing; Open: nothing",
        "Next: Nothing is left to do: every question was answered.",
    )


def test_a_flow_that_is_not_here_any_more_breaks_nothing() -> None:
    """The flow in front was removed since: the lines are about the flows that are there."""
    assert _lines(ev.FlowStarted("gone"))[1] == "Walk: none begun; evidence answered 0 of 2 questions"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("state", [sample.triage_state(), sample.walked_state(), sample.open_state()])
def test_the_lines_are_five_short_and_in_the_words_of_the_ticket(state: SessionState, language: str) -> None:
    """At most five lines of at most WIDTH cells; uncut, the next action is the one that the ticket names."""
    report = state.report(sample.FLOWS.values(), sample.VOCABULARY)
    lines = whereabouts(state, report, sample.FLOWS, sample.VOCABULARY, language)
    assert 4 <= len(lines) <= 5
    assert all(cell_len(line) <= WIDTH for line in lines)
    whole = whereabouts(state, report, sample.FLOWS, sample.VOCABULARY, language, width=None)
    todo = next_action(Speaker(state, sample.FLOWS, sample.VOCABULARY, report, language))
    assert " ".join((todo.words or todo.title).split()) in whole[3]
    assert transcript(state, sample.FLOWS, sample.VOCABULARY, report, language=language).where == whole


@settings(max_examples=60)
@given(hostile_text, hostile_text, st.integers(20, 120))
def test_hostile_names_notes_and_paths_are_safe_and_short(words: str, who: str, width: int) -> None:
    """Whatever a note, a name or a path holds: lines that a terminal draws as they stand, in their width."""
    cold = msgspec.structs.replace(COLD, citations=(Citation("/run/" + words, 1),))
    lines = _lines(ev.FlowStarted("bread"), ev.Found(cold), ev.Noted(words * 9 + "x", who), width=width)
    assert len(lines) == 5
    assert all(is_safe(line) and cell_len(line) <= width for line in lines)
    assert is_safe(note_head(Note(words, DAY, who), "en"))


@given(
    st.lists(st.sampled_from(["host-17.example.org", "/home/ann/x", "sk-abc", "词", "a"]), max_size=30),
    st.integers(4, 90),
)
def test_a_line_is_cut_between_words_only(words: list[str], width: int) -> None:
    """What stays is whole words of the line, in their order, and a sign where some are missing."""
    line = " ".join(words)
    short = cut(line, width)
    assert cell_len(short) <= width
    if short != line:
        assert short.endswith("…")
        kept = short[:-1].split()
        assert kept == words[: len(kept)]


def test_what_fixed_the_first_cause_stands_where_the_next_action_did() -> None:
    """Words, who and when; another cause's fix leaves the next action; the words give way where room is short."""
    found = (ev.FlowStarted("bread"), ev.Found(COLD))
    assert _lines(*found, ev.Fixed("", "switched it on", "bob"))[3] == (
        "Fixed: switched it on by bob at 2025-11-30 10:56 UTC"
    )
    assert _lines(*found, ev.Fixed("old-yeast", "x", "bob"))[3] == "Next: Fix: Switch it on."
    long = _lines(*found, ev.Fixed("oven-off", "words " * 60, "bob"))[3]
    assert long.endswith("words … by bob at 2025-11-30 10:56 UTC")
    assert cell_len(long) <= WIDTH


def test_the_first_sentence_of_the_next_action_goes_before_all_else() -> None:
    """Where not all of it has room, the question before it goes and the sentence stands whole."""
    first = "Switch the oven on, wait until it is as hot as the recipe wants."
    fix = _both(f"{first} Then bake the bread again, and look whether it rises as it should, for the flour may be bad.")
    nodes = {**FLOW.nodes, "off": msgspec.structs.replace(FLOW.nodes["off"], fix=fix)}
    flows = {"bread": msgspec.structs.replace(FLOW, nodes=nodes)}
    records = [ev.Record(0, DAY, ev.Opened("1", {}, "/run")), ev.Record(1, DAY, ev.Found(COLD))]
    state = replay(records, flows)
    report = state.report(flows.values(), VOCABULARY)
    assert whereabouts(state, report, flows, VOCABULARY)[3] == f"Next: Fix: {first} …"
    assert "flour may be bad" in whereabouts(state, report, flows, VOCABULARY, width=240)[3]


def test_words_are_shortened_by_whole_sentences() -> None:
    """Where not all fits, as many sentences as fit are told, not only the first."""
    said = "It is broken. Mend it with glue. Wait an hour."
    assert _begins(said) == [said, "It is broken. Mend it with glue.", "It is broken."]
    assert _begins("坏了。用胶水修好。等一小时。")[-1] == "坏了。"

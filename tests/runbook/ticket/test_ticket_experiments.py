"""Experiments in a ticket: each format tells change, run, words of its probes and grid; what is private is hidden."""

from __future__ import annotations

import json

import pytest

from runbook.session import events as ev
from runbook.session.state import SessionState
from runbook.text import Text
from runbook.ticket.build import transcript
from runbook.ticket.export import finish
from runbook.ticket.redact import Identity
from runbook.ticket.renderers import renderer
from runbook.ticket.transcript import Transcript
from tests.runbook.test_experiments import IMA, START, answers, says, state

SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"
DIFF = f"--- a/run.sh\n+++ b/run.sh\n-   --sglang-speculative-algorithm EAGLE\n     export HF_TOKEN={SECRET}\n"


def session(*more: ev.Event) -> SessionState:
    """Return a session in which a copy was written and a run attached."""
    return state(
        *START,
        ev.CopyChanged("ima", "speculation-off", "/home/ann/run.sh", "/s/run.sh", DIFF, (Text("a note", "备注"),)),
        ev.RunAttached("ima", "speculation-off", "run-2", "/home/ann/runs/two"),
        says("cuda.ima_in_log", "none", "run-2"),
        *answers(("speculation-off", "none")),
        *more,
    )


def told(known: SessionState, language: str = "en") -> Transcript:
    """Return the transcript of a session over the IMA flow."""
    return transcript(known, {"ima": IMA}, {}, known.report([IMA], {}), language=language)


def test_transcript_tells_each_experiment_once() -> None:
    """Change, edit, run, what its probes said and the conclusion; grid and runs side by side stand beside it."""
    of = told(session())
    (one,) = of.experiments
    assert (one.node, one.run, one.path, one.answer) == ("speculation-off", "run-2", "/home/ann/runs/two", "none")
    assert one.edit is not None
    assert one.edit.lines[2] == "-   --sglang-speculative-algorithm EAGLE"
    assert one.found == (("cuda.ima_in_log", "none", "cuda.ima_in_log"),)
    assert one.notes == ("a note",)
    assert [grid.rows[1][1] for grid in of.matrices] == ["none (run-2)"]
    assert of.runs is not None
    assert of.runs.rows[0] == ("cuda.ima_in_log", "ima", "none")
    assert told(state()).experiments == ()


def test_run_without_the_change_is_told_as_such() -> None:
    """What a run is proven to lack stands in the ticket, and its node draws no conclusion."""
    lacks = (Text("This run still has --x.", "该运行仍有 --x。"),)
    known = state(*START, ev.RunAttached("ima", "speculation-off", "run-2", "/r2", lacks))
    (one,) = told(known, "zh").experiments
    assert (one.lacks, one.answer, one.edit) == (("该运行仍有 --x。",), "", None)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["markdown", "html", "json"])
def test_every_format_tells_it_and_hides_what_is_private(name: str, language: str) -> None:
    """Diff, grid and run are there; the token in the diff and the user in the paths are not."""
    known = session(ev.RunAttached("ima", "graph-off-speculating", "run-3", "/r3|x`y\n[/rank0]"))
    content, _ = finish(told(known, language), renderer(name), Identity())
    text = content.decode()
    title = IMA.matrices[0].title.say(language)
    assert title in text
    assert "--sglang-speculative-algorithm EAGLE" in text
    assert "run-2" in text
    assert SECRET not in text
    assert "/home/ann" not in text
    assert "user-1" in text
    if name == "json":
        assert len(json.loads(text)["experiments"]) == 2


def test_next_action_is_the_experiment_at_which_the_walk_stands() -> None:
    """A person who stands at an experiment gets its change, the copy's command and the way back, not a general fix."""
    copy = ev.CopyChanged(
        "ima", "speculation-off", "/r/run.sh", "/s/run.sh", DIFF, command="bash /s/run.sh && echo started"
    )
    known = state(*START, copy)
    report = known.report([IMA], {})
    following = transcript(known, {"ima": IMA}, {}, report, session="20260101-a").next
    assert following.title == "Does the IMA remain without speculative decoding (CUDA graphs on)?"
    assert [one.command for one in following.actions] == [
        "",
        "bash /s/run.sh && echo started",
        "slime-runbook resume 20260101-a --attach RUN",
    ]
    assert "- --sglang-speculative-algorithm" in following.actions[0].change
    assert transcript(state(*START[:2]), {"ima": IMA}, {}, report).next.title != following.title

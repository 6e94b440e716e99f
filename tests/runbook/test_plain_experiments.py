"""Experiments in plain text: what a person reads at the node, after the copy was written, and later."""

from __future__ import annotations

import io

from rich.console import Console

from runbook import plain_experiments
from runbook.plain import Plain
from runbook.session import events as ev
from runbook.text import Text
from tests.runbook.test_experiments import IMA, START, answers, says, state

NODE = "speculation-off"
COPY = ev.CopyChanged(
    "ima", NODE, "/runs/[a]/run.sh", "/s/changed/run.sh", "--- a/run.sh\n+++ b/run.sh\n-  --x \x1b[31m\n",
    (Text("--y is not there.", "没有 --y。"),),
    (Text("Take --z out by hand: run.sh:3.", "请手动移除 --z：run.sh:3。"),),
    "bash /s/changed/run.sh",
)  # fmt: skip


def front(language: str = "en") -> tuple[Plain, io.StringIO]:
    """Return a plain front that writes into a text."""
    text = io.StringIO()
    return Plain(language, console=Console(file=text, width=120, markup=False, highlight=False)), text


def test_written_copy_is_told_with_what_to_do_next() -> None:
    """Diff, what is left, notes, path, the command that submits it, and the one that comes back; nothing is markup."""
    plain, text = front()
    plain_experiments.copied(plain, COPY, "20261129-x")
    said = text.getvalue()
    for words in (
        "copy of /runs/[a]/run.sh", "-  --x", "by hand: Take --z out", "note: --y is not there.",
        "written to /s/changed/run.sh", "$ bash /s/changed/run.sh", "$ slime-runbook resume 20261129-x --attach RUN",
    ):  # fmt: skip
        assert words in said
    assert "\x1b[31m" not in said


def test_copy_of_a_session_in_memory_names_no_way_back() -> None:
    """Without a kept session there is nothing to resume, and a copy without a difference says so."""
    plain, text = front()
    plain_experiments.copied(plain, ev.CopyChanged("ima", NODE, "/run.sh", "", ""), "")
    assert "nothing had to be changed" in text.getvalue()
    assert "resume" not in text.getvalue()
    assert "$" not in text.getvalue()


def test_node_shows_its_grid_and_its_copy() -> None:
    """Before a run is attached the copy is shown with its command; a node off the grid shows nothing."""
    plain, text = front()
    plain_experiments.experiment(plain, state(*START, COPY), IMA, NODE)
    assert "an illegal memory access (this run)" in text.getvalue()
    assert "$ bash /s/changed/run.sh" in text.getvalue()
    plain, text = front()
    plain_experiments.experiment(plain, state(*START, COPY), IMA, "deepep")
    assert text.getvalue() == ""


def test_run_without_the_change_decides_nothing() -> None:
    """The node says what the run lacks and that it decides nothing, in the walk, the grid and triage alike."""
    lacks = (Text("This run still has --x (run.sh:3).", "该运行仍有 --x（run.sh:3）。"),)
    known = state(*START, ev.RunAttached("ima", NODE, "run-2", "/r2", lacks), says("cuda.ima_in_log", "none", "run-2"))
    for language, words in (("en", "so it decides nothing"), ("zh", "因此不作结论")):
        plain, text = front(language)
        plain_experiments.experiment(plain, known, IMA, NODE)
        assert lacks[0].say(language) in text.getvalue()
        assert words in text.getvalue()
    assert known.decision(IMA, NODE).answer is None
    assert "made without the change (run-2)" in text.getvalue() or "未带此改动（run-2）" in text.getvalue()
    report = known.report([IMA], {})
    assert NODE in {open_.node for open_ in report.unknown}


def test_summary_shows_grid_and_runs() -> None:
    """At the end of a walk the grid and the runs stand below the cause, each run with its experiment and place."""
    plain, text = front()
    run = (ev.RunAttached("ima", NODE, "run-2", "/r2"), says("cuda.ima_in_log", "none", "run-2"))
    plain_experiments.summary(plain, state(*START, *run, *answers((NODE, "none"))), IMA)
    assert "none (run-2)" in text.getvalue()
    assert "The runs side by side" in text.getvalue()
    assert f"run-2  ima/{NODE}  /r2" in text.getvalue()
    plain, text = front()
    plain_experiments.summary(plain, state(), IMA)
    assert text.getvalue() == ""

"""A triage that goes on watching: what it tells, in which form, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from runbook.answer_json import answer_schema
from runbook.catalog import Catalog
from runbook.cli import desks, follow
from runbook.finding import cite
from runbook.session.desk import Desk
from runbook.text import Text
from runbook.triage import exit_code
from runbook.watch import Change, Kind
from tests.runbook import small
from tests.runbook.cli.world import World

BEGUN = b"start\ntext: garbled\n"


class Following:
    """A `triage --follow` at work. `until` reads its output line by line."""

    def __init__(self, world: World, *words: object) -> None:
        self.process = subprocess.Popen(
            ["env", "--default-signal=INT", *world.command("triage", *words, "--follow")],
            env=world.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=world.folder,
        )

    def until(self, fits: Callable[[str], bool]) -> list[str]:
        """Return the lines up to the first that fits."""
        assert self.process.stdout is not None
        told: list[str] = []
        for line in self.process.stdout:
            told.append(line.rstrip("\n"))
            if fits(told[-1]):
                return told
        raise AssertionError(f"ended without it: {told} {self.process.stderr and self.process.stderr.read()}")

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def following(world: World) -> Iterator[Callable[..., Following]]:
    """Return a function that begins to follow; what was begun is ended after the test."""
    begun: list[Following] = []

    def begin(*words: object) -> Following:
        begun.append(Following(world, *words))
        return begun[-1]

    yield begin
    for each in begun:
        each.process.kill()
        each.process.communicate()


def test_what_changes_is_told_in_a_line(world: World, following: Callable[..., Following]) -> None:
    """First what is seen at once, then the triage, then a line for each change; Ctrl-C exits as triage would now."""
    run = world.log(BEGUN)
    at_work = following(run)
    told = at_work.until(lambda line: "watching" in line)
    looked, triaged = (next(n for n, line in enumerate(told) if word in line) for word in ("First look", "Checked"))
    assert looked < triaged
    assert any("small.early: seen" in line for line in told[looked:triaged])
    with (run / "job.log").open("ab") as log:
        log.write(b"load: not loaded\n")
    told = at_work.until(lambda line: "small.load now says" in line)
    assert any("cause not-loaded now confirmed (was possible): It is not-loaded.  job.log:3" in line for line in told)
    assert at_work.interrupt() == 1


def test_a_new_log_of_the_run_is_taken_up(world: World, following: Callable[..., Following]) -> None:
    """A file that appears in RUN is discovered and asked about, and one that was replaced is read anew."""
    run = world.log(b"no evidence yet\n", "notes.txt")
    (run / "job.log").write_bytes(b"start\n")
    at_work = following(run)
    at_work.until(lambda line: "watching" in line)
    (run / "new").write_bytes(small.GARBLED)
    os.replace(run / "new", run / "job.log")
    at_work.until(lambda line: "not-loaded now confirmed" in line)
    (run / "new").write_bytes(small.FINE)
    os.replace(run / "new", run / "job.log")
    at_work.until(lambda line: "not-loaded now ruled out (was confirmed)" in line)
    assert at_work.interrupt() == 0


def test_json_is_one_document_a_line(world: World, following: Callable[..., Following]) -> None:
    """Each line is a whole answer by the schema of triage, the next one when something changed."""
    run = world.log(BEGUN)
    at_work = following(run, "--json")
    first = json.loads(at_work.until(bool)[0])
    with (run / "job.log").open("ab") as log:
        log.write(b"load: not loaded\n")
    second = json.loads(at_work.until(bool)[0])
    for answer in (first, second):
        jsonschema.validate(answer, answer_schema())
    confirmed = [[each["cause"] for each in a["causes"] if each["standing"] == "confirmed"] for a in (first, second)]
    assert confirmed == [[], ["not-loaded"]]
    assert at_work.interrupt() == 1


def test_until_end_needs_follow(world: World) -> None:
    """The option alone is wrong usage."""
    done = world("triage", world.log(BEGUN), "--until-end")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--follow" in done.stderr


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Return a desk of the small world over a log, with short pauses."""
    monkeypatch.setattr(follow, "POLL", 0.05)
    monkeypatch.setattr(follow, "REST", 0.0)
    monkeypatch.setattr(follow, "QUIET", 0.2)
    (tmp_path / "job.log").write_bytes(BEGUN)
    known = small.catalog()
    probes = {**known.probes, small.early.id: small.early, small.slow.id: small.slow}
    opened = Desk(Catalog(probes, known.slots, (), known.loaded, known.vocabulary))
    opened.begin(str(tmp_path))
    desks.collect(opened, "", (("log", str(tmp_path / "job.log")),))
    yield opened
    opened.close()


def test_watching_ends_when_the_run_has_ended_and_is_quiet(desk: Desk, tmp_path: Path) -> None:
    """Asked to, it leaves by itself once a probe says that the run is over and nothing grows."""
    probes = desk.triage_probes()
    seen = follow.look(desk, "") or {}
    desks.ask_all(desk, probes)
    told: list[Change] = []

    def write() -> None:
        with (tmp_path / "job.log").open("ab") as log:
            log.write(b"load: not loaded\n")

    later = threading.Timer(0.3, write)
    later.start()
    follow.follow(desk, "", (), probes, seen, told.extend, until_end=True)
    later.join()
    assert [change.subject for change in told if change.kind is Kind.STANDING] == ["not-loaded"]
    assert exit_code(desk.report()) == 1


def test_the_first_look_decides_nothing(desk: Desk) -> None:
    """What is seen at once is no finding of the session."""
    assert [finding.probe for finding in follow.first_look(desk)] == ["small.early"]
    assert desk.state.findings_of() == {}


@pytest.mark.parametrize(
    ("change", "en", "zh"),
    [
        (
            Change(
                Kind.STANDING, "x", "possible", "confirmed", Text("It is.", "是。"), cite("/a/job.log", "l", line=7)
            ),
            "14:03:07 cause x now confirmed (was possible): It is.  job.log:7",
            "14:03:07 原因 x 现为 已确认（之前：可能）：是。  job.log:7",
        ),
        (
            Change(Kind.RANKING, "", "a", "b, a"),
            "14:03:07 ranking now b, a (was a)",
            "14:03:07 排序现为 b, a（之前：a）",
        ),
        (
            Change(Kind.ANSWER, "p.q", "", "yes (ok)"),
            "14:03:07 p.q now says yes (ok)",
            "14:03:07 p.q 现在的结论 yes (ok)",
        ),
    ],
)
def test_a_change_is_one_line_in_both_languages(change: Change, en: str, zh: str) -> None:
    """The clock, what it is, what it was, why, and where that stands."""
    assert (follow.line(change, "14:03:07", "en"), follow.line(change, "14:03:07", "zh")) == (en, zh)


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "14:03:07 5 checks (p.0, p.1, p.2, …) now say unknown: job.log is not there."),
        ("zh", "14:03:07 5 项检查（p.0, p.1, p.2, …）现在的结论 unknown：job.log 不存在。"),
    ],
)
def test_what_many_checks_say_alike_is_one_line(language: str, told: str) -> None:
    """A log that vanished is told once with a count; a check that says something else keeps its own line."""
    gone, other = Text("job.log is not there.", "job.log 不存在。"), Text("No dump.", "没有 dump。")
    vanished = [Change(Kind.ANSWER, f"p.{n}", f"answer-{n} (ok)", "unknown", gone) for n in range(5)]
    alone = Change(Kind.ANSWER, "q", "yes (ok)", "unknown", other)
    cause = Change(Kind.STANDING, "x", "confirmed", "possible", gone)
    changes = [cause, vanished[0], alone, *vanished[1:]]
    lines = list(follow.lines(changes, "14:03:07", language))
    assert lines == [follow.line(cause, "14:03:07", language), told, follow.line(alone, "14:03:07", language)]


def test_two_checks_that_agree_keep_their_lines() -> None:
    """What few checks say is told with what each of them said before."""
    changes = [Change(Kind.ANSWER, name, "yes (ok)", "no (ok)", Text("It is.", "是。")) for name in ("p", "q")]
    assert list(follow.lines(changes, "14:03:07", "en")) == [follow.line(each, "14:03:07", "en") for each in changes]

"""What changes while a run goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook import watch
from runbook.evidence import Item
from runbook.finding import Finding, Verdict, cite
from runbook.flow.model import Node
from runbook.text import Text
from runbook.triage import Report, Standing, Verdicted
from runbook.watch import Kind, Picture, changed_slots, changes, marks

WHY = Text("why", "为什么")


def _item(slot: str, path: object) -> Item:
    return Item(slot, str(path), WHY)


def _finding(answer: str | None, verdict: Verdict = Verdict.OK) -> Finding:
    return Finding(verdict, answer, WHY, (cite("/x/job.log", "line", line=7),))


def _report(**standings: Standing) -> Report:
    leaf = Node(cause="x")
    every = [Verdicted(name, standing, "flow", "node", leaf, (_finding("no"),)) for name, standing in standings.items()]
    ruled_out = tuple(each for each in every if each.standing is Standing.RULED_OUT)
    return Report(tuple(each for each in every if each not in ruled_out), ruled_out, (), (), ())


def test_a_file_that_grew_changes_its_slots(tmp_path: Path) -> None:
    """Growth, truncation, replacement with the same size, and a new name are changes; the rest is none."""
    log, other = tmp_path / "job.log", tmp_path / "other.log"
    log.write_bytes(b"one\n")
    other.write_bytes(b"two\n")
    items = [_item("log", log), _item("other", other), _item("url", "http://10.0.0.1")]
    paths = [item.path for item in items]
    before = marks(paths)
    assert changed_slots(items, before, marks(paths)) == set()
    with log.open("ab") as file:
        file.write(b"more\n")
    assert changed_slots(items, before, marks(paths)) == {"log"}
    before = marks(paths)
    (tmp_path / "new").write_bytes(other.read_bytes())
    os.replace(tmp_path / "new", other)
    assert changed_slots(items, before, marks(paths)) == {"other"}
    before = marks(paths)
    log.unlink()
    os.truncate(other, 0)
    assert changed_slots(items, before, marks(paths)) == {"log", "other"}


def test_what_comes_and_goes_in_a_folder_is_its_change(tmp_path: Path) -> None:
    """A file deep in a folder counts for every slot that holds the folder, and not for a neighbour of a like name."""
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "logs2").mkdir()
    items = [_item("log", folder), _item("dump", tmp_path / "logs2")]
    paths = [item.path for item in items]
    before = marks(paths)
    (folder / "deep" / "a.err").write_bytes(b"x")
    assert changed_slots(items, before, marks(paths)) == {"log"}


def test_run_itself_is_looked_at_without_what_is_in_it(tmp_path: Path) -> None:
    """A file that came is seen by the folder's own time, one that grew is not."""
    (tmp_path / "a").write_bytes(b"x")
    root = str(tmp_path)
    before = marks((), root)
    assert list(before) == [root]
    (tmp_path / "a").write_bytes(b"longer")
    assert marks((), root) == before
    os.utime(tmp_path, ns=(1, 1))
    assert marks((), root) != before


def test_of_a_large_folder_the_first_files_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look costs is bounded."""
    monkeypatch.setattr(watch, "LIMIT", 3)
    for name in "abcdef":
        (tmp_path / name).touch()
    assert sorted(os.path.basename(path) for path in marks([str(tmp_path)])) == sorted([tmp_path.name, "a", "b", "c"])


def test_changes_name_what_is_and_what_was() -> None:
    """A cause that was confirmed or taken back, the order of several, and answers; what stayed is not told."""
    before = Picture(
        {"p": _finding("yes"), "q": _finding("no")}, _report(one=Standing.POSSIBLE, two=Standing.CONFIRMED)
    )
    after = Picture(
        {"p": _finding("no", Verdict.PROBLEM), "q": _finding("no"), "r": _finding(None, Verdict.UNKNOWN)},
        _report(one=Standing.CONFIRMED, two=Standing.CONFIRMED),
    )
    told = changes(before, after)
    assert [(each.kind, each.subject, each.was, each.now) for each in told] == [
        (Kind.STANDING, "one", "possible", "confirmed"),
        (Kind.RANKING, "", "two", "one, two"),
        (Kind.ANSWER, "p", "yes (ok)", "no (problem)"),
        (Kind.ANSWER, "r", "", "unknown"),
    ]
    assert told[0].citation is not None
    assert told[0].citation.line == 7
    assert changes(after, after) == ()


def test_a_cause_between_possible_and_ruled_out_is_not_told() -> None:
    """Dozens of them change with one answer, and the answer is told."""
    before, after = _report(one=Standing.POSSIBLE), _report(one=Standing.RULED_OUT)
    assert changes(Picture({}, before), Picture({}, after)) == ()


standings = st.dictionaries(st.sampled_from(["one", "two", "three"]), st.sampled_from(Standing))


@given(standings, standings)
def test_every_new_confirmation_is_told_once(was: dict[str, Standing], now: dict[str, Standing]) -> None:
    """Whatever the two reports, a cause is told exactly when it became or ceased to be confirmed."""
    told = changes(Picture({}, _report(**was)), Picture({}, _report(**now)))
    expected = {name for name in now if (was.get(name) is Standing.CONFIRMED) != (now[name] is Standing.CONFIRMED)}
    assert [each.subject for each in told if each.kind is Kind.STANDING] == [
        name for name in [*_order(now)] if name in expected
    ]


def _order(standings: dict[str, Standing]) -> list[str]:
    report = _report(**standings)
    return [cause.cause for cause in (*report.causes, *report.ruled_out)]

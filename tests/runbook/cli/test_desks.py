"""How the plain commands ask and wait: in the order given, each listener gone when it is no longer needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runbook.cli import desks
from runbook.errors import EvidenceError, RunbookError, SessionError
from runbook.evidence import Item
from runbook.runner import Job
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import Text
from tests.runbook import small


class Watched(Desk):
    """A desk that notes what it is asked, in order."""

    asked: tuple[tuple[str, str], ...] = ()

    def ask(self, probe_id: str, run: str = "", *, first: bool = False) -> Job:
        """Note and ask."""
        self.asked = (*self.asked, (probe_id, run))
        return super().ask(probe_id, run, first=first)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Watched]:
    """Return a desk over a log in which nothing is right, also as evidence of an attached run."""
    opened = Watched(small.catalog())
    (tmp_path / "job.log").write_bytes(small.GARBLED)
    log = Item("log", str(tmp_path / "job.log"), Text("given", "给定"))
    opened.append(ev.EvidenceAdded((log, Item(log.slot, log.path, log.why, run="run-2"))))
    yield opened
    opened.close()


def test_probes_are_asked_in_the_order_given(desk: Watched) -> None:
    """Each once, in order, of the run that is meant; a probe that is not there is passed over; all have answered."""
    order = ["small.text", "gone.probe", "small.load", "small.text"]
    desks.ask_all(desk, order, "run-2")
    assert desk.asked == (("small.text", "run-2"), ("small.load", "run-2"))
    assert set(desk.state.findings) == {("run-2", "small.text"), ("run-2", "small.load")}


def test_nothing_listens_afterwards(desk: Watched, tmp_path: Path) -> None:
    """Asking, collecting and attaching leave no listener behind, whether they end well or not."""
    desks.ask_all(desk, ["small.text"])
    desks.collect(desk, str(tmp_path), ())
    with pytest.raises(EvidenceError):
        desks.collect(desk, str(tmp_path / "gone"), ())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "job.log").write_text(
        "(RolloutManager pid=3) [2026-08-21 10:00:00] rollout.py:1 - Router launched\n"
    )
    desks.attach(desk, "small", "released", str(tmp_path / "run"))
    with pytest.raises(EvidenceError):
        desks.attach(desk, "small", "released", str(tmp_path / "gone"))
    with pytest.raises(RunbookError):
        desks.attach(desk, "small", "coherent", str(tmp_path))

    def full(event: ev.Event, now: float) -> ev.Record:
        raise SessionError("no space", "make room")

    kept, desk._log.append = desk._log.append, full  # type: ignore[method-assign]
    with pytest.raises(SessionError):
        desks.ask_all(desk, ["small.text"])
    desk._log.append = kept  # type: ignore[method-assign]
    assert desk._listeners == []

"""The queue of probes to ask: once a run, what is wanted again meanwhile is asked again, what is cancelled is not."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runbook.catalog import Catalog
from runbook.evidence import Item
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import Text
from runbook.tui.asking import Asking, Hands
from tests.runbook import misbehaving as bad
from tests.runbook.test_runner import wait_for


class Front:
    """A desk with its hands and its queue, whose events are taken on the test's thread."""

    def __init__(self, folder: Path) -> None:
        (folder / "x.log").write_bytes(b"x\n")
        self.desk = Desk(Catalog({bad.waits.id: bad.waits, bad.answers.id: bad.answers}))
        self.desk.append(ev.EvidenceAdded((Item("log", str(folder / "x.log"), Text("x", "x")),)))
        self.calls: queue.Queue[Callable[[], None]] = queue.Queue()
        self.found: list[str] = []
        self.hands = Hands(self.calls.put)
        self.asking = Asking(self.desk, self.hands, lambda error: pytest.fail(str(error)))
        self.desk.listen(self._hear)

    def _hear(self, kind: str, payload: Any) -> None:
        if kind == "record" and isinstance(payload.event, ev.Found):
            self.calls.put(lambda: self._take(payload.event))

    def _take(self, event: ev.Found) -> None:
        self.found.append(event.finding.probe)
        self.asking.found(event.run, event.finding.probe)

    def until(self, condition: Callable[[], bool]) -> None:
        """Take events until a condition holds."""
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "it never came to be"
            try:
                self.calls.get(timeout=0.05)()
            except queue.Empty:
                continue


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    """Return a front over one log."""
    made = Front(tmp_path)
    yield made
    made.hands.finish(5.0)
    made.desk.close()


def test_a_probe_is_asked_once_unless_wanted_again(front: Front) -> None:
    """What was asked is not asked again by itself, and is when it is wanted again."""
    front.asking.want(["bad.answers", "gone.probe"])
    front.until(lambda: not front.asking.busy)
    front.asking.want(["bad.answers"])
    assert not front.asking.busy
    front.asking.want(["bad.answers"], again=True)
    front.until(lambda: not front.asking.busy)
    assert front.found == ["bad.answers", "bad.answers"]


def test_what_is_wanted_again_while_it_runs_is_asked_when_it_has_answered(front: Front, tmp_path: Path) -> None:
    """Evidence that comes while a probe reads the old is not lost: it is asked once more, never twice at once."""
    front.asking.want(["bad.waits"])
    wait_for(tmp_path / "pid")
    front.until(lambda: front.desk.jobs() != {})
    front.asking.want(["bad.waits"], again=True)
    front.asking.want(["bad.waits"], again=True)
    assert len(front.desk.jobs()) == 1
    (tmp_path / "go").touch()
    front.until(lambda: not front.asking.busy)
    assert front.found == ["bad.waits", "bad.waits"]


def test_what_is_cancelled_is_not_asked_again(front: Front, tmp_path: Path) -> None:
    """Cancelling a probe that was wanted again ends it for good."""
    front.asking.want(["bad.waits"])
    wait_for(tmp_path / "pid")
    front.until(lambda: any(job.elapsed is not None for job in front.asking.running().values()))
    front.asking.want(["bad.waits"], again=True)
    front.asking.cancel([("", "bad.waits")])
    front.until(lambda: not front.asking.busy)
    assert front.found == ["bad.waits"]
    assert front.desk.state.findings_of()["bad.waits"].summary.en == "It was cancelled."

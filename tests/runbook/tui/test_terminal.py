"""The whole command at a real terminal: sessions chosen on the start screen are opened in turn, and closed."""

from __future__ import annotations

import time
from pathlib import Path

import pexpect
import pyte
import pytest

from runbook.session.lock import LOCK
from tests.runbook import small
from tests.runbook.cli.world import World

SIZE = (30, 100)


class Terminal:
    """The command in a terminal of 100 by 30, and what stands on it."""

    def __init__(self, world: World, *words: object) -> None:
        self._screen = pyte.Screen(SIZE[1], SIZE[0])
        self._stream = pyte.Stream(self._screen)
        program, *arguments = world.command(*words)
        environment = {**world.environment, "TERM": "xterm-256color"}
        self.process = pexpect.spawn(
            program, arguments, env=environment, cwd=str(world.folder), dimensions=SIZE, encoding="utf-8", timeout=60
        )

    def until(self, words: str) -> str:
        """Wait until some words stand on the screen, blanks and line ends aside, and return all of it."""
        end = time.monotonic() + 60
        while True:
            shown = " ".join(" ".join(self._screen.display).split())
            if words in shown:
                return shown
            assert time.monotonic() < end, shown
            try:
                self._stream.feed(self.process.read_nonblocking(65536, timeout=0.2))
            except pexpect.TIMEOUT:
                continue

    def leave(self) -> int:
        """Press q and return the exit code."""
        self.process.send("q")
        self.process.expect(pexpect.EOF)
        self.process.close()
        return int(self.process.exitstatus)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return the small world with one session in which a walk was left at its first node."""
    made = World(tmp_path)
    made("run", "small", made.log(small.GARBLED), "--sessions", made.sessions, stdin="q\n")
    return made


def test_a_session_is_opened_from_the_start_screen_and_given_back(world: World) -> None:
    """Enter on a recent session goes on with its walk; leaving exits by its evidence and gives every lock back."""
    terminal = Terminal(world, world.log(small.FINE), "--sessions", world.sessions)
    terminal.until("Recent sessions")
    terminal.until("all 2 probes answered")
    terminal.process.send("G")
    terminal.process.send("\r")
    terminal.until("b back")
    assert terminal.leave() == 1, "the session that was opened has a proven cause, the first has none"
    assert list(world.sessions.glob(f"*/{LOCK}")) == []


def test_a_session_that_is_held_elsewhere_is_read_and_taken_over(world: World) -> None:
    """A session that another terminal holds opens for a reader; taken over there, the first reads on."""
    (kept,) = [path for path in world.sessions.iterdir() if path.is_dir()]
    holder = Terminal(world, "sessions", "resume", kept.name, "--sessions", world.sessions)
    holder.until("b back")
    terminal = Terminal(world, world.log(small.FINE), "--sessions", world.sessions)
    terminal.until("Recent sessions")
    terminal.until("all 2 probes answered")
    terminal.process.send("G")
    terminal.process.send("\r")
    terminal.until("read only: held by ")
    terminal.process.send("t")
    terminal.until("take it over")
    terminal.process.send("j\r")
    terminal.until("you hold the session now")
    holder.until("read only: held by ")
    assert terminal.leave() == 1
    assert holder.leave() == 1
    assert list(world.sessions.glob(f"*/{LOCK}")) == []

"""The real command at a real terminal: from the start screen to the first token at which two dumps disagree."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pexpect
import pyte

from tests.probes.dump_makers import run_folder

SIZE = (24, 80)


class Terminal:
    """The command over a run in a terminal of 80 by 24, and what stands on it."""

    def __init__(self, run: Path, state: Path) -> None:
        self._screen = pyte.Screen(SIZE[1], SIZE[0])
        self._stream = pyte.Stream(self._screen)
        state.mkdir()
        program = str(Path(sys.executable).with_name("slime-runbook"))
        self.temporary = tempfile.mkdtemp(prefix="rb")  # a socket's path may have 108 bytes
        places = {"XDG_STATE_HOME": str(state), "TMPDIR": self.temporary}
        environment = {**os.environ, "TERM": "xterm-256color", **places}
        self.process = pexpect.spawn(
            program, [str(run)], env=environment, cwd=str(run), dimensions=SIZE, encoding="utf-8", timeout=60
        )

    def until(self, *words: str) -> str:
        """Wait until some words stand on the screen, blanks and line ends aside, and return all of it."""
        end = time.monotonic() + 90
        while True:
            shown = " ".join(" ".join(self._screen.display).split())
            if all(word in shown for word in words):
                return shown
            assert time.monotonic() < end, shown
            try:
                self._stream.feed(self.process.read_nonblocking(65536, timeout=0.2))
            except pexpect.TIMEOUT:
                continue


def test_the_first_token_that_disagrees_is_five_keys_away(tmp_path: Path) -> None:
    """By v, G, Enter, Enter, n: the last rollout, its worst sample, which is first, and there the token.

    Sample 2 disagrees at token 4, by two nat less a hundredth.
    """
    terminal = Terminal(run_folder(tmp_path / "run"), tmp_path / "state")
    terminal.until("v browse")
    token = ('token 4 "." ✗ disagrees', "trainer - engine -1.990 nat", "trainer -2.240 engine -0.250")
    told = (("Rollouts",), ("rollout", "mean gap"), ("Samples of rollout 2",), ("sample 2", "Response"), token)
    keys = ("v", "G", "\r", "\r", "n")
    assert len(keys) < 10
    for key, words in zip(keys, told, strict=True):
        terminal.process.send(key)
        shown = terminal.until(*words)
    assert "rollout 2 · sample 2" in shown
    terminal.process.send("q")
    terminal.process.expect(pexpect.EOF)
    terminal.process.close()
    assert terminal.process.exitstatus in (0, 1, 3)
    assert not list(Path(terminal.temporary).glob("runbook-browse-*")), "what browsing kept is gone"
    shutil.rmtree(terminal.temporary)

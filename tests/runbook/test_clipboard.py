"""What is offered to the terminal's clipboard arrives whole in a real tmux, and is never claimed to have arrived."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook import clipboard
from tests.helpers import HOSTILE

XTERM = {"TERM": "xterm-256color"}
TMUX = {"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}
SCREEN = {"TERM": "screen", "STY": "1.pts-0.host"}
ROOT = Path(__file__).parents[2]


def _payload(sequence: str) -> str:
    assert sequence.startswith("\x1b]52;c;")
    assert sequence.endswith("\x07")
    return base64.b64decode(sequence[7:-1], validate=True).decode()


@given(st.one_of(st.sampled_from(HOSTILE), st.text()), st.sampled_from([XTERM, TMUX, SCREEN]))
def test_a_sequence_holds_the_text_and_nothing_a_terminal_could_act_upon(text: str, terminal: dict[str, str]) -> None:
    """Whatever the text, only base64 stands between the begin and the end; what screen gets is the same once unwrapped.

    What is no valid text (half a surrogate pair) is a question mark.
    """
    offered = clipboard.sequence(text, terminal)
    if terminal is SCREEN:
        pieces = offered.split("\x1b\\")
        assert pieces.pop() == ""
        assert all(piece.startswith("\x1bP") and len(piece) <= 256 for piece in pieces)
        offered = "".join(piece[2:] for piece in pieces)
    assert _payload(offered) == text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    ("terminal", "most"),
    [(XTERM, 74_994), (SCREEN, 74_994), (TMUX, 780_000), ({"TERM": "dumb"}, 0), ({"TERM": "linux"}, 0), ({}, 0)],
    ids=["xterm", "screen", "tmux", "dumb", "console", "none"],
)
def test_a_text_that_is_too_long_is_not_offered_at_all(terminal: dict[str, str], most: int) -> None:
    """At the limit the whole is offered; a byte more and nothing is, for half a ticket helps nobody."""
    assert clipboard.limit(terminal) == most
    if most:
        assert _payload(clipboard.sequence("é" * (most // 2), {**terminal, "STY": "", "TERM": "xterm"}))
    assert clipboard.sequence("x" * (most + 1), terminal) == ""


def test_the_limits_are_those_of_the_terminals() -> None:
    """100,000 characters for xterm, 1 MiB for tmux."""
    assert len(base64.b64encode(b"x" * clipboard.PLAIN_LIMIT)) <= 100_000
    assert len(clipboard.sequence("x" * clipboard.TMUX_LIMIT, TMUX)) < 2**20


OFFER = "import sys; from runbook.clipboard import offer; print('took', offer(sys.argv[1]), flush=True)"


def test_it_goes_to_the_terminal_although_stdout_is_a_pipe() -> None:
    """The sequence is on the terminal's line, nothing of it on stdout, and no cell of the screen shows any of it."""
    command = '"$0" -c "$1" "$2" | sed s/took/TOOK/'
    process = pexpect.spawn(
        "/bin/sh",
        ["-c", command, sys.executable, OFFER, "a ticket\n第二行"],
        env={**os.environ, **XTERM, "TMUX": "", "STY": ""},
        cwd=str(ROOT),
        encoding="utf-8",
        timeout=60,
    )
    written = process.read()
    wanted = base64.b64encode("a ticket\n第二行".encode()).decode()
    assert f"\x1b]52;c;{wanted}\x07" in written
    screen = pyte.Screen(80, 24)
    pyte.Stream(screen).feed(written)
    assert [line.strip() for line in screen.display if line.strip()] == ["TOOK True"]


def test_without_a_terminal_nothing_is_claimed() -> None:
    """A process in a session without a terminal offers nothing."""
    done = subprocess.run(
        [sys.executable, "-c", OFFER, "x"],
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **XTERM},
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout == "took False\n"


@pytest.fixture
def tmux() -> Iterator[Callable[..., str]]:
    """Return a function that runs a tmux command against a server of our own, which takes the clipboard of programs."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("tmux is not installed")
    folder = tempfile.mkdtemp(prefix="rb", dir="/tmp")  # a socket's path may have 108 bytes, whatever TMPDIR is
    config = Path(folder) / "conf"
    config.write_text("set -g set-clipboard on\n")

    def run(*words: str) -> str:
        command = [program, "-S", f"{folder}/s", "-f", str(config), *words]
        environment = {**os.environ, "TERM": "xterm-256color"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT).stdout

    run("new-session", "-d", "-x", "80", "-y", "24", "cat")
    yield run
    run("kill-server")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("size", [10, 200_000], ids=["short", "long"])
def test_the_whole_text_arrives_in_tmux(tmux: Callable[..., str], tmp_path: Path, size: int) -> None:
    """A real tmux with `set-clipboard on` has the text in its buffer, also one that a plain terminal would not take."""
    text = "工单 " + "0123456789" * (size // 10) + " end"
    source = tmp_path / "text"
    source.write_text(text)
    program = "import sys; from runbook.clipboard import offer; offer(open(sys.argv[1]).read())"
    tmux("new-window", f"'{sys.executable}' -c '{program}' '{source}'; cat")
    end = time.monotonic() + 60
    while (taken := tmux("show-buffer")) != text:
        assert time.monotonic() < end, f"the buffer has {len(taken)} of {len(text)} characters"
        time.sleep(0.05)

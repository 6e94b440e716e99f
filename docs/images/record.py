"""Records docs/images/experiments.cast and experiments.svg: a session that experiments settle, over three shifts.

The real command in a real terminal, over the files of `tests/incidents/experiment_runs.py`. Only three things are put
in: the keys, the pauses between them, and fixed names for the folder and the session, so that nothing of the machine is
in the recording and a new one differs only where the tool does.

Usage: PYTHONPATH=. python docs/images/record.py
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pexpect
import pyte
from rich.console import Console
from rich.text import Text

from tests.incidents.experiment_runs import first_run, made_with

HERE = Path(__file__).parent
WIDTH, HEIGHT = 110, 34
FOLDER, SESSION = "/data/incident", "20261129-181500-0a1b2c"
"""What stands in the recording for the folder and the session."""
TYPING, READING = 0.04, 1.6
"""Seconds between two keys, and before the next answer."""
PATIENCE = 120


class Recording:
    """Frames of a terminal: time in seconds and what was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session = ""
        self.time = 0.0
        self.frames: list[tuple[float, str]] = []

    def write(self, words: str, after: float) -> None:
        """Write words after a pause, the names of this machine replaced."""
        self.time += after
        words = words.replace(str(self.folder), FOLDER)
        self.frames.append((self.time, words.replace(self.session, SESSION) if self.session else words))

    def typed(self, words: str) -> None:
        """Write words as a person types them."""
        for letter in words:
            self.write(letter, TYPING)

    def command(self, words: str, *answers: str) -> str:
        """Run the command as it is typed, give the answers at its questions, and return what it wrote."""
        self.write("\x1b[1;32m$\x1b[0m ", READING)
        self.typed(f"slime-runbook {words}\r\n".replace(self.session or "\0", SESSION))
        line = f"{sys.executable} -m runbook.cli.main {words} --sessions {self.folder}/sessions"
        child = pexpect.spawn(
            "/bin/bash", ["-c", line], cwd=str(self.folder), dimensions=(HEIGHT, WIDTH), encoding="utf-8",
            echo=False, timeout=PATIENCE,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8", "TERM": "xterm-256color",
                 "PYTHONPATH": str(HERE.parents[1])},
        )  # fmt: skip
        said: str = ""
        for answer in answers:
            child.expect(r"answer \([^\n]*?\): ")
            self.write(child.before + child.after, 0.4)
            said += child.before + child.after
            self.write("", READING)
            self.typed(answer)
            child.sendline(answer)
            self.write("\r\n", TYPING)
        child.expect(pexpect.EOF)
        self.write(child.before, 0.4)
        said += child.before
        if (kept := re.search(r"session kept: (\S+)", said)) is not None and not self.session:
            self.session = kept[1]
            self.frames = [(when, words.replace(self.session, SESSION)) for when, words in self.frames]
        return str(said)

    def cast(self) -> str:
        """Return the recording as an asciinema file, version 2."""
        head = {
            "version": 2,
            "width": WIDTH,
            "height": HEIGHT,
            "title": "slime-runbook: an experiment over three shifts",
        }
        return "\n".join(
            json.dumps(one, ensure_ascii=False) for one in (head, *([t, "o", w] for t, w in self._merged()))
        )

    def _merged(self) -> list[tuple[float, str]]:
        return [(round(when, 3), words) for when, words in self.frames if words]

    def screen(self, rows: int) -> list[str]:
        """Return the last rows of the terminal at the end, as text."""
        screen = pyte.HistoryScreen(WIDTH, 400)
        stream = pyte.Stream(screen)
        for _, words in self.frames:
            stream.feed(words)
        lines = [line.rstrip() for line in screen.display]
        end = max(number for number, line in enumerate(lines) if line) + 1
        return lines[max(0, end - rows) : end]


def copy_of(recording: Recording, node: str) -> str:
    """Return the changed copy that the session holds for an experiment."""
    return str(recording.folder / "sessions" / recording.session / "changed" / f"ima.{node}" / "launch.sh")


def main() -> None:
    """Record the session and draw its end."""
    folder = Path(tempfile.mkdtemp(prefix="r"))
    try:
        run = first_run(folder / "run")
        recording = Recording(folder)
        recording.command("run ima run", "", "", "", "", "", "c", "q")
        second = made_with(copy_of(recording, "speculation-off"), run / "models", folder / "run-b", fails=True)
        recording.command(f"resume {recording.session} --plain --attach {second.name}", "", "c", "q")
        third = made_with(copy_of(recording, "graph-off"), run / "models", folder / "run-c", fails=False)
        recording.command(f"resume {recording.session} --plain --attach {third.name}", "")
        recording.command(f"export {recording.session} --output ticket.md")
        (HERE / "experiments.cast").write_text(recording.cast() + "\n", encoding="utf-8")
        console = Console(width=WIDTH, record=True, file=(folder / "drawn").open("w"), force_terminal=True)
        for line in recording.screen(40):
            console.print(Text(line, style="bold" if line.startswith("$ ") else ""), soft_wrap=True)
        console.save_svg(str(HERE / "experiments.svg"), title="slime-runbook")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

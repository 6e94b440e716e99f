"""Times the terminal UI on a pty: first frame, usable screen, key press to paint.

A first frame is any drawn text; usable is the start screen's list with the flows in it; keys are pressed from then
on, while probes run. The yardstick is the smallest Textual app that draws one word, in the same run. Prints medians
and ratios; asserts nothing.

    python -m benchmarks first_screen
"""

from __future__ import annotations

import os
import pty
import select
import statistics
import sys
import tempfile
import time

ROUNDS = 7
LIMIT = 20.0
YARDSTICK = """
from textual.app import App
from textual.widgets import Static
class Minimal(App[None]):
    def compose(self):
        yield Static("MARKER")
Minimal().run()
"""


def paint(
    command: list[str], cache: str, frame: bytes, usable: bytes, keys: int = 0
) -> tuple[float, float, list[float]]:
    """Return milliseconds to the first frame, to the usable screen, and from `keys` key presses to paint.

    The process is ended then.
    """
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="80", LINES="24", LANG="C.UTF-8")
        os.environ.update(PYTHONPYCACHEPREFIX=cache, PYTHONDONTWRITEBYTECODE="")
        os.execvp(command[0], command)
    seen, first, end = b"", 0.0, 0.0
    while time.perf_counter() - began < LIMIT and not end:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
            now = (time.perf_counter() - began) * 1000
            first = first or (now if frame in seen else 0.0)
            end = now if usable in seen else 0.0
    pressed = [press(terminal, b"j" if i % 2 == 0 else b"k") for i in range(keys)] if end else []
    os.kill(pid, 15)
    time.sleep(0.05)
    os.close(terminal)
    os.waitpid(pid, 0)
    return first, end, pressed


def press(terminal: int, key: bytes) -> float:
    """Return milliseconds from a key press to the next output. What was on its way before is read first."""
    time.sleep(0.03)
    while select.select([terminal], [], [], 0.0)[0]:
        os.read(terminal, 65536)
    began = time.perf_counter()
    os.write(terminal, key)
    select.select([terminal], [], [], 2.0)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Print the table."""
    python = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        os.mkdir(run)
        with open(os.path.join(run, "job.log"), "w", encoding="utf-8") as log:
            log.write("nothing\n")
        ours = [
            python,
            "-m",
            "runbook.cli.main",
            "ui",
            run,
            "--sessions",
            os.path.join(folder, "sessions"),
            "--lang",
            "en",
        ]
        rows: dict[str, list[float]] = {
            "first frame": [],
            "usable screen": [],
            "minimal Textual app": [],
            "key press to paint": [],
        }
        cache = os.path.join(folder, "pycache")  # compiled modules, as an installed wheel has them
        paint(ours, cache, b"runbook", b"Where")
        for _ in range(ROUNDS):
            first, usable, keys = paint(ours, cache, b"runbook", b"Where", keys=20)
            _, minimal, _ = paint([python, "-c", YARDSTICK], cache, b"MARKER", b"MARKER")
            for name, values in zip(rows, ([first], [usable], [minimal], keys), strict=True):
                rows[name] += values
    yardstick = statistics.median(rows["minimal Textual app"])
    print(f"from process start, median of {ROUNDS} (best), interleaved; yardstick: the minimal Textual app")
    for name, values in rows.items():
        median = statistics.median(values)
        print(f"{name:<22} {median:7.0f} ms ({min(values):.0f})   {median / yardstick:5.2f} x")
    slowest = max(rows["key press to paint"])
    print(f"slowest key press      {slowest:7.0f} ms of {len(rows['key press to paint'])}")


if __name__ == "__main__":
    main()

"""Asks the cuda-gdb of this machine about a core dump, as an untrusted file is asked about: bounded, and in a void.

Dumps are read without it (`readers.cuda_coredump`); it adds the source line, and it may understand a dump of another
driver. Invariants: no shell; nothing of the run is run or loaded (no init files, no auto-load, no debuginfod, an empty
folder as working directory and home, a PATH of absolute folders outside the run); it ends within its seconds and its
bytes, whatever it does; that it crashes after it printed the answer is ordinary (CUDA 13.0 does on some dumps), so the
text counts and the exit status does not.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probes.readers.cuda_gdb import Told, read_gdb

SECONDS = 25.0
"""A dump of a few MB takes cuda-gdb 2 to 5 s; one as large as a GPU's memory may never end."""
OUTPUT = 512 * 1024
"""Bytes that are read; an answer has two thousand."""
_OPTIONS = (
    "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-iex", "set width 0",
    "-iex", "set confirm off", "-ex", "target cudacore dump",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What it printed. ended: "finished", "crashed" (a signal or a fatal error of its own) or "timed-out"."""

    text: str
    ended: str

    @property
    def told(self) -> Told | None:
        """Return what it said of the dump, None when it named neither an exception nor a kernel."""
        return next((one for one in read_gdb(self.text) if one.exception or one.kernel), None)


def find(run: Sequence[str]) -> str | None:
    """Return the cuda-gdb on PATH; never one in the folders of the run, nor by a relative entry of PATH."""
    folders = [os.path.realpath(each) for each in run]
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        tool = shutil.which("cuda-gdb", path=entry) if os.path.isabs(entry) else None
        if tool is not None and not any(_within(os.path.realpath(tool), folder) for folder in folders):
            return tool
    return None


def _within(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


def ask(tool: str, dump: str, seconds: float = SECONDS) -> Answer | None:
    """Open one dump with cuda-gdb and return what it printed; None when it could not be started."""
    with tempfile.TemporaryDirectory(prefix="cuda-gdb-", ignore_cleanup_errors=True) as void:
        try:
            os.symlink(os.path.abspath(dump), os.path.join(void, "dump"))  # so that no name is part of a command
            process = subprocess.Popen(
                [*_guard(seconds), tool, *_OPTIONS], cwd=void, env=_environment(void), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError:
            return None
        output = bytearray()
        try:
            with process:
                in_time = _read(process, output, time.monotonic() + seconds)
                _end(process)
        finally:
            _end(process)
        text = output.decode("utf-8", "replace")
        if not in_time:
            return Answer(text, "timed-out")
        crashed = process.returncode < 0 or "A fatal error internal to GDB" in text
        return Answer(text, "crashed" if crashed else "finished")


def _guard(seconds: float) -> tuple[str, ...]:
    """Return what ends cuda-gdb even where this process is killed meanwhile."""
    guard = shutil.which("timeout", path="/usr/bin:/bin")
    return (guard, "--signal=KILL", f"{seconds + 2:.0f}") if guard else ()


def _environment(void: str) -> dict[str, str]:
    """Return an environment that names nothing of the user's: no preloaded library, no server of debug symbols."""
    return {"PATH": "/usr/bin:/bin", "HOME": void, "TMPDIR": void, "LC_ALL": "C", "TERM": "dumb"}


def _read(process: subprocess.Popen[bytes], output: bytearray, deadline: float) -> bool:
    """Read what it prints until it ends, prints too much (both True) or runs out of time (False)."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    while len(output) < OUTPUT:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return False
        block = os.read(pipe, 64 * 1024)
        if not block:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.1))
            return True
        output += block
    del output[OUTPUT:]
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and whatever it started; its session is its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def answers(run: Sequence[str], dumps: Sequence[str], budget: float) -> Iterator[tuple[str, Answer]]:
    """Yield what cuda-gdb says of each dump, as long as the seconds of `budget` last; nothing where it is absent."""
    tool = find(run)
    end = time.monotonic() + budget
    for dump in dumps if tool is not None else ():
        left = end - time.monotonic()
        if left < 1 or tool is None:
            return
        answer = ask(tool, dump, min(left, SECONDS))
        if answer is not None:
            yield dump, answer

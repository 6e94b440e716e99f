"""Read a torch file or pickle in a child that is confined to it, and take over plain data.

Why a child: a limit on memory is a process's, so lowering it in a probe's worker or in the terminal UI would fail other
threads and libraries; what a hostile file does to the C stack ends the child alone; and what an 80 MB dump needs while
it is unpickled is given back at once. Invariants: the child is given an open file and no path; memory is bounded by the
file's size and by what the machine has left, whichever is less; the answer is read with a list of five names, as if the
child were hostile itself; each way of failing is a DumpError.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from typing import BinaryIO

from probes.readers.compact import unpack
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.safe_pickle import memory_budget
from probes.readers.torch_zip import Loaded, regular_file_size

SECONDS = 100
"""Wall and processor time for one file; a dump of 80 MB takes one second."""
SHARE = 0.75
"""Of the memory that the machine has left, what a read may take."""
STILL = 0.6
"""Seconds in which a file that ends early must not grow to count as cut off."""
FRESH = 120.0
"""Seconds since the last change within which a file may still be in the making."""
_HEADER = 17
"""Bytes of `bounded_child.HEADER`."""
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_START = "import sys; sys.path.insert(0, sys.argv[1]); from probes.readers.bounded_child import main; main()"


def read_torch_file(path: str, callable_packages: frozenset[str] = frozenset()) -> Loaded:
    """Read a torch zip, a legacy torch file or a plain pickle. Long lists of numbers come as `array.array`.

    callable_packages: packages whose names may be called (enums in Megatron's `common.pt`); they give inert Records.
    Raises DumpError naming the fault.
    """
    regular_file_size(path)
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            return _read(file, path, callable_packages)
    except OSError as error:
        raise DumpError(Fault.UNREADABLE, path, f"cannot be opened ({error})") from error
    except DumpError as error:
        if error.fault in (Fault.TRUNCATED, Fault.FOREIGN, Fault.EMPTY) and is_growing(path):
            what = "is being written at this moment: it grew while it was read"
            raise DumpError(Fault.WRITING, path, what, kind="writing") from error
        raise


def _read(file: BinaryIO, path: str, packages: frozenset[str]) -> Loaded:
    size = os.fstat(file.fileno()).st_size
    wanted, left = memory_budget(size), memory_left()
    memory = wanted if left is None else min(wanted, int(left * SHARE))
    command = [sys.executable, "-I", "-S", "-c", _START, _ROOT, str(memory), str(SECONDS), *sorted(packages)]
    child = subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/")
    began = time.monotonic()
    timer = threading.Timer(SECONDS, child.kill)
    timer.start()
    with child:
        try:
            out = _answer(child, memory)
        finally:
            timer.cancel()
            child.kill()
    if out is None and time.monotonic() - began >= SECONDS:
        raise _slow(path, size)
    if out is None:
        raise _died(path, size, child.returncode)
    return _taken(out, path, size, memory < wanted)


def _answer(child: subprocess.Popen[bytes], memory: int) -> bytearray | None:
    """Return all that the child says, its header first; None when it ended before."""
    stream = child.stdout
    if stream is None:
        return None
    header = stream.read(_HEADER)
    sizes = [int.from_bytes(header[at : at + 8], "little") for at in (1, 9)]
    if len(header) < _HEADER or sum(sizes) > memory:
        child.wait()
        return None
    out = bytearray(_HEADER + sum(sizes))
    out[:_HEADER] = header
    rest = memoryview(out)[_HEADER:]
    while rest:
        got = stream.readinto(rest)  # type: ignore[attr-defined]  # Popen's IO[bytes] is a BufferedReader
        if not got:
            child.wait()
            return None
        rest = rest[got:]
    return out


def _taken(out: bytearray, path: str, size: int, machine: bool) -> Loaded:
    """Return what the child read, or raise what it failed with. machine: the limit was what the machine had left."""
    length = int.from_bytes(out[1:9], "little")
    words, arrays = memoryview(out)[_HEADER : _HEADER + length], memoryview(out)[_HEADER + length :]
    try:
        if out[:1] == b"L":
            root, container, opaque = unpack(words, arrays, path)
            return Loaded(path, root, container, opaque)
        fault, what, refused, kind = json.loads(bytes(words))
    except (ValueError, TypeError, LookupError, AttributeError, pickle.UnpicklingError) as error:
        raise DumpError(Fault.UNSAFE, path, "the child that read it gave no sensible answer", kind="bomb") from error
    if kind == "memory" and machine:
        what = f"reading {size >> 20} MiB needs more memory than this machine can spare ({what})"
        raise DumpError(Fault.RESOURCES, path, what, kind="memory")
    raise DumpError(Fault(fault), path, what, refused, "bomb" if kind == "memory" else kind)


def _slow(path: str, size: int) -> DumpError:
    return DumpError(Fault.RESOURCES, path, f"reading {size >> 20} MiB took longer than {SECONDS} s", kind="time")


def _died(path: str, size: int, code: int) -> DumpError:
    """Return the fault of a file whose reader ended without a word."""
    if code in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        what = f"its data broke the process that read them ({signal.Signals(-code).name}): nested without end"
        return DumpError(Fault.UNSAFE, path, what, kind="bomb")
    if code == -signal.SIGXCPU:
        return _slow(path, size)
    ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    what = f"the process that read it was ended from outside ({ended}), as happens when memory runs out"
    return DumpError(Fault.RESOURCES, path, what, kind="memory")


def is_growing(path: str) -> bool:
    """Return whether a file that changed lately changes still; waits STILL seconds for it, else no time."""
    with contextlib.suppress(OSError):
        before = os.stat(path)
        if abs(time.time() - before.st_mtime) > FRESH:
            return False
        until = time.monotonic() + STILL
        while time.monotonic() < until:
            time.sleep(STILL / 12)
            now = os.stat(path)
            if (now.st_size, now.st_mtime_ns, now.st_ino) != (before.st_size, before.st_mtime_ns, before.st_ino):
                return True
    return False


def memory_left() -> int | None:
    """Return the bytes that this machine, or the container this runs in, can still give; None where nothing tells."""
    given = [_meminfo(), _control_group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")]
    given.append(
        _control_group("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
    )
    return min((bytes_left for bytes_left in given if bytes_left is not None), default=None)


def _meminfo() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")), None)
    return None


def _control_group(limit: str, used: str) -> int | None:
    """Return what a control group has left; its page cache counts as free, because the kernel gives it up first."""
    with contextlib.suppress(OSError, ValueError):
        most, now = (int(_line(name)) for name in (limit, used))
        return max(most - now + _cached(os.path.dirname(limit)), 0)
    return None


def _line(name: str) -> str:
    with open(name, encoding="ascii") as file:
        return file.readline()


def _cached(folder: str) -> int:
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/memory.stat", encoding="ascii") as file:
        fields = dict(line.split() for line in file)
        return int(fields.get("inactive_file", 0)) + int(fields.get("active_file", 0))
    return 0

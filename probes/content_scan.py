"""Scans the tensors of a checkpoint: what to read, in which order, by which workers, and what is known already.

Work is cut into items of about ITEM_BYTES, so that progress moves, a kill costs one item, and workers stay busy to
the end. Workers are this process, helper processes, or tasks on a Ray cluster; all run `tensor_scan.scan_file`, so
what they say is the same. Invariants: nothing is written into the checkpoint; a file that cannot be read is a failure
with its reason and does not end the scan; helper processes end with this one, since their input does.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from probes.content_state import Stamp, State, state_of
from probes.hf_checkpoint import Checkpoint
from probes.readers.tensor_scan import Looked, Piece, Scanner, scan_file
from runbook.probe import Progress
from runbook.text import sanitise

ITEM_BYTES = 256 << 20
"""Bytes of one item; a larger tensor is an item of its own, since its hash is one sequence."""
ITEM_TENSORS = 2_000
PROCESS_BYTES = 8 << 30
"""Bytes for which more processes are worth their start (0.3 s)."""

KILL_SECONDS = 5.0
"""How long the end of a killed helper is waited for."""

Key = tuple[str, str]
"""File name and tensor name: a name may stand in several files."""


@dataclass(frozen=True)
class Item:
    """Tensors of one file to be read by one worker. path: of the file. stamp: its state when its header was read."""

    file: str
    path: str
    stamp: Stamp
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        """Return how many bytes it covers."""
        return sum(piece.end - piece.start for piece in self.pieces)


@dataclass(frozen=True)
class Answer:
    """What a worker says of an item. rows: one for each piece; None when the file could not be read, with why.

    reader: the node of a cluster that read it, "" for this machine.
    """

    item: Item
    rows: list[Looked] | None
    why: str = ""
    reader: str = ""


@dataclass
class Scan:
    """The outcome. looked: by key. failures: why a file could not be read, by file.

    read, resumed: bytes that were read now and before. readers: items by node, "" for this machine.
    """

    looked: dict[Key, Looked] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    read: int = 0
    resumed: int = 0
    seconds: float = 0.0
    readers: Counter[str] = field(default_factory=Counter)


Tell = Callable[[int], None]
Engine = Callable[[list[Item], Tell], Iterator[Answer]]
"""Reads items in any order; tells the bytes read as it goes."""


def pieces_of(checkpoint: Checkpoint) -> dict[str, list[Piece]]:
    """Return the tensors of each file that lie wholly within it, in file order."""
    found = {}
    for file, header in checkpoint.headers.items():
        entries = sorted((entry.data_offsets, name, entry.dtype) for name, entry in header.tensors.items())
        found[file] = [
            Piece(name, dtype, header.data + start, header.data + end)
            for (start, end), name, dtype in entries
            if 0 <= start <= end <= header.size - header.data
        ]
    return found


def scan(
    checkpoint: Checkpoint, wanted: dict[str, list[Piece]], engine: Engine, report: Progress, state: State | None = None
) -> Scan:
    """Read what is wanted, save what is known already, and return both.

    wanted: pieces by file name. state: where results are kept; by default the one of the checkpoint's folder.
    """
    began = time.monotonic()
    stamps = _stamps(checkpoint)
    if state is None:
        state = state_of(checkpoint.path, sum(stamp.size for stamp in stamps.values()))
    known = state.known(stamps)
    result = Scan()
    items: list[Item] = []
    for file, pieces in wanted.items():
        done = known.get(file, {})
        result.looked |= {(file, piece.name): done[piece] for piece in pieces if piece in done}
        result.resumed += sum(piece.end - piece.start for piece in pieces if piece in done)
        if file in stamps:
            path = os.path.join(checkpoint.path, file)
            items += _cut(file, path, stamps[file], [piece for piece in pieces if piece not in done])
        else:
            result.failures[file] = "it cannot be read any more"
    tell = _teller(report, sum(item.bytes for item in items))
    for answer in engine(items, tell):
        if answer.rows is None:
            result.failures.setdefault(answer.item.file, sanitise(answer.why, 200))
            continue
        rows = list(zip(answer.item.pieces, answer.rows, strict=True))
        result.looked |= {(answer.item.file, piece.name): row for piece, row in rows}
        result.read += answer.item.bytes
        result.readers[answer.reader] += 1
        state.add(answer.item.file, answer.item.stamp, rows)
    result.seconds = time.monotonic() - began
    return result


def known_of(checkpoint: Checkpoint) -> dict[str, dict[Piece, Looked]]:
    """Return what earlier scans found and still holds, by file name."""
    stamps = _stamps(checkpoint)
    return state_of(checkpoint.path, sum(stamp.size for stamp in stamps.values())).known(stamps)


def _stamps(checkpoint: Checkpoint) -> dict[str, Stamp]:
    stamps = {}
    for file, header in checkpoint.headers.items():
        try:
            status = os.stat(os.path.join(checkpoint.path, file))
        except OSError:
            continue
        if status.st_size == header.size:
            stamps[file] = Stamp(status.st_size, status.st_mtime_ns)
    return stamps


def _cut(file: str, path: str, stamp: Stamp, pieces: list[Piece]) -> Iterator[Item]:
    some: list[Piece] = []
    size = 0
    for piece in pieces:
        if some and (size + piece.end - piece.start > ITEM_BYTES or len(some) >= ITEM_TENSORS):
            yield Item(file, path, stamp, tuple(some))
            some, size = [], 0
        some.append(piece)
        size += piece.end - piece.start
    if some:
        yield Item(file, path, stamp, tuple(some))


def _teller(report: Progress, total: int) -> Tell:
    """Return a function that adds up bytes and reports megabytes with the time that is left."""
    began = time.monotonic()
    done = 0
    lock = threading.Lock()

    def tell(count: int) -> None:
        nonlocal done
        with lock:
            done += count
        spent = time.monotonic() - began
        left = spent / done * (total - done) if done else 0.0
        report(done / 1e6, total / 1e6, f"MB, {_duration(left)} left")

    report(0, total / 1e6, "MB")
    return tell


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f}s"
    return f"{seconds / 60:.0f}m" if seconds < 6000 else f"{seconds / 3600:.0f}h"


def here(items: list[Item], tell: Tell) -> Iterator[Answer]:
    """Read items in this process."""
    scanner = Scanner() if items else None
    for item in items:
        yield read_item(item, tell, scanner)


def read_item(item: Item, tell: Tell, scanner: Scanner | None = None) -> Answer:
    """Read one item in this process."""
    try:
        rows = scan_file(item.path, item.stamp.size, item.pieces, tell, scanner)
    except OSError as error:
        return Answer(item, None, error.strerror or str(error))
    return Answer(item, [Looked(*row) for row in rows])


def processes(count: int) -> Engine:
    """Return an engine of helper processes, at least one.

    They are plain programs that read requests from a pipe, not multiprocessing's: a probe already runs in a daemonic
    process, which may not have such children.
    """

    def run(items: list[Item], tell: Tell) -> Iterator[Answer]:
        waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
        for item in sorted(items, key=lambda item: -item.bytes):
            waiting.put(item)
        answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        helpers = [_start_helper() for _ in range(min(count, len(items)))]
        threads = [
            threading.Thread(target=_drive, args=(helper, waiting, answers, tell), daemon=True) for helper in helpers
        ]
        try:
            for thread in threads:
                thread.start()
            ended = 0
            while ended < len(threads):
                answer = answers.get()
                if answer is None:
                    ended += 1
                else:
                    yield answer
            while not waiting.empty():  # every helper died early: what is left is read here
                yield read_item(waiting.get(), tell)
        finally:
            for helper in helpers:
                helper.kill()
            for helper, thread in zip(helpers, threads, strict=True):
                thread.join(KILL_SECONDS)
                with contextlib.suppress(OSError), helper:
                    pass

    return run


def _start_helper() -> subprocess.Popen[str]:
    """Start a helper with this process's own module path: nothing in the working folder may stand in for a module."""
    paths = [path for path in sys.path if path]
    code = f"import sys; sys.path = {paths!r}; from probes.readers.tensor_scan import serve; serve()"
    command = [sys.executable, "-c", code]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _drive(
    helper: subprocess.Popen[str],
    waiting: queue.SimpleQueue[Item],
    answers: queue.SimpleQueue[Answer | None],
    tell: Tell,
) -> None:
    """Hand items to one helper until none is left; put its answers, then None."""
    assert helper.stdin is not None
    assert helper.stdout is not None
    item = None
    try:
        while True:
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                break
            helper.stdin.write(json.dumps([item.path, item.stamp.size, item.pieces]) + "\n")
            helper.stdin.flush()
            answers.put(_answer(item, helper.stdout, tell))
            item = None
    except (OSError, EOFError, ValueError) as error:
        if item is not None:
            answers.put(Answer(item, None, f"its reader ended ({type(error).__name__})"))
    finally:
        answers.put(None)


def _answer(item: Item, lines: Iterable[str], tell: Tell) -> Answer:
    for line in lines:
        said = json.loads(line)
        if len(said) == 1:
            tell(said[0])
        elif said[0] is None:
            return Answer(item, None, said[1])
        else:
            return Answer(item, [Looked(*row) for row in said[0]])
    raise EOFError


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local_engine(size: int) -> tuple[Engine, str]:
    """Return the engine for `size` bytes on this machine, and its name in words."""
    count = min(cores(), 4)
    if size < PROCESS_BYTES or count < 2:
        return here, "this process"
    return processes(count), f"{count} processes"

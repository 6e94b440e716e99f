"""What browsing keeps between two pages, in a folder of its own that is gone when the browsing ends.

A dump of 80 MB takes a second or two to open, and every page is made by another process. So the rows of a rollout are
kept once they are known, and of the rollouts looked at last also the records of their samples, one behind the other, so
that a sample is one seek away. Invariants: what is kept belongs to files of that size and time; without a folder,
without room or with a damaged one everything works, slower; what is read back equals what was made from the dump.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from typing import BinaryIO, TypeVar

import msgspec

from probes.browse_step import Record, Row, Step, judged, read_step, records
from probes.samples import Generated
from runbook.text import Text

PACKS = 2
"""Rollouts whose records are kept at once."""

PACK_BYTES = 1 << 30
"""Dumps above this size are read anew for every sample: their records would fill the disk."""

ROOM = 4
"""Times the size of the dumps that must be free where the records go."""

T = TypeVar("T")


class Kept(msgspec.Struct, frozen=True):
    """The rows of a rollout.

    judged: how many of them, from the first. offsets: of the records, () without any. missing: what no rank wrote.
    """

    rows: tuple[Row, ...]
    faults: tuple[str, ...] = ()
    judged: int = 0
    offsets: tuple[int, ...] = ()
    missing: tuple[Text, ...] = ()

    @property
    def whole(self) -> bool:
        """Return whether every row is judged."""
        return self.judged >= len(self.rows)

    @property
    def done(self) -> float:
        """Return the share of the rows that is judged."""
        return self.judged / len(self.rows) if self.rows else 1.0


class _Words(msgspec.Struct, frozen=True):
    """The part of a record that is searched and judged."""

    prompt: str
    response: str | None
    told: Generated


class Keep:
    """The folder. path: "" for none."""

    def __init__(self, path: str) -> None:
        """Keep in `path`, which exists."""
        self.path = path

    def _place(self, step: Step, suffix: str) -> str:
        parts = [f"{path} {_stamp(path)}" for path in step.paths]
        name = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return os.path.join(self.path, name + suffix)

    def rows(self, step: Step) -> Kept | None:
        """Return what is kept of a rollout."""
        return self._load(self._place(step, ".rows"), Kept) if self.path else None

    def has_records(self, step: Step) -> bool:
        """Return whether the records of a rollout are kept."""
        return bool(self.path) and os.path.exists(self._place(step, ".records"))

    def packs(self, step: Step) -> bool:
        """Return whether the records of a rollout may be kept."""
        size = size_of(step)
        if not self.path or size > PACK_BYTES:
            return False
        with contextlib.suppress(OSError):
            return shutil.disk_usage(self.path).free > ROOM * size
        return False

    def made(self, step: Step, *, pack: bool, until: float) -> Kept:
        """Return the rows of a rollout, read from its dumps unless they are kept, and judged until a time.

        pack: keep the records too. until: monotonic seconds; judging goes on at the next call.
        """
        with self._locked(step):
            kept = self.rows(step)
            if kept is None or (pack and not self.has_records(step) and self.packs(step)):
                kept = self._read(step, kept, pack=pack and self.packs(step), until=until)
            elif not kept.whole and time.monotonic() < until:
                kept = self._judge(step, kept, until)
            return kept

    def _read(self, step: Step, known: Kept | None, *, pack: bool, until: float) -> Kept:
        read = read_step(step)
        rows: list[Row] = []
        texts: list[tuple[str | None, Generated]] = []
        with _Pack(self._place(step, ".records") if pack else "") as out:
            for record in records(read.samples):
                rows.append(record.row)
                texts.append((record.response, record.told))
                out.add(record)
        count = known.judged if known is not None else 0
        if known is not None:
            rows[:count] = known.rows[:count]
        while count < len(rows) and (not pack or time.monotonic() < until):
            rows[count] = judged(rows[count], *texts[count])
            count += 1
        kept = Kept(tuple(rows), read.faults, count, tuple(out.offsets), read.missing)
        self._save(step, kept)
        self._tidy()
        return kept

    def _judge(self, step: Step, kept: Kept, until: float) -> Kept:
        rows, count = list(kept.rows), kept.judged
        for words in self._words(step, kept, count):
            rows[count] = judged(rows[count], words.response, words.told)
            count += 1
            if time.monotonic() > until:
                break
        kept = msgspec.structs.replace(kept, rows=tuple(rows), judged=count)
        self._save(step, kept)
        return kept

    def record(self, step: Step, id: str) -> tuple[Kept, Record | None]:
        """Return the rows of a rollout and the record of a sample, its text judged; None for one that is not there."""
        kept = self.made(step, pack=True, until=0.0)
        place = next((i for i, row in enumerate(kept.rows) if row.id == id), -1)
        if place < 0:
            return kept, None
        found = next(self._decoded(step, kept, place, Record), None) if self.has_records(step) else None
        if found is None:
            found = next(records(one for one in read_step(step).samples if one.id == id), None)
        if found is not None:
            found = msgspec.structs.replace(found, row=judged(found.row, found.response, found.told))
        return kept, found

    def search(self, step: Step, words: str) -> set[str]:
        """Return the ids of the samples in whose prompt or response all words stand, whatever their case."""
        kept = self.made(step, pack=True, until=0.0)
        wanted = words.casefold().split()
        return {
            row.id
            for row, text in zip(kept.rows, self._words(step, kept, 0), strict=False)
            if all(word in f"{text.prompt}\n{text.response or ''}".casefold() for word in wanted)
        }

    def _words(self, step: Step, kept: Kept, start: int) -> Iterator[_Words]:
        if self.has_records(step) and len(kept.offsets) == len(kept.rows):
            yield from self._decoded(step, kept, start, _Words)
            return
        for number, record in enumerate(records(read_step(step).samples)):
            if number >= start:
                yield _Words(record.prompt, record.response, record.told)

    def _decoded(self, step: Step, kept: Kept, start: int, kind: type[T]) -> Iterator[T]:
        decoder = msgspec.msgpack.Decoder(kind)
        ends = [*kept.offsets[1:], None]
        try:
            with open(self._place(step, ".records"), "rb") as file:
                for place in range(start, len(kept.offsets)):
                    end = ends[place]
                    file.seek(kept.offsets[place])
                    yield decoder.decode(file.read(-1 if end is None else end - kept.offsets[place]))
        except (OSError, msgspec.MsgspecError):
            return

    @contextlib.contextmanager
    def _locked(self, step: Step) -> Iterator[None]:
        """Let two pages of one rollout wait for each other instead of reading it twice; a killed one gives way."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                if self.path:
                    file = stack.enter_context(open(self._place(step, ".lock"), "wb"))
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _load(self, path: str, kind: type[T]) -> T | None:
        try:
            with open(path, "rb") as file:
                return msgspec.msgpack.decode(file.read(), type=kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def _save(self, step: Step, kept: Kept) -> None:
        if self.path:
            with contextlib.suppress(OSError):
                _write(self._place(step, ".rows"), msgspec.msgpack.encode(kept))

    def _tidy(self) -> None:
        """Take away the records of all but the rollouts looked at last."""
        if not self.path:
            return
        with contextlib.suppress(OSError):
            packs = [entry for entry in os.scandir(self.path) if entry.name.endswith(".records")]
            for entry in sorted(packs, key=lambda one: one.stat().st_mtime, reverse=True)[PACKS:]:
                os.unlink(entry.path)


class _Pack:
    """Writes records one behind the other; where it cannot, none are kept. path: "" to write nothing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.offsets: list[int] = []
        self._encode = msgspec.msgpack.Encoder().encode
        self._file: BinaryIO | None = None
        self._end = 0

    def __enter__(self) -> _Pack:
        if self.path:
            with contextlib.suppress(OSError):
                self._file = open(f"{self.path}.new", "wb")  # closed in __exit__
        return self

    def add(self, record: Record) -> None:
        """Write one record."""
        if self._file is None:
            return
        raw = self._encode(record)
        try:
            self._file.write(raw)
        except OSError:
            self._give_up()
            return
        self.offsets.append(self._end)
        self._end += len(raw)

    def __exit__(self, kind: object, *_: object) -> None:
        if self._file is None:
            return
        try:
            self._file.close()
            if kind is None:
                os.replace(f"{self.path}.new", self.path)
                return
        except OSError:
            pass
        self._give_up()

    def _give_up(self) -> None:
        self.offsets.clear()
        with contextlib.suppress(OSError):
            if self._file is not None:
                self._file.close()
            os.unlink(f"{self.path}.new")
        self._file = None


def _write(path: str, raw: bytes) -> None:
    with open(f"{path}.new", "wb") as file:
        file.write(raw)
    os.replace(f"{path}.new", path)


def _stamp(path: str) -> str:
    """Return what tells one state of a file from another."""
    try:
        info = os.stat(path)
    except OSError:
        return ""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ino}"


def size_of(step: Step) -> int:
    """Return the bytes of a rollout's files."""
    total = 0
    for path in step.paths:
        with contextlib.suppress(OSError):
            total += os.path.getsize(path)
    return total

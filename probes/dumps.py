"""What the probes of debug dumps share: which files to read, and the parts of a sample they look at.

Both dump slots are read together, because one folder often holds both kinds and content tells them apart. Invariants:
an evaluation dump is only used where there is no other; a folder of a thousand dumps costs no more than MAX_FILES
reads; a file that cannot be read is reported and never counts as an answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from probes.dump_remedies import remedy
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump, DumpFile, list_dumps, read_dump
from probes.readers.torch_tensors import array
from runbook.evidence import Evidence
from runbook.finding import Finding, unknown
from runbook.probe import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
SLOTS = ("rollout_dump", "train_dump")
MAX_FILES = 12
"""Dumps that one probe reads: the first and the last ones and some between."""
SECONDS = 40.0
"""Time after which no further dump is opened, within the probe's deadline."""
DEADLINE = 120.0


@dataclass
class Read:
    """What reading came to; filled while `dumps_of` runs. listed: dumps of that kind; faults: those not readable."""

    listed: int = 0
    opened: int = 0
    faults: list[DumpError] = field(default_factory=list)


def files_of(evidence: Evidence, kind: str) -> tuple[DumpFile, ...]:
    """Return the dumps of a kind in both slots, in rollout order; evaluation dumps only when there are no others."""
    files = [file for file in list_dumps(path for slot in SLOTS for path in evidence.paths(slot)) if file.kind == kind]
    return tuple([file for file in files if not file.evaluation] or files)


def dumps_of(evidence: Evidence, kind: str, report: Progress, read: Read, *, at: int | None = None) -> Iterator[Dump]:
    """Yield dumps of a kind in rollout order, at most MAX_FILES of them; what fails goes to `read.faults`.

    at: only the dumps of this rollout, and those whose number only their content tells.
    """
    files = tuple(file for file in files_of(evidence, kind) if at is None or file.rollout_id in (None, at))
    read.listed = len(files)
    chosen = spread(files, MAX_FILES)
    started = time.monotonic()
    for number, file in enumerate(chosen):
        report(number, len(chosen), "dump")
        if time.monotonic() - started > SECONDS:
            return
        try:
            dump = read_dump(file)
        except DumpError as error:
            read.faults.append(error)
            continue
        read.opened += 1
        if at is None or dump.rollout_id in (None, at):
            yield dump
    report(len(chosen), len(chosen), "dump")


def spread(files: tuple[T, ...], limit: int) -> tuple[T, ...]:
    """Return at most `limit` of some files or rollouts: the first two, the last, and others evenly between."""
    if len(files) <= limit:
        return files
    step = (len(files) - 1) / (limit - 2)
    places = {0, 1, *(round(step * n) for n in range(limit - 1))}
    return tuple(files[place] for place in sorted(places) if place < len(files))


def index_of(sample: dict[str, Any], position: int) -> int:
    """Return the sample's index, which joins rollout and train dumps; its position where it has none."""
    index = sample.get("sample_index", sample.get("index"))
    return index if isinstance(index, int) else position


def numbers(sample: dict[str, Any], name: str) -> NDArray[Any] | None:
    """Return a per-token field as float64; None when it is absent or is not numbers. Raises DumpError."""
    value = sample.get(name)
    if value is None:
        return None
    try:
        return array(value)
    except TypeError:
        return None


def nothing_read(read: Read, en: str, zh: str) -> Finding:
    """Return the unknown of dumps none of which could be used."""
    if read.faults:
        first, do = read.faults[0], remedy(read.faults[0])
        more = f" ({len(read.faults)} files)" if len(read.faults) > 1 else ""
        return unknown(
            f"No dump could be read{more}: {first}.",
            f"没有可读取的 dump：{first.path}（原因见 dump.readable）",
            settle_en=do.en,
            settle_zh=do.zh,
            slots=SLOTS,
        )
    return unknown(
        en,
        zh,
        settle_en="Run again with --save-debug-rollout-data and --save-debug-train-data and give both.",
        settle_zh="加 --save-debug-rollout-data 与 --save-debug-train-data 重新运行，并提供两者。",
        slots=SLOTS,
    )

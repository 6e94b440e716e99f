"""Whether every dump opens safely and holds what slime writes (debug guide, separate debugging).

A dump is a pickle, so `torch.load` of a hostile one runs its code; here nothing is run, and what would have been run is
named. The other faults are the ordinary ones: a job killed while writing, a full disk, a file of another tool.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass

from probes import dumps
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.rollout_dump import DumpFile, list_dumps, read_dump
from probes.readers.torch_zip import ZIP_MAGIC, regular_file_size
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_SHOWN = 40
_ORDER = (Fault.UNSAFE, Fault.TRUNCATED, Fault.FOREIGN, Fault.EMPTY)


@dataclass(frozen=True)
class _Opened:
    """One file: what it is, or why it cannot be used."""

    file: DumpFile
    what: str
    samples: int | None = None
    fault: DumpError | None = None


@probe(
    "dump.readable",
    needs="rollout_dump|train_dump",
    answers=("readable", "truncated", "unsafe", "empty", "foreign"),
    en="Do the debug dumps open, and are they safe?",
    zh="debug dump 能否安全打开？",
    deadline=dumps.DEADLINE,
)
def readable(evidence: Evidence, report: Progress) -> Finding:
    """Open the first and last dumps, and look at the end of every other one."""
    given = [path for slot in dumps.SLOTS for path in evidence.paths(slot)]
    files = list_dumps(given)
    known = tuple(file for file in files if file.kind != "other" or file.path in given)
    files = known or files
    if not files:
        return unknown(
            "The folder holds no file of a dump's name (.pt, .pth, .pkl).",
            "该目录中没有 dump 文件（.pt、.pth、.pkl）。",
            settle_en="Give the file or folder that --save-debug-rollout-data names.",
            settle_zh="提供 --save-debug-rollout-data 指定的文件或目录。",
            slots=dumps.SLOTS,
        )
    fully = set(dumps.spread(files, dumps.MAX_FILES))
    opened = []
    for number, file in enumerate(files):
        report(number, len(files), "dump")
        opened.append(_open(file) if file in fully else _glance(file))
    return _finding(opened)


def _open(file: DumpFile) -> _Opened:
    try:
        dump = read_dump(file)
    except DumpError as error:
        return _Opened(file, error.what, fault=error)
    if not dump.samples:
        empty = DumpError(Fault.EMPTY, file.path, "holds no samples")
        return _Opened(file, empty.what, 0, empty)
    strange = f", objects of {', '.join(dump.opaque[:3])} read as data" if dump.opaque else ""
    return _Opened(file, f"{dump.kind} dump{' ' if dump.version else ''}{dump.version}{strange}", len(dump.samples))


def _glance(file: DumpFile) -> _Opened:
    """Look only at the size and the end record of a zip: what a job killed while writing leaves behind."""
    try:
        size = regular_file_size(file.path)
        with open(file.path, "rb") as stream:
            cut = stream.read(4) == ZIP_MAGIC and not zipfile.is_zipfile(stream)
    except DumpError as error:
        return _Opened(file, error.what, fault=error)
    except OSError as error:
        return _Opened(file, str(error), fault=DumpError(Fault.UNREADABLE, file.path, str(error)))
    if cut:
        fault = DumpError(Fault.TRUNCATED, file.path, f"the zip has no end record after {size} bytes")
        return _Opened(file, fault.what, fault=fault)
    return _Opened(file, f"{file.kind} dump, not opened")


def _finding(opened: list[_Opened]) -> Finding:
    table = _table(opened)
    faults = [one.fault for one in opened if one.fault is not None]
    for fault in _ORDER:
        these = [error for error in faults if error.fault is fault]
        if these:
            more = f" (and {len(these) - 1} more)" if len(these) > 1 else ""
            return found(
                Verdict.PROBLEM,
                fault.value,
                f"{_name(these[0].path)}{more} {_WORDS[fault].en}: {these[0].what}.",
                f"{_name(these[0].path)}{more} {_WORDS[fault].zh}：{these[0].what}。",
                citations=tuple(_citation(error) for error in these[:5]),
                tables=(table,),
            )
    if faults and len(faults) == len(opened):
        return unknown(
            f"No dump can be opened: {faults[0]}.",
            f"没有可打开的 dump：{faults[0]}。",
            settle_en="Give files that can be read.",
            settle_zh="提供可读取的文件。",
            slots=dumps.SLOTS,
        )
    count = sum(one.samples or 0 for one in opened)
    return found(
        Verdict.OK,
        "readable",
        f"{len(opened) - len(faults)} dumps with {count} samples open safely.",
        f"{len(opened) - len(faults)} 个 dump 可安全打开，共 {count} 个样本。",
        citations=tuple(cite(one.file.path, one.what) for one in opened if one.fault is None)[:3],
        tables=(table,),
    )


_WORDS = {
    Fault.UNSAFE: Text("is unsafe", "不安全"),
    Fault.TRUNCATED: Text("is cut off", "被截断"),
    Fault.FOREIGN: Text("is not a dump of a known version", "不是已知版本的 dump"),
    Fault.EMPTY: Text("is empty", "为空"),
}


def _name(path: str) -> str:
    return sanitise(os.path.basename(path), 80)


def _citation(error: DumpError) -> Citation:
    return cite(error.path, error.refused or error.what)


def _table(opened: list[_Opened]) -> Table:
    ranked = sorted(opened, key=lambda one: one.fault is None)[:_SHOWN]
    rows = tuple(
        (
            _name(one.file.path),
            one.file.kind,
            "" if one.file.rollout_id is None else str(one.file.rollout_id),
            "" if one.samples is None else str(one.samples),
            sanitise(one.what, 160),
        )
        for one in ranked
    )
    return Table(Text("Dumps", "dump 文件"), ("file", "kind", "rollout", "samples", "what it is"), rows)

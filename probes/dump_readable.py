"""Whether every dump opens safely and holds what slime writes (debug guide, separate debugging).

A dump is a pickle, so `torch.load` of a hostile one runs its code; here nothing is run, and what would have been run is
named. The other faults are the ordinary ones: a job killed while writing, a full disk, a file of another tool.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass

from probes import dumps
from probes.dump_remedies import remedy
from probes.readers.bounded_read import is_growing
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.rollout_dump import DumpFile, list_dumps, read_dump
from probes.readers.torch_zip import ZIP_MAGIC, regular_file_size
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

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
    if cut and is_growing(file.path):
        fault = DumpError(Fault.WRITING, file.path, "is being written at this moment", kind="writing")
        return _Opened(file, fault.what, fault=fault)
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
            first, do = these[0], remedy(these[0])
            words = _KINDS.get(first.kind, _WORDS[fault])
            return found(
                Verdict.PROBLEM,
                fault.value,
                f"{_name(first.path)}{more} {words.en}: {first.what}. {do.en}",
                f"{_name(first.path)}{more} {words.zh}：{first.what}。{do.zh}",
                citations=tuple(_citation(error) for error in these[:5]),
                tables=(table,),
            )
    if faults and len(faults) == len(opened):
        do = remedy(faults[0])
        return unknown(
            f"No dump can be opened: {faults[0]}.",
            f"没有可打开的 dump：{faults[0]}。",
            settle_en=do.en,
            settle_zh=do.zh,
            slots=dumps.SLOTS,
        )
    whole = [one for one in opened if one.samples is not None and one.fault is None]
    rest, count = len(opened) - len(whole) - len(faults), sum(one.samples or 0 for one in whole)
    en = f"{counted(len(whole), 'dump')} with {counted(count, 'sample')} opened safely"
    zh = f"{len(whole)} 个 dump 已安全打开，共 {count} 个样本"
    if rest:
        en, zh = f"{en}; of {rest} more only the ends were looked at", f"{zh}；另有 {rest} 个只检查了文件末尾"
    if faults:
        en, zh = f"{en}; {len(faults)} could not be opened: {faults[0]}", f"{zh}；{len(faults)} 个无法打开：{faults[0]}"
    return found(
        Verdict.OK,
        "readable",
        f"{en}.",
        f"{zh}。",
        citations=tuple(cite(one.file.path, one.what) for one in opened if one.fault is None)[:3],
        tables=(table,),
    )


_KINDS = {"attack": Text("is malicious", "是恶意文件"), "encrypted": Text("is encrypted", "已加密")}
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

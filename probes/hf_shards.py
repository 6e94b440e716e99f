"""Whether the files of a Hugging Face checkpoint are all there, whole, and as the index says (debug guide, int4 3).

Headers and one listing only, so a checkpoint of 1 TB takes a second. A shard that is absent or damaged explains the
tensors that are gone with it; the other probes of the checkpoint leave those to this one.
"""

from __future__ import annotations

from probes.hf_checkpoint import Checkpoint, open_checkpoint
from probes.hf_structure import Trouble, troubles
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text

ROWS = 40
"""Faults listed; more are counted."""


@probe(
    "hf.shards",
    needs="hf_checkpoint",
    answers=("complete", "missing", "corrupt", "index-incomplete"),
    en="Are all shards of the Hugging Face checkpoint there, whole, and as the index says?",
    zh="HF ckpt 的分片是否齐全、完整，并与 index 一致？",
    deadline=180.0,
)
def shards(evidence: Evidence, report: Progress) -> Finding:
    """Compare listing, index and headers; name the first fault of the gravest kind and list the others."""
    checkpoint = open_checkpoint(evidence, report)
    if isinstance(checkpoint, Finding):
        return checkpoint
    every = troubles(checkpoint)
    real = [trouble for trouble in every if trouble.kind != "note"]
    tables = (_table(every),) if every else ()
    if not real:
        return _complete(checkpoint, tables)
    kind = real[0].kind
    same = [trouble for trouble in real if trouble.kind == kind]
    if kind == "unreadable":
        return unknown(
            same[0].words.en + ".",
            same[0].words.zh + "。",
            settle_en="Give a path that can be read from here.",
            settle_zh="提供可从此处读取的路径。",
            slots=("hf_checkpoint",),
            citations=(same[0].citation,),
        )
    more = len(real) - 1
    verdict = Verdict.PROBLEM if any(trouble.sure for trouble in same) else Verdict.WARNING
    still = _unfinished(checkpoint)
    return found(
        verdict,
        kind,
        same[0].words.en + (f" (and {more} more)" if more else "") + "." + still.en,
        same[0].words.zh + (f"（另有 {more} 处）" if more else "") + "。" + still.zh,
        citations=(*(trouble.citation for trouble in same[:10]), cite(checkpoint.path, _listing(checkpoint))),
        measurements=_counts(checkpoint),
        tables=tables,
    )


def _unfinished(checkpoint: Checkpoint) -> Text:
    names = checkpoint.folder.unfinished
    return (
        Text(f" A download seems unfinished: {names[0]}.", f"似乎有未完成的下载：{names[0]}。")
        if names
        else Text("", "")
    )


def _complete(checkpoint: Checkpoint, tables: tuple[Table, ...]) -> Finding:
    folder = checkpoint.folder
    if checkpoint.bins:
        en, zh = (
            "their zip directories are whole; names and shapes are inside pickles",
            "zip 目录完整；名称与形状在 pickle 内",
        )
    else:
        count = sum(len(header.tensors) for header in checkpoint.headers.values())
        en, zh = f"{count} tensors, as the index says", f"共 {count} 个 tensor，与 index 一致"
        if folder.index is None:
            en, zh = f"{count} tensors, no index", f"共 {count} 个 tensor，没有 index"
    return found(
        Verdict.OK,
        "complete",
        f"All {len(folder.weights)} weight files are there and whole: {en}.",
        f"{len(folder.weights)} 个权重文件齐全、完整：{zh}。",
        citations=(cite(checkpoint.path, _listing(checkpoint)),),
        measurements=_counts(checkpoint),
        tables=tables,
    )


def _listing(checkpoint: Checkpoint) -> str:
    names = checkpoint.folder.weights
    return f"{len(names)} weight files, {names[0]} to {names[-1]}"


def _counts(checkpoint: Checkpoint) -> tuple[Measurement, ...]:
    folder = checkpoint.folder
    sizes = sum(folder.files[name] for name in folder.weights)
    wanted = len(folder.named) or max((series.total for series in folder.series), default=0)
    return (
        Measurement("weight files", float(len(folder.weights)), "files", float(wanted) or None, "index or -of-NNNNN"),
        Measurement("weight bytes", float(sizes), "bytes"),
    )


def _table(every: list[Trouble]) -> Table:
    rows = tuple((trouble.kind, trouble.file, trouble.words.en) for trouble in every[:ROWS])
    zh = tuple(dict.fromkeys((trouble.words.en, trouble.words.zh) for trouble in every[:ROWS]))
    left = len(every) - ROWS
    if left > 0:
        rows += (("", "", f"{left} more"),)
    return Table(Text("Files and index", "文件与 index"), ("kind", "file", "what"), rows, zh)

"""Whether the bytes of a checkpoint are weights at all: zeros, NaN, Inf, constants, copies (debug guide, int4 4).

Two probes over one judgement. `hf.content_sample` reads a small checkpoint whole and a few tensors of each kind of a
large one; `hf.content` reads everything, hours if need be, and can be stopped and resumed: what either has read is
kept (`content_state`), so that asking the quick one again after the long one gives the whole answer. A shard that
cannot be read makes "nothing found" unknown, never "finite".
"""

from __future__ import annotations

from probes.content_judge import FAULTS, Mark, judge
from probes.content_ray import ray_engine
from probes.content_sample import choose
from probes.content_scan import Scan, known_of, local_engine, pieces_of, scan
from probes.hf_checkpoint import Checkpoint, open_checkpoint, weights_of
from probes.hf_grid import NONFINITE, PACKED, ZERO, build_grid
from probes.readers.tensor_scan import Piece
from runbook.evidence import Evidence
from runbook.finding import Finding, Grid, Measurement, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

ANSWERS = ("finite", "zero", "nonfinite", "suspicious")
ROWS = 30
SPEED_BYTES = 100_000_000
"""Bytes from which on a speed means something."""
_MARKS = {"nonfinite": NONFINITE, "zero": ZERO}


@probe(
    "hf.content_sample",
    needs="hf_checkpoint",
    answers=ANSWERS,
    en="Are the checkpoint's weights filled with finite numbers (a quick look at a large one)?",
    zh="ckpt 的权重是否都是正常数值（大 ckpt 只抽查）？",
    deadline=600.0,
)
def content_sample(evidence: Evidence, report: Progress) -> Finding:
    """Read everything of a small checkpoint, a sample of a large one."""
    checkpoint = open_checkpoint(evidence, report)
    if isinstance(checkpoint, Finding):
        return checkpoint
    pieces = pieces_of(checkpoint)
    if not pieces:
        return _no_safetensors(checkpoint)
    wanted = choose(pieces)
    known = known_of(checkpoint)
    for file, some in pieces.items():  # what an earlier scan has read costs nothing to look at again
        chosen = set(wanted.get(file, ()))
        wanted[file] = [piece for piece in some if piece in chosen or piece in known.get(file, {})]
    engine, where = local_engine(_size(wanted))
    return _told(checkpoint, pieces, scan(checkpoint, wanted, engine, report), where)


@probe(
    "hf.content",
    needs="hf_checkpoint",
    answers=ANSWERS,
    en="Are all of the checkpoint's weights filled with finite numbers (every byte is read)?",
    zh="ckpt 的全部权重是否都是正常数值（逐字节读取）？",
    deadline=24 * 3600.0,
    heavy=True,
)
def content(evidence: Evidence, report: Progress) -> Finding:
    """Read every tensor, on the nodes of a Ray cluster when its address was given."""
    checkpoint = open_checkpoint(evidence, report)
    if isinstance(checkpoint, Finding):
        return checkpoint
    pieces = pieces_of(checkpoint)
    if not pieces:
        return _no_safetensors(checkpoint)
    address = evidence.first("ray")
    engine, where = ray_engine(address) if address else (None, "")
    if engine is None:
        engine, here = local_engine(_size(pieces))
        where = f"{here} ({where})" if where else here
    result = scan(checkpoint, pieces, engine, report)
    nodes = [name for name in result.readers if name]
    return _told(checkpoint, pieces, result, f"{where}, of which {len(nodes)} read" if nodes else where)


def _size(pieces: dict[str, list[Piece]]) -> int:
    return sum(piece.end - piece.start for some in pieces.values() for piece in some)


def _no_safetensors(checkpoint: Checkpoint) -> Finding:
    return unknown(
        f"{checkpoint.path} holds pickled weights (.bin), whose content is not read.",
        f"{checkpoint.path} 是 pickle 格式的权重（.bin），不读取其内容。",
        settle_en="Convert the checkpoint to safetensors.",
        settle_zh="把 ckpt 转成 safetensors。",
    )


def _told(checkpoint: Checkpoint, pieces: dict[str, list[Piece]], result: Scan, where: str) -> Finding:
    """Turn what was read into a finding."""
    marks = judge(checkpoint, result.looked)
    tables = (_table(marks),) if marks else ()
    measurements = _measurements(pieces, result)
    grids = _grids(checkpoint, marks)
    if marks and (marks[0].sure or not _rest(checkpoint, pieces, result)):
        answer = marks[0].fault if marks[0].sure else "suspicious"
        same = [mark for mark in marks if mark.sure and mark.fault == answer] or marks
        others = len(marks) - 1
        return found(
            Verdict.PROBLEM if marks[0].sure else Verdict.WARNING,
            answer,
            f"{same[0].words.en}" + (f" ({others} more tensors to look at)." if others else "."),
            f"{same[0].words.zh}" + (f"（另有 {others} 个可疑）。" if others else "。"),
            citations=tuple(mark.citation for mark in (*same[:8], *[mark for mark in marks if mark not in same][:4])),
            measurements=measurements,
            tables=tables,
            grids=grids,
        )
    rest = _rest(checkpoint, pieces, result)
    if rest is not None:
        return unknown(
            rest.en,
            rest.zh,
            settle_en=f"slime-runbook probes run hf.content --hf-checkpoint {checkpoint.path}",
            settle_zh=f"slime-runbook probes run hf.content --hf-checkpoint {checkpoint.path}",
            citations=tuple(mark.citation for mark in marks[:4]),
        )
    count = len(result.looked)
    return found(
        Verdict.OK,
        "finite",
        f"All {count} tensors are finite, and none that must not be is zero ({_amount(pieces)}, {where}).",
        f"{count} 个 tensor 均为有限值，不该为零的都不为零（{_amount(pieces)}，{where}）。",
        citations=(cite(checkpoint.path, f"{count} tensors in {len(pieces)} files"),),
        measurements=measurements,
        grids=grids,
    )


def _rest(checkpoint: Checkpoint, pieces: dict[str, list[Piece]], result: Scan) -> Text | None:
    """Say what was not read; None when everything was."""
    absent = checkpoint.folder.absent or checkpoint.folder.gaps
    broken = next(
        (file for file, header in checkpoint.headers.items() if len(pieces[file]) < len(header.tensors)), None
    )
    broken = broken or next((file for file, header in checkpoint.headers.items() if not header.readable), None)
    if result.failures:
        file, why = next(iter(result.failures.items()))
        return Text(f"{file} could not be read: {why}.", f"{file} 无法读取：{why}。")
    if absent or broken:
        file = sanitise(absent[0] if absent else broken or "", 120)
        state, zh = ("is absent", "不存在") if absent else ("is cut off or damaged", "被截断或损坏")
        return Text(
            f"What could be read is sound, but {file} {state}: see hf.shards.",
            f"能读的都正常，但 {file} {zh}：见 hf.shards。",
        )
    total = sum(map(len, pieces.values()))
    if len(result.looked) < total:
        return Text(
            f"The {len(result.looked)} tensors of the sample are sound; {total - len(result.looked)} were not read.",
            f"抽查的 {len(result.looked)} 个 tensor 正常；另有 {total - len(result.looked)} 个未读。",
        )
    return None


def _amount(pieces: dict[str, list[Piece]]) -> str:
    size = _size(pieces)
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _measurements(pieces: dict[str, list[Piece]], result: Scan) -> tuple[Measurement, ...]:
    total = sum(map(len, pieces.values()))
    measured = [
        Measurement("tensors looked at", float(len(result.looked)), "tensors", float(total), "headers of all shards")
    ]
    if result.read:
        measured.append(Measurement("read now", round(result.read / 1e6, 1), "MB"))
    if result.read >= SPEED_BYTES:
        measured.append(Measurement("speed", round(result.read / 1e9 / max(result.seconds, 1e-6), 2), "GB/s"))
    if result.resumed:
        measured.append(Measurement("taken from an earlier scan", round(result.resumed / 1e6, 1), "MB"))
    return tuple(measured)


def _table(marks: list[Mark]) -> Table:
    words = dict(zip(FAULTS, ("NaN or Inf", "all zero", "stretches of zeros", "all equal", "a copy"), strict=True))
    rows = [(words[mark.fault], "" if mark.sure else "doubtful", sanitise(mark.words.en, 200)) for mark in marks[:ROWS]]
    if len(marks) > ROWS:
        rows.append(("", "", f"{len(marks) - ROWS} more"))
    return Table(Text("Tensors to look at", "需要关注的 tensor"), ("what", "", "tensor"), tuple(rows))


def _grids(checkpoint: Checkpoint, marks: list[Mark]) -> tuple[Grid, ...]:
    weights = weights_of(checkpoint)
    drawn = {name: PACKED for name, weight in weights.items() if weight.packed}
    for mark in reversed(marks):  # the gravest is last to be set
        if mark.fault in _MARKS:
            drawn[mark.name] = _MARKS[mark.fault]
    grid = build_grid(weights, drawn)
    return (grid,) if grid else ()

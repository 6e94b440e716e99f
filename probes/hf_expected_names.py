"""Whether every layer of a Hugging Face checkpoint has the tensors that its family needs (debug guide 1.1 b, int4 3).

Names and shapes come from one table a family and config.json; an unknown family is compared by peer layers. Tensors
that are gone because their shard is, are that shard's consequence and not accused here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping

from probes.hf_checkpoint import Checkpoint, Weight, open_checkpoint, shorten, weights_of
from probes.hf_grid import MISSING, PACKED, build_grid
from probes.hf_names import LAYER, Comparison, Misshapen, compare
from probes.hf_structure import missing_files
from probes.readers.hf_config import field
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Grid, Measurement, Table, Verdict, cite, found, not_applicable, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

ROWS = 30


@probe(
    "hf.expected_names",
    needs="hf_checkpoint",
    answers=("complete", "layer-keys-missing", "wrong-shape", "extra", "unknown-family"),
    en="Has every layer of the Hugging Face checkpoint the tensors that its family needs?",
    zh="HF ckpt 的每一层是否都有该模型系列所需的 tensor？",
    deadline=180.0,
)
def expected_names(evidence: Evidence, report: Progress) -> Finding:
    """Compare the names and shapes of the headers with the family's table."""
    checkpoint = open_checkpoint(evidence, report)
    if isinstance(checkpoint, Finding):
        return checkpoint
    weights = weights_of(checkpoint)
    if not weights:
        return unknown(
            "The names are inside pickles (.bin without an index) and are not read.",
            "名称都在 pickle 内（.bin 且没有 index），不读取。",
            settle_en="Convert the checkpoint to safetensors.",
            settle_zh="把 ckpt 转成 safetensors。",
        )
    lost = _lost_file(checkpoint)
    if lost:
        return not_applicable(
            f"{lost} cannot be read, so what is missing is its consequence: see hf.shards.",
            f"{lost} 无法读取，缺少的 tensor 是其后果：见 hf.shards。",
        )
    comparison = compare(checkpoint.config, weights)
    return _judged(checkpoint, weights, comparison)


def _lost_file(checkpoint: Checkpoint) -> str:
    """Return the first file that is absent or has no readable header, "" when there is none."""
    gone = next((trouble.file for trouble in missing_files(checkpoint) if trouble.kind == "missing"), "")
    named = checkpoint.folder.named
    unread = (
        name for name, header in checkpoint.headers.items() if not header.readable and (not named or name in named)
    )
    return gone or sanitise(next(unread, ""), 200)


def _judged(checkpoint: Checkpoint, weights: Mapping[str, Weight], comparison: Comparison) -> Finding:
    grids = _grids(weights, comparison)
    family = comparison.family or "an unknown family"
    if comparison.missing:
        first = _where(comparison.missing)
        count = len(comparison.missing)
        return found(
            Verdict.PROBLEM,
            "layer-keys-missing",
            f"{count} tensors that {family} needs are in no file: {first.en}.",
            f"缺少 {comparison.family or '（未知系列）'} 所需的 {count} 个 tensor：{first.zh}。",
            citations=_cite_missing(checkpoint, weights, comparison),
            measurements=(_measure(weights, comparison),),
            tables=(_names_table(Text("Missing tensors", "缺少的 tensor"), comparison.missing),),
            grids=grids,
        )
    if comparison.misshapen:
        return _misshapen(checkpoint, weights, comparison, grids)
    if comparison.odd:
        first = _where(comparison.odd)
        return unknown(
            f"No table for {_model_type(checkpoint)}; by its peers, one layer lacks {first.en}.",
            f"没有 {_model_type(checkpoint)} 的表；与同类层相比，有一层缺少 {first.zh}。",
            settle_en="Compare with the checkpoint it was converted from.",
            settle_zh="与转换前的 ckpt 对比。",
            citations=(cite(checkpoint.index_path, f"no {shorten(comparison.odd, 1)}"),),
        )
    if comparison.extra:
        return found(
            Verdict.WARNING,
            "extra",
            f"All that {family} needs is there, and {len(comparison.extra)} tensors more: {shorten(comparison.extra)}.",
            f"{family} 所需的都在，另有 {len(comparison.extra)} 个多余 tensor：{shorten(comparison.extra)}。",
            citations=(
                cite(os.path.join(checkpoint.path, weights[comparison.extra[0]].file), f"holds {comparison.extra[0]}"),
            ),
            measurements=(_measure(weights, comparison),),
            tables=(_names_table(Text("Tensors beyond the family's table", "表外的 tensor"), comparison.extra),),
            grids=grids,
        )
    if not comparison.family:
        return found(
            Verdict.OK,
            "unknown-family",
            f"There is no table for {_model_type(checkpoint)}; compared with each other, its layers are even.",
            f"没有 {_model_type(checkpoint)} 的表；各层相互比较，没有缺漏。",
            citations=_cite_layers(checkpoint),
            grids=grids,
        )
    return found(
        Verdict.OK,
        "complete",
        f"Every tensor that {family} needs is there ({len(weights)} tensors, {_layers(comparison)} layers).",
        f"{family} 所需的 tensor 齐全（{len(weights)} 个，{_layers(comparison)} 层）。",
        citations=_cite_layers(checkpoint),
        measurements=(_measure(weights, comparison),),
        grids=grids,
    )


def _misshapen(
    checkpoint: Checkpoint, weights: Mapping[str, Weight], comparison: Comparison, grids: tuple[Grid, ...]
) -> Finding:
    first = comparison.misshapen[0]
    rows = tuple((sanitise(one.name, 120), _size(one.wanted), _size(one.found)) for one in comparison.misshapen[:ROWS])
    padding = _padding(first)
    file = os.path.join(checkpoint.path, weights[first.name].file)
    return found(
        Verdict.PROBLEM,
        "wrong-shape",
        f"{first.name} is {_size(first.found)}, and config.json asks for {_size(first.wanted)}{padding.en} "
        f"({len(comparison.misshapen)} tensors differ).",
        f"{first.name} 为 {_size(first.found)}，config.json 要求 {_size(first.wanted)}{padding.zh}"
        f"（共 {len(comparison.misshapen)} 个不符）。",
        citations=(cite(file, f"{first.name}: {_size(first.found)}"), *_cite_layers(checkpoint)),
        tables=(Table(Text("Shapes", "形状"), ("tensor", "config.json", "file"), rows),),
        grids=grids,
    )


def _padding(one: Misshapen) -> Text:
    """Say that rows beyond the vocabulary look like Megatron's padding."""
    if not one.name.endswith(("embed_tokens.weight", "lm_head.weight")) or len(one.found) != len(one.wanted):
        return Text("", "")
    rows, vocab = one.found[0], one.wanted[0]
    if vocab is None or rows <= vocab or rows % 64 or one.found[1:] != one.wanted[1:]:
        return Text("", "")
    return Text(f": {rows - vocab} rows of vocabulary padding were left", f"：残留 {rows - vocab} 行词表 padding")


def _where(names: tuple[str, ...]) -> Text:
    """Say which layers the names belong to: "layer 3 (81), layer 5 (1): first, second, …"."""
    layers = Counter(int(match["layer"]) for match in map(LAYER.match, names) if match)
    counts = ", ".join(f"layer {layer} ({count})" for layer, count in sorted(layers.items())[:6])
    counts_zh = "、".join(f"第 {layer} 层（{count} 个）" for layer, count in sorted(layers.items())[:6])
    shown = shorten(names)
    return Text(f"{counts}: {shown}", f"{counts_zh}：{shown}") if layers else Text(shown, shown)


def _cite_missing(
    checkpoint: Checkpoint, weights: Mapping[str, Weight], comparison: Comparison
) -> tuple[Citation, ...]:
    """Cite where the name is absent, a peer layer that has it, and the line of config.json that asks for it."""
    name = comparison.missing[0]
    cited = [cite(checkpoint.path, f"{name} is in none of {len(checkpoint.folder.weights)} files")]
    match = LAYER.match(name)
    if match:
        rest = f".{match['rest']}"
        peer = next((one for one in weights if one.endswith(rest) and one != name), None)
        if peer is not None:
            path = os.path.join(checkpoint.path, weights[peer].file)
            cited.append(cite(path, f"holds {peer}"))
    return (*cited, *_cite_layers(checkpoint))


def _cite_layers(checkpoint: Checkpoint) -> tuple[Citation, ...]:
    """Cite the line of config.json that says how many layers there are."""
    if checkpoint.config is None:
        return (cite(checkpoint.path, "no config.json"),)
    layers = field(checkpoint.config, "num_layers")
    return (layers.citation,) if layers else (cite(checkpoint.config.path, "no num_hidden_layers"),)


def _grids(weights: Mapping[str, Weight], comparison: Comparison) -> tuple[Grid, ...]:
    marks = {name: PACKED for name, weight in weights.items() if weight.packed}
    names: Iterable[str] = weights
    if comparison.missing:
        marks |= dict.fromkeys(comparison.missing, MISSING)
        names = (*(comparison.expected.params if comparison.expected else ()), *weights)
        needed = set(weights) | set(comparison.missing)
        names = [name for name in dict.fromkeys((*names, *comparison.missing)) if name in needed]
    grid = build_grid(names, marks)
    return (grid,) if grid else ()


def _measure(weights: Mapping[str, Weight], comparison: Comparison) -> Measurement:
    wanted = comparison.expected.params.values() if comparison.expected else ()
    needed = sum(not param.optional for param in wanted)
    there = (
        sum(name in weights for name, param in comparison.expected.params.items() if not param.optional)
        if comparison.expected
        else len(weights)
    )
    return Measurement(
        "needed tensors present", float(there), "tensors", float(needed) or None, f"family table {comparison.family}"
    )


def _names_table(title: Text, names: tuple[str, ...]) -> Table:
    rows = tuple((sanitise(name, 160),) for name in names[:ROWS])
    if len(names) > ROWS:
        rows += ((f"{len(names) - ROWS} more",),)
    return Table(title, ("tensor",), rows)


def _size(shape: tuple[int | None, ...]) -> str:
    return "×".join("?" if size is None else str(size) for size in shape) or "scalar"


def _layers(comparison: Comparison) -> int:
    return comparison.expected.layers if comparison.expected else 0


def _model_type(checkpoint: Checkpoint) -> str:
    name = checkpoint.config.model_type if checkpoint.config else ""
    return sanitise(name, 60) or "a checkpoint without config.json"

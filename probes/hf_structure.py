"""What is wrong with the structure of a checkpoint: missing shards, damaged shards, an index that does not fit.

Pure functions over a `Checkpoint`; `hf.shards` turns their faults into one finding. What no program minds is told apart
from what breaks a load: a file that nobody names (`consolidated.safetensors`, shards of an older conversion), rotary
tables in the files and not in the index, and `total_size` are no faults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from probes.hf_checkpoint import Checkpoint, cite_needle, count_by_file, shorten, weights_of
from probes.hf_names import LAYER, compare
from probes.readers.hf_index import Index, is_main
from probes.readers.safetensors_header import Fault
from runbook.finding import Citation, cite
from runbook.text import Text, sanitise

UNMINDED = re.compile(r"(rotary_emb\.inv_freq|rotary_pos_emb\.inv_freq|\.attn\.(masked_)?bias|\.position_ids)\Z")
"""Tensors that loaders recompute, so nobody minds their absence from the index."""

ORDER = ("missing", "corrupt", "unreadable", "index-incomplete", "note")


@dataclass(frozen=True)
class Trouble:
    """One fault. kind: what `hf.shards` would answer by it, "unreadable", or "note" for what breaks nothing.

    words: a clause that begins with the file's name. sure: it is proven by the files alone.
    """

    kind: str
    file: str
    words: Text
    citation: Citation
    sure: bool = True


def troubles(checkpoint: Checkpoint) -> list[Trouble]:
    """Return every structural fault, the gravest kind first."""
    found = [*missing_files(checkpoint), *_damaged(checkpoint), *_index_troubles(checkpoint)]
    return sorted(found, key=lambda trouble: (ORDER.index(trouble.kind), not trouble.sure))


def missing_files(checkpoint: Checkpoint) -> Iterator[Trouble]:
    """Yield the files that the index names and that are absent, and holes of the numbering."""
    folder = checkpoint.folder
    counts = count_by_file(folder.index.weight_map) if folder.index and folder.index.weight_map else {}
    for name in folder.absent:
        shown = sanitise(name, 200)
        en = f"{shown} is not there; the index puts {counts[name]} tensors into it"
        words = Text(en, f"缺少 {shown}；index 中有 {counts[name]} 个 tensor 位于其中")
        yield Trouble("missing", shown, words, cite_needle(checkpoint.index_path, f'"{name}"', shown))
    gaps = folder.gaps
    if not gaps:
        return
    total = max(series.total for series in folder.series)
    words = Text(
        f"{shorten(gaps)} is not there although the names count to {total}",
        f"编号应有 {total} 个分片，但缺少 {shorten(gaps)}",
    )
    place = cite(checkpoint.path, f"{len(folder.weights)} weight files; no {shorten(gaps)}")
    if not folder.named:
        yield Trouble("missing", gaps[0], words, place)
        return
    comparison = compare(checkpoint.config, weights_of(checkpoint))
    if comparison.missing:
        lacking = shorten(comparison.missing)
        more = Text(f"{words.en}, and with it {lacking}", f"{words.zh}，并因此缺少 {lacking}")
        yield Trouble("missing", gaps[0], more, place)
    else:
        complete = comparison.family != ""
        yield Trouble("note" if complete else "missing", gaps[0], words, place, sure=complete)


def _damaged(checkpoint: Checkpoint) -> Iterator[Trouble]:
    """Yield the weight files that are not what they should be."""
    faults = {name: header.faults for name, header in checkpoint.headers.items()}
    faults |= {name: one.faults for name, one in checkpoint.bins.items()}
    named = set(checkpoint.folder.named)
    for name, found in sorted(faults.items()):
        if not found:
            continue
        first, shown = found[0], sanitise(name, 200)
        used = name in named if named else is_main(name) or len(faults) == 1
        kind = "unreadable" if first.fault is Fault.UNREADABLE else "corrupt"
        more = f" (+{len(found) - 1})" if len(found) > 1 else ""
        words = Text(f"{shown} {first.words.en}{more}", f"{shown} {first.words.zh}{more}")
        path = os.path.join(checkpoint.path, name)
        yield Trouble(kind if used else "note", shown, words, cite(path, f"{shown}: {first.words.en}"))


def _index_troubles(checkpoint: Checkpoint) -> Iterator[Trouble]:
    """Yield where the index and the shards' own keys disagree."""
    folder, index = checkpoint.folder, checkpoint.folder.index
    if index is None:
        if len(folder.weights) > 1 and any(len(series.present) > 1 for series in folder.series):
            words = Text(
                f"{len(folder.weights)} shards and no index: transformers will not load them",
                f"有 {len(folder.weights)} 个分片但没有 index：transformers 无法加载",
            )
            yield Trouble("index-incomplete", "index", words, cite(checkpoint.path, words.en), sure=False)
        return
    shown = os.path.basename(index.path)
    if index.weight_map is None:
        fault = index.fault or Text("cannot be used", "无法使用")
        words = Text(f"{shown} {fault.en}", f"{shown} {fault.zh}")
        yield Trouble("index-incomplete", shown, words, cite(index.path, words.en))
    elif checkpoint.headers:
        yield from _against_headers(checkpoint, index, index.weight_map)


def _against_headers(checkpoint: Checkpoint, index: Index, weight_map: Mapping[str, str]) -> Iterator[Trouble]:
    """Compare the index with the headers, both ways."""
    keys = {name: header.tensors for name, header in checkpoint.headers.items() if header.readable}
    shown = os.path.basename(index.path)
    absent = [name for name, file in weight_map.items() if file in keys and name not in keys[file]]
    if absent:
        holder = {key: file for file, tensors in keys.items() for key in tensors}
        elsewhere = [name for name in absent if name in holder]
        if elsewhere:
            name = elsewhere[0]
            en = f"{shown} puts {shorten(elsewhere)} into {weight_map[name]}; it is in {holder[name]}"
            words = Text(en, f"{shown} 称 {shorten(elsewhere)} 在 {weight_map[name]} 中，实际在 {holder[name]}")
        else:
            name = absent[0]
            en = f"{shown} names {shorten(absent)}, which is in no file"
            words = Text(en, f"{shown} 列出 {shorten(absent)}，但没有任何文件包含它")
        yield Trouble("index-incomplete", shown, words, cite_needle(index.path, f'"{name}"', en))
    named = set(weight_map.values())
    unlisted: dict[str, str] = {}
    for file, tensors in sorted(keys.items()):
        lacking = [key for key in tensors if key not in weight_map and UNMINDED.search(key) is None]
        leftover = file not in named and not any(file in one.present and one.named for one in checkpoint.folder.series)
        if leftover:
            words = Text(f"{sanitise(file, 200)} is named by nobody", f"没有任何地方引用 {sanitise(file, 200)}")
            yield Trouble("note", file, words, cite(os.path.join(checkpoint.path, file), words.en))
        else:
            unlisted.update(dict.fromkeys(lacking, file))
    if unlisted:
        yield _unlisted(checkpoint, shown, unlisted)


def _unlisted(checkpoint: Checkpoint, index: str, holder: Mapping[str, str]) -> Trouble:
    """Say that shards hold tensors that the index lacks. holder: file by tensor."""
    first, file = next(iter(holder.items()))
    layers = sorted({int(match["layer"]) for match in map(LAYER.match, holder) if match})
    shown = ", ".join(map(str, layers[:6])) + (" …" if len(layers) > 6 else "")
    en, zh = (f" of layer {shown}", f"（第 {shown} 层）") if layers else ("", "")
    files = shorten(sorted(set(holder.values())), 2)
    words = Text(
        f"{index} lacks {len(holder)} tensors{en} that {files} holds, such as {sanitise(first, 120)}",
        f"{index} 缺少 {files} 中的 {len(holder)} 个 tensor{zh}，例如 {sanitise(first, 120)}",
    )
    place = cite(os.path.join(checkpoint.path, file), f"holds {first}, which {index} lacks")
    return Trouble("index-incomplete", file, words, place)

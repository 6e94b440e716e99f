"""Whether a torch_dist checkpoint holds the parameters, in the shapes, that the model's config.json asks for (1.1 a).

Only `.metadata` is read. What is there in another shape, in another number of layers, or as a kind of parameter that
no layer has, comes from other MODEL_ARGS: slime's Megatron loads such a checkpoint "successfully" and leaves what it
lacks at random values. What single numbered layers lack was lost. Invariants: padding of the vocabulary is no
difference; prediction layers, optimizer and extra state are not judged; a parameter that no rule knows proves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from probes.families import tables
from probes.families.expand import Expected, expand
from probes.megatron_expected import HEAD, UNKNOWN_TO, Shape, Wanted, layers_of, outer_of
from probes.readers import torch_dist
from probes.readers.dump_errors import DumpError
from probes.readers.hf_config import HfConfig, cite_key, field, read_config
from probes.readers.torch_dist import Stored
from probes.readers.torch_dist_names import STACKED, Named, sort_keys
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Table, Verdict, cite, found, not_applicable, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

FLAGS = {"megatron_load": "--load", "megatron_ref": "--ref-load"}
ROWS = 30
PADDED = frozenset(("embedding.word_embeddings.weight", HEAD))
SPLIT = (STACKED, "")
"""In place of where a parameter is: its halves are stored under names of their own."""
MAX_PADDING = 1 << 16
"""Rows of padding that are still padding: --make-vocab-size-divisible-by times the tensor-parallel size."""


@dataclass(frozen=True)
class Difference:
    """One difference. answer: "missing" or "differs". key: as `.metadata` has it, or would. sure: it is proof."""

    answer: str
    key: str
    wanted: str
    found: str
    sure: bool = True


@dataclass(frozen=True)
class _Place:
    """An iteration folder to be judged. flag: the argument that names it."""

    flag: str
    folder: str

    @property
    def metadata(self) -> str:
        """Return the file that describes it."""
        return os.path.join(self.folder, ".metadata")


@probe(
    "megatron.names",
    needs=("megatron_load|megatron_ref", "hf_checkpoint"),
    answers=("match", "missing", "differs"),
    en="Does the Megatron checkpoint hold the parameters that config.json asks for?",
    zh="Megatron ckpt 的参数名与形状是否与 config.json 一致？",
    deadline=180.0,
)
def names(evidence: Evidence, report: Progress) -> Finding:
    """Compare each folder that is given; the first one with a difference is told."""
    report(0, None, "")
    config = next((one for path in evidence.paths("hf_checkpoint") if (one := read_config(path)) is not None), None)
    table = tables().get(config.model_type) if config is not None else None
    if config is None or table is None:
        return _no_family(config)
    expected = expand(table, config, ())
    if expected is None:
        return _no_family(config)
    findings = []
    for slot, flag in FLAGS.items():
        for path in dict.fromkeys(evidence.paths(slot)):
            place = _place(flag, path)
            findings.append(place if isinstance(place, Finding) else _judged(place, config, expected))
    order = (Verdict.PROBLEM, Verdict.WARNING, Verdict.UNKNOWN, Verdict.OK, Verdict.NOT_APPLICABLE)
    return min(findings, key=lambda finding: order.index(finding.verdict))


def _no_family(config: HfConfig | None) -> Finding:
    what = f"model type {sanitise(config.model_type, 60)!r}" if config else "config.json"
    return unknown(
        f"There is no table for {what}, so what Megatron must store cannot be told.",
        f"没有 {what} 的表，无法推断 Megatron 应保存哪些参数。",
        settle_en="Give the Hugging Face folder of a supported model, with its config.json.",
        settle_zh="提供受支持模型的 HF 目录及其 config.json。",
        slots=("hf_checkpoint",),
    )


def _place(flag: str, path: str) -> _Place | Finding:
    """Return the iteration folder that is loaded, or why there is none to judge."""
    try:
        folder = torch_dist.read_folder(path)
        if folder.kind == "hf":
            return not_applicable(f"{flag} is a Hugging Face folder.", f"{flag} 是 HF 目录。")
        if folder.kind == "iteration":
            inner = path
        elif folder.wanted is not None:
            inner = os.path.join(path, folder.wanted)
        elif len(folder.iterations) == 1:
            inner = os.path.join(path, folder.iterations[0])
        else:
            return _not_here(flag, path)
        inside = torch_dist.names_in(inner)
    except OSError:
        return _not_here(flag, path)
    if any(torch_dist.LEGACY_RANK.match(name) for name in inside):
        return not_applicable(
            f"{flag} is in the older mp_rank layout, whose names lie inside pickles; only its ranks are checked.",
            f"{flag} 是旧的 mp_rank 格式，参数名在 pickle 内；只检查 rank 是否齐全。",
        )
    return _Place(flag, inner) if ".metadata" in inside else _not_here(flag, path)


def _not_here(flag: str, path: str) -> Finding:
    return not_applicable(
        f"{flag} {path} has no iteration with .metadata: see megatron.checkpoint_dir.",
        f"{flag} {path} 中没有带 .metadata 的迭代目录：见 megatron.checkpoint_dir。",
    )


def _judged(place: _Place, config: HfConfig, expected: Expected) -> Finding:
    try:
        named = sort_keys(torch_dist.read_metadata(place.metadata).tensors)
    except (DumpError, OSError) as error:
        why = sanitise(error.what if isinstance(error, DumpError) else str(error), 200)
        return unknown(
            f"{place.metadata} cannot be read: {why}.",
            f"{place.metadata} 无法读取：{why}。",
            settle_en="Give a checkpoint folder that is readable from here.",
            settle_zh="提供可从此处读取的 ckpt 目录。",
            slots=tuple(FLAGS),
        )
    if not named.layers:
        return unknown(
            f"No key of {place.metadata} is a layer as Megatron names them.",
            f"{place.metadata} 中没有 Megatron 命名的层。",
            settle_en="Tell by hand how this checkpoint names its parameters.",
            settle_zh="请人工确认该 ckpt 的参数命名。",
        )
    tied = field(config, "tied")
    every = compare(named, expected, tied=tied is not None and tied.value is True)
    differences = sorted(every, key=lambda one: (not one.sure, one.answer != "differs"))
    family = config.model_type
    if not differences:
        return found(
            Verdict.OK,
            "match",
            f"The {len(named.keys)} model parameters of {place.flag} are those of {family} with this config.json.",
            f"{place.flag} 的 {len(named.keys)} 个模型参数与 {family} 的 config.json 一致。",
            citations=(cite(place.metadata, f"{len(named.keys)} model parameters"),),
            measurements=(Measurement("model parameters", float(len(named.keys)), "keys"),),
        )
    first = differences[0]
    more = f" ({len(differences) - 1} more differences)" if len(differences) > 1 else ""
    return found(
        Verdict.PROBLEM if first.sure else Verdict.WARNING,
        first.answer,
        f"{place.flag}: {first.key} is {first.found}, config.json asks for {first.wanted}{more}.",
        f"{place.flag}：{first.key} 为 {first.found}，config.json 要求 {first.wanted}"
        + (f"（另有 {len(differences) - 1} 处不符）。" if more else "。"),
        citations=(
            *(cite(place.metadata, f"{one.key}: {one.found}") for one in differences[:5]),
            *_lines(config, first),
        ),
        tables=(_table(place, differences),),
    )


def _lines(config: HfConfig, first: Difference) -> tuple[Citation, ...]:
    """Cite the line of config.json that the difference is about: the number of layers, else the model type."""
    layers = field(config, "num_layers")
    if first.key.endswith("layers") and layers is not None:
        return (layers.citation,)
    return (cite_key(config.path, config.data, "model_type", config.model_type),)


def _table(place: _Place, differences: list[Difference]) -> Table:
    rows = [(sanitise(one.key, 120), one.wanted, one.found) for one in differences[:ROWS]]
    if len(differences) > ROWS:
        rows.append((f"{len(differences) - ROWS} more", "", ""))
    title = Text(f"{place.flag} against config.json", f"{place.flag} 与 config.json 对比")
    return Table(title, ("parameter", "config.json", "checkpoint"), tuple(rows))


def compare(named: Named, expected: Expected, *, tied: bool = False) -> Iterator[Difference]:
    """Yield every difference between the stored parameters and the expected ones. tied: config.json says so."""
    wrong_count = list(_layer_counts(named, expected.layers))
    yield from wrong_count
    by_wanted: dict[Wanted, list[int]] = {}
    for layer, some in layers_of(expected).items():
        for one in some:
            by_wanted.setdefault(one, []).append(layer)
    for one, layers in by_wanted.items():
        yield from _layer_differences(named, one, layers, counted=not wrong_count)
    for one in outer_of(expected):
        yield from _outer_differences(named, one)
    if tied and named.outer.get(HEAD) is not None and not _is_value_head(named.outer[HEAD]):
        shape = dims(named.outer[HEAD].shape)
        yield Difference("differs", named.keys[None, HEAD], "none (tied embeddings)", shape, sure=False)
    known = {name for one in by_wanted for name in one.names}
    for name, flag in UNKNOWN_TO.items():
        if name in named.layers and name not in known:
            layer = next(iter(named.layers[name]))
            yield Difference("differs", named.keys[layer, name], f"none ({flag})", "there", sure=False)


def _layer_counts(named: Named, layers: int) -> Iterator[Difference]:
    """Yield that the number of layers is another one; a gap in the numbers is not that."""
    counts = {count for count in named.stacked.values() if count != layers}
    numbers = named.numbered
    if numbers and len(numbers) != layers and numbers == frozenset(range(len(numbers))):
        counts.add(len(numbers))
    if counts:
        yield Difference("differs", "decoder.layers", f"{layers} layers", f"{min(counts)} layers")


def _layer_differences(named: Named, wanted: Wanted, layers: list[int], *, counted: bool) -> Iterator[Difference]:
    """Yield what is wrong with one parameter in its layers. counted: the number of layers is right."""
    places = {layer: _find(named, wanted, layer) for layer in layers}
    absent = [layer for layer, place in places.items() if place is None]
    if len(absent) == len(layers):
        if wanted.sure:
            prefix = "decoder.layers." if named.stacked else f"decoder.layers.{layers[0]}."
            yield Difference("differs", prefix + wanted.names[0], dims(wanted.shape), "in no layer")
        return
    for place in places.values():
        if place is None or place == SPLIT:
            continue
        layer, name = place
        shape = named.layers[name][layer].shape
        shape = shape[1:] if layer == STACKED else shape
        if not _fits(shape, wanted, name):
            yield Difference("differs", named.keys[layer, name], dims(wanted.shape), dims(shape))
            break
    if wanted.sure and counted:
        for layer in absent:
            yield Difference("missing", f"decoder.layers.{layer}.{wanted.names[0]}", dims(wanted.shape), "not there")


def _find(named: Named, wanted: Wanted, layer: int) -> tuple[int, str] | None:
    """Return where a layer's parameter is: layer number or STACKED, and its name; SPLIT when it is in halves."""
    for name in wanted.names:
        found = named.layers.get(name, {})
        if layer in found or STACKED in found:
            return (layer if layer in found else STACKED, name)
    for name in wanted.names:
        found = named.layers.get(f"{name}_w", {})
        if layer in found or STACKED in found:
            return SPLIT
    return None


def _fits(shape: tuple[int, ...], wanted: Wanted, name: str) -> bool:
    """Return whether a stored shape is the wanted one; experts are also stored transposed."""
    if "linear_qkv_down_proj" in name:  # two projections in one, by a layer spec that is not described here
        return True
    if len(wanted.shape) == 3 and None not in wanted.shape and ".experts." in name:
        return sorted(shape) == sorted(size for size in wanted.shape if size is not None)
    return len(shape) == len(wanted.shape) and all(
        want in (None, size) for want, size in zip(wanted.shape, shape, strict=True)
    )


def _outer_differences(named: Named, wanted: Wanted) -> Iterator[Difference]:
    name = wanted.names[0]
    stored = named.outer.get(name)
    if stored is None:
        if wanted.sure:
            yield Difference("differs", name, dims(wanted.shape), "not there")
        return
    if _fits(stored.shape, wanted, name) or (name == HEAD and _is_value_head(stored)):
        return
    rows, vocab = stored.shape[0] if stored.shape else 0, wanted.shape[0]
    others_fit = _fits(stored.shape[1:], Wanted(wanted.names, wanted.shape[1:], wanted.sure), name)
    if name in PADDED and others_fit and vocab is not None and 0 <= rows - vocab <= MAX_PADDING:
        return
    sure = name not in PADDED or not others_fit
    yield Difference("differs", named.keys[None, name], dims(wanted.shape), dims(stored.shape), sure)


def _is_value_head(stored: Stored) -> bool:
    """Return whether an output layer is a critic's, which has one row."""
    return stored.shape[:1] == (1,)


def dims(shape: Shape) -> str:
    """Return a shape as one reads it; "?" for a dimension that is not known."""
    return "×".join("?" if size is None else str(size) for size in shape)

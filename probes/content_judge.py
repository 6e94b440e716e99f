"""Which contents of tensors are faults: what may be zero, what may be constant, and how packed tensors are read.

Precision first. Zero is a fault only of weights that a working model cannot have at zero: projections, experts,
routers, embeddings, an untied lm_head, convolutions, and norms unless the family's norm multiplies by 1 + weight
(Qwen3-Next and Qwen3.5, as Gemma; transformers' modeling files). Biases, router correction biases and recurrent states
begin at zero; prediction (MTP) layers, vision towers, gates and what no table knows may have been left there, so they
are doubtful, and so is a layer whose o_proj and down_proj alone are zero: block expansion inserts such layers on
purpose (LLaMA Pro, arXiv 2401.02415). A packed weight is judged by its scales and by packed words that are all equal.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from probes.content_scan import Key
from probes.families import tables
from probes.families.expand import Expected, expand
from probes.hf_checkpoint import PACKED_PARTS, SIDE_PARTS, Checkpoint, weights_of
from probes.hf_names import LAYER, OPEN
from probes.readers.hf_config import field
from probes.readers.safetensors_header import Entry
from probes.readers.tensor_scan import BLOCK, LAYOUTS, Layout, Looked
from probes.thresholds.tensors import MANY
from runbook.finding import Citation, cite
from runbook.text import Text

FAULTS = ("nonfinite", "zero", "hollow", "constant", "duplicate")
"""Kinds of marks, gravest first. hollow: stretches of BLOCK bytes hold nothing but zeros."""

SURE_KINDS = frozenset(("linear", "expert", "fused", "router", "embedding", "head", "conv", "norm"))
FILLED_KINDS = SURE_KINDS - {"norm"}
"""Kinds whose values must differ from one another."""
COPIED_KINDS = frozenset(("linear", "expert", "fused", "router"))
"""Kinds of which two of the same content are remarkable; embeddings are copied into lm_head and MTP layers."""
ONE_PLUS_NORMS = frozenset(("qwen3_next", "qwen3_5", "qwen3_5_moe"))
SCALES = frozenset(("weight_scale", "weight_scale_inv", "scales"))
NO_FLOAT = Layout(1)

_KINDS = (
    (re.compile(r"\.experts\.(?:\d+\.)?\w+(?:\.weight)?\Z"), "expert"),
    (re.compile(r"\.(?:mlp|block_sparse_moe|moe|feed_forward)\.(?:gate|router)(?:\.\w+)?\.weight\Z"), "router"),
    (re.compile(r"norm\w*\.weight\Z"), "norm"),
    (re.compile(r"(?:^|\.)(?:embed_tokens|word_embeddings|wte|tok_embeddings)\.weight\Z"), "embedding"),
    (re.compile(r"(?:^|\.)(?:lm_head|output_layer)\.weight\Z"), "head"),
    (re.compile(r"\.(?:\w+_proj(?:_with_mqa)?|w[123]|c_attn|c_fc|c_proj|query_key_value|dense)\.weight\Z"), "linear"),
)  # fmt: skip
_HARMLESS = re.compile(
    r"(?:^|[._])(?:bias|dt_bias|A_log|lora_B|lora_embedding_B|inv_freq|[kvq]_scale|score|v_head)(?:\.|\Z)"
)
_MTP = re.compile(r"(?:^|\.)(?:mtp|mtp_layers|nextn)\.")
_IDENTITY = frozenset(("self_attn.o_proj.weight", "mlp.down_proj.weight"))
_PACKED_ZERO = (b"\x88" * 4, b"\x80" * 4)
"""A word of packed zeros without zero point: the values are stored with half their range added (4 and 8 bits)."""


@dataclass(frozen=True)
class Mark:
    """Something about one tensor. fault: of FAULTS. sure: whether it is a fault for certain. name: its plain name."""

    fault: str
    sure: bool
    name: str
    words: Text
    citation: Citation


@dataclass(frozen=True)
class Stored:
    """An entry of a file. plain: the name of the tensor it belongs to. part: the last part of its own name."""

    file: str
    name: str
    plain: str
    part: str
    entry: Entry
    place: int

    @property
    def numel(self) -> int:
        """Return how many elements it has."""
        return prod(self.entry.shape)

    @property
    def told(self) -> str:
        """Return name, dtype and shape as one reads them."""
        shape = "×".join(map(str, self.entry.shape)) or "scalar"
        return f"{self.name} {self.entry.dtype} {shape}"


def judge(checkpoint: Checkpoint, looked: Mapping[Key, Looked]) -> list[Mark]:
    """Return what is remarkable about the tensors that were looked at: what is sure first, then by gravity."""
    case = _Case(checkpoint.path, stored_of(checkpoint), looked, kinds(checkpoint))
    marks: list[Mark] = []
    for key, seen in looked.items():
        one = case.stored.get(key)
        if one is not None and one.numel:
            marks += _marks_of(case, one, seen)
    marks = _excuse_identity_blocks(marks)
    marks += _duplicates(case)
    return sorted(marks, key=lambda mark: (not mark.sure, FAULTS.index(mark.fault)))


def stored_of(checkpoint: Checkpoint) -> dict[Key, Stored]:
    """Return every entry of every file."""
    found = {}
    for file, header in checkpoint.headers.items():
        for name, entry in header.tensors.items():
            head, _, part = name.rpartition(".")
            base = PACKED_PARTS.get(part, SIDE_PARTS.get(part))
            plain = f"{head}.{base}" if base else name
            found[file, name] = Stored(file, name, plain, part, entry, header.data + entry.data_offsets[0])
    return found


@dataclass(frozen=True)
class Kinds:
    """What kind of tensor a name is. tied: lm_head is not used. one_plus: norms multiply by 1 + weight, or may."""

    expected: Expected | None
    tied: bool
    one_plus: bool

    def of(self, name: str) -> str:
        """Return the kind of a plain name, "" when it cannot be told."""
        param = self.expected.params.get(name) if self.expected else None
        if param is not None:
            return param.kind
        return next((kind for pattern, kind in _KINDS if pattern.search(name)), "")

    def must_be_filled(self, name: str) -> bool | None:
        """Return whether a weight must not be zero; None when it is doubtful."""
        kind = self.of(name)
        if kind in ("bias", "state") or _HARMLESS.search(name) or (kind == "norm" and self.one_plus):
            return False
        if kind not in SURE_KINDS or _MTP.search(name) or OPEN.match(name) or (kind == "head" and self.tied):
            return None
        layer = LAYER.match(name)
        return None if layer and self.expected and int(layer["layer"]) >= self.expected.layers else True


def kinds(checkpoint: Checkpoint) -> Kinds:
    """Return the kinds of a checkpoint's tensors, by its family's table where there is one."""
    config = checkpoint.config
    table = tables().get(config.model_type) if config else None
    expected = expand(table, config, weights_of(checkpoint)) if table and config else None
    tied = field(config, "tied") if config else None
    return Kinds(expected, tied is None or bool(tied.value), table is None or table.family in ONE_PLUS_NORMS)


@dataclass(frozen=True)
class _Case:
    """What the judgement of one entry may look at. path: the checkpoint's folder."""

    path: str
    stored: Mapping[Key, Stored]
    looked: Mapping[Key, Looked]
    kinds: Kinds


def _marks_of(case: _Case, one: Stored, seen: Looked) -> Iterator[Mark]:
    """Yield the marks of one entry."""
    if seen.nonfinite:
        yield _nonfinite(case, one, seen)
    elif one.part in PACKED_PARTS:
        yield from _packed(case, one, seen)
    elif not LAYOUTS.get(one.entry.dtype, NO_FLOAT).special:
        return
    elif one.part in SIDE_PARTS:
        yield from _scale(case, one, seen)
    else:
        yield from _plain(case, one, seen)


def _nonfinite(case: _Case, one: Stored, seen: Looked) -> Mark:
    """Mark NaN and Inf; -Inf in a router's correction bias switches an expert off, and Inf in a buffer is a mask."""
    counts = [f"{count} {word}" for count, word in ((seen.nan, "NaN"), (seen.inf, "Inf")) if count]
    sure = bool(seen.nan) or one.part in ("weight", *SCALES)
    en = f"{' and '.join(counts)} among {one.numel} values, the first at index {seen.first}"
    zh = f"{one.numel} 个值中有 {'、'.join(counts)}，首个位于下标 {seen.first}"
    return _mark(case, "nonfinite", sure, one, en, zh)


def _scale(case: _Case, one: Stored, seen: Looked) -> Iterator[Mark]:
    """Yield a mark when the scales of a quantised weight are zero; E8M0 has no zero."""
    filled = case.kinds.must_be_filled(one.plain)
    if one.part in SCALES and seen.zero and one.entry.dtype != "F8_E8M0" and filled is not False:
        en, zh = f"all {one.numel} scales are zero, so the weight is", f"{one.numel} 个 scale 全为零，权重因此全零"
        yield _mark(case, "zero", bool(filled), one, en, zh)


def _plain(case: _Case, one: Stored, seen: Looked) -> Iterator[Mark]:
    """Yield the marks of values that are stored as they are."""
    kind, filled = case.kinds.of(one.plain), case.kinds.must_be_filled(one.plain)
    if seen.zero and filled is not False:
        en, zh = f"all {one.numel} values are zero", f"{one.numel} 个值全为零"
        yield _mark(case, "zero", bool(filled), one, en, zh)
    elif seen.zero or kind not in FILLED_KINDS:
        return
    elif seen.constant and one.numel >= MANY.value:
        yield _mark(case, "constant", False, one, f"all {one.numel} values are the same", f"{one.numel} 个值完全相同")
    elif seen.hollow >= BLOCK and kind not in ("embedding", "head"):  # their last rows may be padding
        en = f"{seen.hollow} of its bytes lie in stretches of zeros, as in a file that was not written to its end"
        yield _mark(case, "hollow", False, one, en, f"有 {seen.hollow} 字节是大段的零，像是没有写完")


def _packed(case: _Case, one: Stored, seen: Looked) -> Iterator[Mark]:
    """Yield the marks of packed words, which matter only when they are all equal."""
    filled = case.kinds.must_be_filled(one.plain)
    if not seen.constant or one.numel < MANY.value or filled is False:
        return
    word = _first_word(case, one)
    point = case.stored.get((one.file, f"{one.name.removesuffix(one.part)}weight_zero_point"))
    if one.part == "weight_packed" and point is None and (word in _PACKED_ZERO or seen.zero):
        en = "all packed words are zero" if seen.zero else "all packed values are zero"
        yield _mark(case, "zero", bool(filled), one, en, "打包数据全为零")
    elif point is not None and _is_constant(case, point) and _first_word(case, point) == word:
        yield _mark(case, "zero", bool(filled), one, "all packed values equal their zero point", "打包值全等于零点")
    else:
        yield _mark(case, "constant", False, one, "all packed words are the same", "打包数据完全相同")


def _is_constant(case: _Case, one: Stored) -> bool:
    seen = case.looked.get((one.file, one.name))
    return seen is not None and seen.constant


def _first_word(case: _Case, one: Stored) -> bytes | None:
    try:
        with open(os.path.join(case.path, one.file), "rb", buffering=0) as file:
            return os.pread(file.fileno(), 4, one.place)
    except OSError:
        return None


def _mark(case: _Case, fault: str, sure: bool, one: Stored, en: str, zh: str) -> Mark:
    words = Text(f"{one.name}: {en}", f"{one.name}：{zh}")
    place = cite(os.path.join(case.path, one.file), f"{one.told}: {en}", offset=one.place)
    return Mark(fault, sure, one.plain, words, place)


def _excuse_identity_blocks(marks: list[Mark]) -> list[Mark]:
    """Make zeros doubtful in layers that block expansion may have inserted."""
    zeros: dict[str, set[str]] = defaultdict(set)
    for mark in marks:
        match = LAYER.match(mark.name)
        if mark.fault == "zero" and match:
            zeros[f"{match['stack']}.{match['layer']}"].add(match["rest"])
    excused = {f"{layer}.{rest}" for layer, rests in zeros.items() if rests == _IDENTITY for rest in rests}
    return [replace(mark, sure=False) if mark.fault == "zero" and mark.name in excused else mark for mark in marks]


def _duplicates(case: _Case) -> Iterator[Mark]:
    """Yield one mark for each content that several weights share; upcycled experts and stacked layers do so too."""
    by_hash: dict[tuple[str, str, int], list[Stored]] = defaultdict(list)
    for key, seen in case.looked.items():
        one = case.stored.get(key)
        if one is None or seen.constant or seen.zero or one.numel < MANY.value or one.part in SIDE_PARTS:
            continue
        by_hash[seen.hash, one.entry.dtype, one.numel].append(one)
    for alike in by_hash.values():
        others = [one for one in alike if one.plain != alike[0].plain]
        if others and all(case.kinds.of(one.plain) in COPIED_KINDS for one in alike):
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            en, zh = f"has the same bytes as {others[0].name}{more}", f"与 {others[0].name} 等 {len(others)} 个内容相同"
            yield _mark(case, "duplicate", False, alike[0], en, zh)

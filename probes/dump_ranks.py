"""One rollout's train samples, put together from what the ranks wrote.

From slime v0.4 on one file holds the rollout; before, every rank wrote its own, under context parallelism only its two
slices of each sample (slime/backends/megatron_utils/cp_utils.py, get_logits_and_tokens_offset_with_cp: 2·cp chunks of
ceil(total / 2·cp) tokens, of which rank r has r and 2·cp-1-r; log-probs belong to the token after). Invariants: a slice
whose rank is not there stays NaN, so it is unknown and never zero; a size or rank that the lengths do not determine is
not guessed; nothing of one rank replaces what another said.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from probes.dumps import numbers
from probes.readers.rollout_dump import Dump
from probes.readers.torch_tensors import Tensor
from runbook.text import Text, counted

SLICED = ("rollout_log_probs", "log_probs", "ref_log_probs")
"""Fields that a context-parallel rank holds only its part of, as far as they are compared here."""
SIZES = (2, 3, 4, 6, 8, 12, 16, 32, 64)
Sample = dict[str, Any]


@dataclass(frozen=True)
class Whole:
    """A rollout's train samples.

    paths: the file of each sample. cp_size: as the slices show it, None when nothing was sliced. missing: what no file
    holds. unordered: the dump carries neither position nor index, as slime warns with "Cannot restore
    global sample order".
    """

    rollout: int | None
    path: str
    samples: list[Sample] = field(repr=False)
    paths: list[str] = field(repr=False)
    cp_size: int | None = None
    missing: tuple[Text, ...] = ()
    unordered: bool = False


def chunk(total: int, cp_size: int) -> int:
    """Return the tokens of a context-parallel chunk of a sequence of `total` tokens."""
    return (total + 2 * cp_size - 1) // (2 * cp_size)


def places(total: int, response: int, cp_size: int, cp_rank: int) -> list[tuple[int, int]]:
    """Return the response tokens, as two ranges from and to, whose log-probs a context-parallel rank holds."""
    size, prompt = chunk(total, cp_size), total - response
    ranges = []
    for number in (cp_rank, 2 * cp_size - 1 - cp_rank):
        first, last = max(number * size, prompt - 1), min((number + 1) * size, total - 1)
        ranges.append((first - (prompt - 1), last - (prompt - 1)) if first < last else (0, 0))
    return ranges


def whole(dumps: list[Dump], cp_size: int | None = None) -> Whole:
    """Put one rollout's dumps together; there must be one. cp_size: what the run's arguments say, if known.

    Raises DumpError for a tensor outside its file.
    """
    joint = next((dump for dump in dumps if dump.version != "rank"), None)
    if joint is not None:
        return _joint(joint)
    computed = [dump for dump in dumps if any("log_probs" in sample for sample in dump.samples)] or dumps
    size, ranks = _cp_ranks(computed, cp_size)
    groups: dict[Any, list[tuple[int, Sample]]] = {}
    for place, dump in enumerate(computed):
        for number, sample in enumerate(dump.samples):
            groups.setdefault(_key(sample, place, number), []).append((place, sample))
    told: list[tuple[int, Sample]] = []
    holes = 0
    for parts in groups.values():
        if size is None:
            told += _different(parts)
            continue
        sample, hole = _restored(parts, ranks, size)
        told.append((parts[0][0], sample))
        holes += hole
    samples = [sample for _, sample in told]
    lost = Text(f"context-parallel slices of {counted(holes, 'sample')}", f"{holes} 个样本的 CP 切片")
    missing = (lost,) if holes else ()
    unordered = all("sample_index" not in sample for sample in samples)
    paths = [computed[place].path for place, _ in told]
    return Whole(dumps[0].rollout_id, dumps[0].path, samples, paths, size, missing, unordered)


def _joint(dump: Dump) -> Whole:
    shards = dump.batch.get("dp_shards")
    shards = [shard for shard in shards if isinstance(shard, dict)] if isinstance(shards, list) else []
    missing = []
    ranks = {shard.get("data_parallel_rank") for shard in shards}
    known = {rank for rank in ranks if type(rank) is int}
    holes = set(range(max(known, default=-1) + 1)) - known
    if holes:
        ranked = ", ".join(map(str, sorted(holes)[:8]))
        missing.append(Text(f"data-parallel rank{'s' if len(holes) > 1 else ''} {ranked}", f"DP rank {ranked}"))
    positions = {position for shard in shards for position in _list(shard.get("partition"))}
    held = {sample.get("rollout_position") for sample in dump.samples}
    lost = {position for position in positions if type(position) is int} - held
    if lost:
        missing.append(Text(f"{counted(len(lost), 'sample')} that its shards name", f"分片中列出的 {len(lost)} 个样本"))
    unordered = all(s.get("rollout_position") is None and s.get("sample_index") is None for s in dump.samples)
    paths = [dump.path] * len(dump.samples)
    return Whole(dump.rollout_id, dump.path, dump.samples, paths, None, tuple(missing), unordered)


def _list(value: Any) -> list[Any]:
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, (str, bytes, dict)) else []


def _key(sample: Sample, place: int, number: int) -> Any:
    """Return what says that two ranks hold the same sample: its index and tokens; else each stands alone."""
    ids = numbers(sample, "tokens")
    index = sample.get("sample_index")
    if ids is None and not isinstance(index, int):
        return place, number
    return index if isinstance(index, int) else None, b"" if ids is None else ids.tobytes()


def _lengths(sample: Sample) -> tuple[int, int] | None:
    """Return the lengths of sequence and response."""
    response, total = sample.get("response_lengths"), sample.get("total_lengths")
    if type(total) is not int:
        ids = numbers(sample, "tokens")
        total = None if ids is None else len(ids)
    if type(response) is not int or type(total) is not int or not 0 <= response < total:
        return None
    return total, response


def _layouts(samples: list[Sample]) -> set[tuple[int, int]]:
    """Return every (size, rank) of context parallelism that explains the lengths of a file's fields."""
    possible = {(size, rank) for size in (1, *SIZES) for rank in range(size)}
    for sample in samples:
        lengths = _lengths(sample)
        for name in SLICED if lengths is not None else ():
            count = _count(sample.get(name))
            if count is not None and lengths is not None:
                possible = {one for one in possible if _held(*lengths, *one) == count}
    return possible


def _count(value: Any) -> int | None:
    """Return how many numbers a field holds along its first dimension, without reading them."""
    if isinstance(value, Tensor):
        return value.shape[0] if value.shape else None
    return len(value) if isinstance(value, (list, array)) else None


def _held(total: int, response: int, size: int, rank: int) -> int:
    if size == 1:
        return response
    return sum(last - first for first, last in places(total, response, size, rank))


def _different(parts: list[tuple[int, Sample]]) -> list[tuple[int, Sample]]:
    """Return the parts of a sample that say different things; tensor-parallel ranks say the same."""
    kept: dict[tuple[bytes, ...], tuple[int, Sample]] = {}
    for place, part in parts:
        fields = [numbers(part, name) for name in SLICED]
        kept.setdefault(tuple(b"" if one is None else one.tobytes() for one in fields), (place, part))
    return list(kept.values())


def _cp_ranks(dumps: list[Dump], given: int | None) -> tuple[int | None, dict[int, int]]:
    """Return the size of context parallelism and the rank of each file, as far as both are certain; None, {} without.

    The ranks of one data-parallel group hold the same samples. Megatron counts tensor parallelism first and context
    parallelism next (order "tp-cp-ep-dp-pp"), so of a whole group the files with other slices come in order of rank; of
    a group that is not whole the lengths may still tell.
    """
    layouts = [_layouts(dump.samples) for dump in dumps]
    if any((1, 0) in possible for possible in layouts):
        return None, {}
    groups: dict[Any, list[int]] = {}
    for place in sorted(range(len(dumps)), key=lambda place: dumps[place].rank or 0):
        key = tuple(_key(sample, place, number) for number, sample in enumerate(dumps[place].samples))
        groups.setdefault(key, []).append(place)
    slices = [_slices(dumps, places) for places in groups.values()]
    common = set.intersection(*({size for size, _ in possible} for possible in layouts)) if layouts else set()
    likely = [size for size in ({given} if given else {max(map(len, slices), default=1)}) if size in common]
    if not likely:
        likely = sorted(common) if len(common) == 1 else []
    if not likely:
        return None, {}
    size, ranks = likely[0], dict[int, int]()
    for parts in slices:
        for order, places in enumerate(parts):
            possible = {rank for one, rank in layouts[places[0]] if one == size}
            certain = {order} & possible if len(parts) == size else possible
            if len(certain) == 1:
                ranks.update(dict.fromkeys(places, certain.pop()))
    return size, ranks


def _slices(dumps: list[Dump], places: list[int]) -> list[list[int]]:
    """Return the files of one data-parallel group, those with equal numbers together, in order of rank."""
    kept: dict[Any, list[int]] = {}
    for place in places:
        fields = (numbers(sample, name) for sample in dumps[place].samples for name in SLICED)
        kept.setdefault(tuple(b"" if one is None else one.tobytes() for one in fields), []).append(place)
    return list(kept.values())


def _restored(parts: list[tuple[int, Sample]], ranks: dict[int, int], size: int) -> tuple[Sample, bool]:
    """Return a sample with its slices at their places, and whether some are missing."""
    import numpy as np

    sample = dict(parts[0][1])
    lengths = _lengths(sample)
    if lengths is None:
        return sample, False
    total, response = lengths
    hole = False
    for name in SLICED:
        restored = np.full(response, np.nan)
        filled = np.zeros(response, dtype=bool)
        for place, part in parts:
            values = numbers(part, name)
            if values is None or place not in ranks:
                continue
            at = 0
            for first, last in places(total, response, size, ranks[place]):
                restored[first:last] = values[at : at + last - first]
                filled[first:last] = True
                at += last - first
        if name in sample:
            sample[name] = restored
            hole = hole or not bool(filled.all())
    return sample, hole

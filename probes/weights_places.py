"""Which layer, and which expert, of the checkpoint arrived under which id: what single tensors say, put together.

A layer counts as moved when most of its tensors are those of one other layer; one parameter that stands in another
layer is a wrong value, not a wrong layer id. Senders are judged apart, since under pipeline parallelism two stages
may use the same ids.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from probes.readers.received_weights import Sent
from probes.weights_reference import Address, address
from probes.weights_relation import HEALTHY, Relation

MAJORITY = 0.6
"""Share of a layer's tensors that must agree on where they come from."""


@dataclass(frozen=True)
class Judged:
    """One received tensor with its relation to the checkpoint. expected: whether the checkpoint has its name."""

    sent: Sent
    relation: Relation
    place: Address
    expected: bool = True


@dataclass(frozen=True)
class Move:
    """An id under which other content arrived. source: who sent it. within: the layer, of an expert."""

    source: str
    stack: str
    id: int
    origin: int
    within: int | None = None


def layer_votes(judged: Sequence[Judged]) -> dict[tuple[str, str, int], Counter[int]]:
    """Return, by (source, stack, layer), how many tensors hold the content of which layer of the checkpoint."""
    votes: dict[tuple[str, str, int], Counter[int]] = defaultdict(Counter)
    for each in judged:
        if each.place.layer is None:
            continue
        origin = _origin(each)
        if origin is not None and origin.layer is not None and origin.stack == each.place.stack:
            votes[each.sent.source, each.place.stack, each.place.layer][origin.layer] += 1
    return votes


def _origin(each: Judged) -> Address | None:
    """Return where a tensor's content belongs, None when that is not known or when it belongs to another parameter."""
    if each.relation.kind in HEALTHY:
        return each.place
    if each.relation.kind == "elsewhere":
        origin = address(each.relation.origin)
        return origin if origin.kind == each.place.kind else None
    return None


def moved_layers(judged: Sequence[Judged]) -> list[Move]:
    """Return the layers that arrived under the id of another one."""
    totals = Counter(
        (each.sent.source, each.place.stack, each.place.layer) for each in judged if each.place.layer is not None
    )
    moves = []
    for (source, stack, layer), votes in layer_votes(judged).items():
        origin, count = votes.most_common(1)[0]
        if origin != layer and count >= 2 and count >= MAJORITY * totals[source, stack, layer]:
            moves.append(Move(source, stack, layer, origin))
    return sorted(moves, key=lambda move: (move.source, move.stack, move.id))


def moved_experts(judged: Sequence[Judged], layers: Sequence[Move]) -> list[Move]:
    """Return the experts that arrived under the id of another one of their layer."""
    shifted = {(move.source, move.stack, move.id): move.origin for move in layers}
    votes: dict[tuple[str, str, int, int], Counter[int]] = defaultdict(Counter)
    for each in judged:
        if each.place.layer is None or each.place.expert is None:
            continue
        origin = _origin(each)
        home = shifted.get((each.sent.source, each.place.stack, each.place.layer), each.place.layer)
        if origin is not None and origin.expert is not None and origin.layer == home:
            votes[each.sent.source, each.place.stack, each.place.layer, each.place.expert][origin.expert] += 1
    moves = []
    for (source, stack, layer, expert), counts in votes.items():
        origin_id, count = counts.most_common(1)[0]
        if origin_id != expert and count >= 2 and count > MAJORITY * sum(counts.values()):
            moves.append(Move(source, stack, expert, origin_id, layer))
    return sorted(moves, key=lambda move: (move.source, move.stack, move.within or 0, move.id))


def spans(ids: Sequence[int]) -> str:
    """Return numbers as ranges, such as "0-3, 7"."""
    runs: list[list[int]] = []
    for number in sorted(set(ids)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def sender(source: str) -> tuple[str, str]:
    """Return who sent something, in English and Chinese; a pipeline stage by its number."""
    found = re.search(r"(?:^|[^a-z])(?:stage|pp)[-_]?(\d{1,4})\Z", source)
    if found:
        return f"stage {found[1]}", f"stage {found[1]}"
    return (source, source) if source and source != "model" else ("the trainer", "训练侧")


def describe(moves: Sequence[Move], noun: str, noun_zh: str) -> tuple[str, str]:
    """Say which ids hold what, sender by sender, such as "stage 1 sent layers 4-7 as 0-3"."""
    pairs = {(move.source, move.id, move.origin) for move in moves}
    if len(pairs) == 2:
        (_, one, other), (_, back, forth) = sorted(pairs, key=lambda pair: pair[1])
        if (one, other) == (forth, back):
            return f"{noun} {one} and {back} are exchanged", f"{noun_zh} {one} 与 {back} 互换"
    words, words_zh = [], []
    for source in sorted({source for source, _, _ in pairs}):
        who, who_zh = sender(source)
        runs: list[tuple[list[int], list[int]]] = []
        for _, id, origin in sorted(pair for pair in pairs if pair[0] == source):
            if runs and id == runs[-1][0][-1] + 1 and origin == runs[-1][1][-1] + 1:
                runs[-1][0].append(id)
                runs[-1][1].append(origin)
            else:
                runs.append(([id], [origin]))
        parts = [f"{spans(origins)} as {spans(ids)}" for ids, origins in runs]
        parts_zh = [f"{spans(origins)} 发成了 {spans(ids)}" for ids, origins in runs]
        rest = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
        rest_zh = f" 等 {len(parts)} 段" if len(parts) > 4 else ""
        words.append(f"{who} sent {noun} {', '.join(parts[:4])}{rest}")
        words_zh.append(f"{who_zh} 把 {noun_zh} {'、'.join(parts_zh[:4])}{rest_zh}")
    return "; ".join(words), "；".join(words_zh)

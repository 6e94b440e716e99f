"""Whether the garbled samples are those of one engine (debug guide 1.1).

slime's dumps do not record which engine answered. What can show it is a field that a custom generate function or trace
wrote: any key that speaks of an engine, server, worker, host or rank. Everything else only looks like it. The order of
the samples follows the task mix as well as a router that takes engines in turn; `weight_versions` says which weights
answered, and every engine has each of them in turn; a field of the task that separates the samples as well may be the
true reason. Invariant: only a field of the engine chooses the answer, and only where no field of the task explains the
same; the rest is told with an unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from probes import dumps, samples
from probes.dumps import Read
from probes.samples import Judged, Verdicts
from probes.thresholds import samples as limit
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_PLACE = re.compile(r"engine|server|worker|replica|instance|host|(?:^|_)node|url|addr|(?:^|_)rank|gpu", re.IGNORECASE)
_ENGINE = re.compile(r"engine|sglang|worker|replica|(?:^|_)server", re.IGNORECASE)
"""Of a sample's own metadata only keys that name an engine: a data set brings urls, hosts and ranks of its own."""
_VERSIONS = "weight_versions"
_MAX_TURN = 16
"""Longest turn that is tried: engines of one router in the order of its list."""


@dataclass(frozen=True)
class _Marked:
    """A judged sample with what it says about where it came from. task: what its metadata says besides."""

    index: int
    garbled: bool
    fields: dict[str, str]
    task: dict[str, str]


@dataclass(frozen=True)
class _Grouping:
    """Samples by the value of one property. shares: value → (garbled, all), in order. tried: how many were compared."""

    name: str
    shares: dict[str, tuple[int, int]]
    tried: int = 1

    @property
    def chance(self) -> float:
        """Return a bound on the probability that groups come out garbled or fine as wholes; 1 when they do not."""
        bad = [value for value, (garbled, count) in self.shares.items() if garbled >= limit.SPLIT_BALANCE.value * count]
        mixed = sum(min(garbled, count - garbled) for garbled, count in self.shares.values())
        whole = all(min(g, n - g) <= (1 - limit.SPLIT_BALANCE.value) * n for g, n in self.shares.values())
        if not whole or not 0 < len(bad) < len(self.shares):
            return 1.0
        garbled, count = (sum(parts) for parts in zip(*self.shares.values(), strict=True))
        ways = math.comb(count, garbled)
        return min(1.0, self.tried * math.comb(len(self.shares), len(bad)) * math.comb(count, mixed) / ways)

    @property
    def separates(self) -> bool:
        """Return whether the groups differ beyond what chance gives."""
        return self.chance <= limit.SPLIT_CHANCE.value

    @property
    def bad(self) -> list[str]:
        """Return the values whose samples are garbled."""
        return [
            value for value, (garbled, count) in self.shares.items() if garbled >= limit.SPLIT_BALANCE.value * count
        ]


@probe(
    "dump.engine_split",
    needs="rollout_dump|train_dump",
    answers=("one-engine", "spread", "not-split"),
    en="Are only the samples of one engine garbled?",
    zh="乱码样本是否只来自某一个推理引擎？",
    deadline=dumps.DEADLINE,
)
def engine_split(evidence: Evidence, report: Progress) -> Finding:
    """Look for what the garbled samples of the first partly garbled rollout have in common."""
    read, last = Read(), None
    for dump in dumps.dumps_of(evidence, "rollout", report, read):
        verdicts = samples.judge_dump(dump)
        if verdicts.answer == "partly-garbled":
            return _answer(dump.path, _marked(verdicts, dump.samples), verdicts.of("garbled"))
        last = (verdicts.answer, dump.path) if verdicts.answer else last
    if last is None:
        return dumps.nothing_read(read, "No rollout dump holds a response.", "没有包含回复的 rollout dump。")
    wholly = last[0] == "garbled"
    return found(
        Verdict.OK,
        "not-split",
        "All samples are garbled alike, so no single engine stands out." if wholly else "No rollout is partly garbled.",
        "所有样本都是乱码，不是某个引擎的问题。" if wholly else "没有部分乱码的 rollout。",
        citations=(cite(last[1], f"every rollout is {last[0]} as a whole"),),
    )


def _marked(verdicts: Verdicts, raw: list[dict[str, Any]]) -> list[_Marked]:
    """Return the samples that can be told garbled or fine, with their fields, in order of index.

    Where indices repeat, as custom rollouts leave them, the place in the dump stands for the index.
    """
    chosen = [sample for sample in verdicts.samples if sample.judgement.kind in ("garbled", "coherent")]
    unique = len({sample.index for sample in chosen}) == len(chosen)
    marked = [
        _Marked(
            s.index if unique else s.place, s.judgement.kind == "garbled", _fields(raw[s.place]), _task(raw[s.place])
        )
        for s in chosen
    ]
    return sorted(marked, key=lambda sample: sample.index)


def _fields(sample: dict[str, Any]) -> dict[str, str]:
    """Return what a sample says about the engine that answered."""
    found_fields: dict[str, str] = {}
    versions = sample.get(_VERSIONS)
    if isinstance(versions, list) and versions:
        found_fields[_VERSIONS] = ",".join(sorted({str(version)[:40] for version in versions}))
    trace = sample.get("trace")
    events = trace.get("events") if isinstance(trace, dict) and isinstance(trace.get("events"), list) else None
    attributes = [event.get("attrs") for event in events or () if isinstance(event, dict)]
    own = ((_ENGINE, source) for source in (sample, sample.get("metadata"), sample.get("train_metadata")))
    for pattern, source in (*own, *((_PLACE, each) for each in attributes)):
        for key, value in source.items() if isinstance(source, dict) else ():
            if isinstance(key, str) and pattern.search(key) and isinstance(value, (str, int)):
                found_fields[key[:40]] = str(value)[:80]
    return found_fields


def _task(sample: dict[str, Any]) -> dict[str, str]:
    """Return what a sample's metadata says about its task: each plain value that names no engine."""
    metadata = sample.get("metadata")
    items = metadata.items() if isinstance(metadata, dict) else ()
    return {
        str(key)[:40]: str(value)[:80]
        for key, value in items
        if isinstance(value, (str, int, bool)) and not _ENGINE.search(str(key))
    }


def _group(name: str, pairs: Iterable[tuple[str, bool]], tried: int = 1) -> _Grouping:
    shares: dict[str, tuple[int, int]] = {}
    for value, garbled in pairs:
        old = shares.get(value, (0, 0))
        shares[value] = (old[0] + garbled, old[1] + 1)
    return _Grouping(name, shares, tried)


def _answer(path: str, marked: list[_Marked], garbled: tuple[Judged, ...]) -> Finding:
    places = tuple(cite(path, f"sample {sample.index}: {sample.excerpt}") for sample in garbled[:3])
    fields = _groupings([(sample.fields, sample.garbled) for sample in marked])
    engines = [one for one in fields if one.name != _VERSIONS]
    named = next((one for one in engines if one.separates), None)
    task = next((one for one in _groupings([(s.task, s.garbled) for s in marked]) if one.separates), None)
    if named is not None and task is None:
        return _one_engine(named, places)
    if named is not None or task is not None:
        return _undecided(
            task, places, "the task, not the order or the engine, may be what breaks", "可能是任务本身所致"
        )
    versions = next((one for one in fields if one.name == _VERSIONS and one.separates), None)
    if versions is not None:
        why = "that is a weight update, which every engine gets, and no engine"
        return _undecided(versions, places, why, "这指向某次权重更新，所有引擎都会收到，不能说明是哪个引擎")
    if engines:
        return found(
            Verdict.OK,
            "spread",
            f"Garbled samples are spread over all values of {', '.join(one.name for one in engines)}.",
            f"乱码样本分布在 {', '.join(one.name for one in engines)} 的各个取值中。",
            citations=places,
            tables=tuple(map(_table, engines)),
        )
    turns = range(2, min(_MAX_TURN, len(marked) // 4) + 1)
    grouped = (_group(f"index mod {n}", ((str(s.index % n), s.garbled) for s in marked), len(turns)) for n in turns)
    turn = next((one for one in grouped if one.separates), None)
    why = "a turn, as of one engine among several or of one task in the mix"
    return _undecided(turn, places, why, "呈轮转规律，可能是多个引擎之一，也可能是任务的排列")


def _groupings(samples: list[tuple[dict[str, str], bool]]) -> list[_Grouping]:
    """Group the samples by each field that could tell them apart: two values at least, and not one for each sample."""
    names = sorted({name for fields, _ in samples for name in fields})
    groups = [
        _group(name, ((fields.get(name, "?"), garbled) for fields, garbled in samples), max(len(names), 1))
        for name in names
    ]
    return [one for one in groups if 2 <= len(one.shares) <= len(samples) // 2]


def _undecided(one: _Grouping | None, places: tuple[Citation, ...], why_en: str, why_zh: str) -> Finding:
    """Build the unknown, with what the garbled samples have in common when they have something."""
    en, zh = "The garbled samples follow no pattern", "乱码样本没有规律"
    if one is not None:
        what = f"{one.name} {', '.join(one.bad)}"
        en, zh = (
            f"The garbled samples are exactly those with {what}: {why_en}",
            f"乱码样本恰好是 {what} 的样本：{why_zh}",
        )
    finding = unknown(
        f"{en}; the dump does not tell which engine answered.",
        f"{zh}；dump 不能说明由哪个引擎生成。",
        settle_en="Roll out again with one engine, or let the generate function write the worker's URL to metadata.",
        settle_zh="只用一个引擎重新 rollout，或在 generate 函数中把 worker 的 URL 写入 metadata。",
        slots=("rollout_dump",),
        citations=places,
    )
    return finding if one is None else replace(finding, tables=(_table(one),), measurements=(_chance(one, sure=False),))


def _chance(one: _Grouping, *, sure: bool) -> Measurement:
    limit_of = limit.SPLIT_SURE if sure else limit.SPLIT_CHANCE
    return limit_of.measure("chance of such a split", one.chance)


def _one_engine(one: _Grouping, places: tuple[Citation, ...]) -> Finding:
    sure = one.chance <= limit.SPLIT_SURE.value
    what = f"{one.name} {', '.join(one.bad)}"
    return found(
        Verdict.PROBLEM if sure else Verdict.WARNING,
        "one-engine",
        f"The garbled samples are exactly those with {what}: look at that engine.",
        f"乱码样本恰好是 {what} 的样本：检查该引擎。",
        citations=places,
        measurements=(_chance(one, sure=sure),),
        tables=(_table(one),),
    )


def _table(one: _Grouping) -> Table:
    rows = tuple((sanitise(value, 60), str(garbled), str(count)) for value, (garbled, count) in one.shares.items())
    return Table(Text(f"Garbled by {one.name}", f"按 {one.name} 统计"), (one.name, "garbled", "samples"), rows[:40])

"""Whether the garbled samples are those of one engine (debug guide 1.1).

slime's dumps do not record which engine answered. What can show it: `weight_versions` (an engine that missed an
update), a field that a custom generate function or trace wrote (any key that speaks of an engine, server, worker, host
or rank), or a pattern in the sample order, because a router that takes engines in turn gives every n-th request to one.
A pattern alone is a hint and never proof; with neither field nor pattern the answer is unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from probes import dumps, samples
from probes.dumps import Read
from probes.samples import Judged, Verdicts
from probes.thresholds import samples as limit
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_PLACE = re.compile(r"engine|server|worker|replica|instance|host|(?:^|_)node|url|addr|(?:^|_)rank|gpu", re.IGNORECASE)
_ENGINE = re.compile(r"engine|sglang|worker|replica|(?:^|_)server", re.IGNORECASE)
"""Of a sample's own metadata only keys that name an engine: a data set brings urls, hosts and ranks of its own."""
_MAX_TURN = 16
"""Longest turn that is tried: engines of one router in the order of its list."""


@dataclass(frozen=True)
class _Marked:
    """A judged sample with what it says about where it came from."""

    index: int
    garbled: bool
    fields: dict[str, str]


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
        _Marked(s.index if unique else s.place, s.judgement.kind == "garbled", _fields(raw[s.place])) for s in chosen
    ]
    return sorted(marked, key=lambda sample: sample.index)


def _fields(sample: dict[str, Any]) -> dict[str, str]:
    """Return what a sample says about the engine that answered."""
    found_fields: dict[str, str] = {}
    versions = sample.get("weight_versions")
    if isinstance(versions, list) and versions:
        found_fields["weight_versions"] = ",".join(sorted({str(version)[:40] for version in versions}))
    trace = sample.get("trace")
    events = trace.get("events") if isinstance(trace, dict) and isinstance(trace.get("events"), list) else None
    attributes = [event.get("attrs") for event in events or () if isinstance(event, dict)]
    own = ((_ENGINE, source) for source in (sample, sample.get("metadata"), sample.get("train_metadata")))
    for pattern, source in (*own, *((_PLACE, each) for each in attributes)):
        for key, value in source.items() if isinstance(source, dict) else ():
            if isinstance(key, str) and pattern.search(key) and isinstance(value, (str, int)):
                found_fields[key[:40]] = str(value)[:80]
    return found_fields


def _group(name: str, pairs: Iterable[tuple[str, bool]], tried: int = 1) -> _Grouping:
    shares: dict[str, tuple[int, int]] = {}
    for value, garbled in pairs:
        old = shares.get(value, (0, 0))
        shares[value] = (old[0] + garbled, old[1] + 1)
    return _Grouping(name, shares, tried)


def _answer(path: str, marked: list[_Marked], garbled: tuple[Judged, ...]) -> Finding:
    names = sorted({name for sample in marked for name in sample.fields})
    groupings = [
        _group(name, ((s.fields.get(name, "?"), s.garbled) for s in marked), max(len(names), 1)) for name in names
    ]
    telling = [one for one in groupings if 2 <= len(one.shares) <= len(marked) // 2]
    places = tuple(cite(path, f"sample {sample.index}: {sample.excerpt}") for sample in garbled[:3])
    for one in telling:
        if one.separates:
            verdict = Verdict.PROBLEM if one.chance <= limit.SPLIT_SURE.value else Verdict.WARNING
            return _one_engine(one, places, verdict, f"{one.name} {', '.join(one.bad)}")
    turns = range(2, min(_MAX_TURN, len(marked) // 4) + 1)
    for turn in turns:
        one = _group(f"index mod {turn}", ((str(s.index % turn), s.garbled) for s in marked), len(turns))
        if one.separates:
            where = f"index mod {turn} = {', '.join(one.bad)}"
            return _one_engine(one, places, Verdict.WARNING, where, hint=True)
    if telling:
        return found(
            Verdict.OK,
            "spread",
            f"Garbled samples are spread over all values of {', '.join(one.name for one in telling)}.",
            f"乱码样本分布在 {', '.join(one.name for one in telling)} 的各个取值中。",
            citations=places,
            tables=tuple(map(_table, telling)),
        )
    return unknown(
        "The garbled samples follow no pattern, and the dump does not record which engine answered.",
        "乱码样本没有规律，dump 也没有记录由哪个引擎生成。",
        settle_en="Roll out again with one engine, or let the generate function write the worker's URL to metadata.",
        settle_zh="只用一个引擎重新 rollout，或在 generate 函数中把 worker 的 URL 写入 metadata。",
        slots=("rollout_dump",),
        citations=places,
    )


def _one_engine(
    one: _Grouping, places: tuple[Citation, ...], verdict: Verdict, what: str, *, hint: bool = False
) -> Finding:
    """Build the finding. hint: only the order of the samples shows it."""
    limit_of = limit.SPLIT_SURE if verdict is Verdict.PROBLEM else limit.SPLIT_CHANCE
    en = f"The garbled samples are exactly those with {what}"
    zh = f"乱码样本恰好是 {what} 的样本"
    return found(
        verdict,
        "one-engine",
        f"{en}: a turn, as when one of several engines is at fault." if hint else f"{en}: look at that engine.",
        f"{zh}：呈轮转规律，像是多个引擎之一有问题。" if hint else f"{zh}：检查该引擎。",
        citations=places,
        measurements=(limit_of.measure("chance of such a split", one.chance),),
        tables=(_table(one),),
    )


def _table(one: _Grouping) -> Table:
    rows = tuple((sanitise(value, 60), str(garbled), str(count)) for value, (garbled, count) in one.shares.items())
    return Table(Text(f"Garbled by {one.name}", f"按 {one.name} 统计"), (one.name, "garbled", "samples"), rows[:40])

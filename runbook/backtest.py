"""Reads kept sessions again under the flows at hand, and says which of their leaves moved. No probe is asked.

What a session's own flows said is recorded in it (`runbook.session.judging`); what these say is worked out from the
recorded findings and answers up to that record. A session without such a record, of an older version or killed before
it was left, is compared only by whether its walks still go the way that was answered. Invariant: a session that cannot
be read again is named with its reason, never counted as unmoved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from runbook.catalog import Catalog
from runbook.errors import SessionError
from runbook.flow.model import Flow, Node
from runbook.session import events as ev
from runbook.session.journal import JOURNAL, read
from runbook.session.judging import Decided, decided, reached
from runbook.session.state import SessionState, fold
from runbook.text import Text, sanitise
from runbook.triage import Standing
from runbook.walk import fits, position

_CLOSEST = [standing.value for standing in Standing]

GONE = "gone"
"""What a cause is that no flow has any more."""


class Moved(msgspec.Struct, frozen=True):
    """A leaf that moved.

    kind: "cause" or "walk". id: of the cause, or of the flow that was walked. before, after: standings, or the nodes
    at which the walk stood. flow, node: the first node that decides otherwise, "" where it is no single one. why: in
    words.
    """

    session: str
    kind: str
    id: str
    before: str
    after: str
    flow: str
    node: str
    why: Text


class Unread(msgspec.Struct, frozen=True):
    """A session that could not be read again."""

    session: str
    why: Text


@dataclass
class Outcome:
    """What became of the sessions of a folder. unjudged: those compared only by their walks."""

    sessions: int = 0
    moved: list[Moved] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)

    @property
    def moved_sessions(self) -> int:
        """Return how many sessions have a leaf that moved."""
        return len({one.session for one in self.moved})


def folders(root: str) -> Iterator[tuple[str, str]]:
    """Yield every session under a folder, itself included, as its name seen from there and its path, oldest first."""
    for path, names, files in os.walk(root):
        if JOURNAL in files:
            names.clear()
            name = os.path.relpath(path, root)
            yield (os.path.basename(os.path.abspath(path)) if name == os.curdir else name, path)
        names.sort()


def backtest(root: str, catalog: Catalog) -> Outcome:
    """Return what became of every session under `root` under the flows of a catalog."""
    outcome = Outcome()
    flows = catalog.flows
    for name, path in folders(root):
        outcome.sessions += 1
        try:
            records, _ = read(path)
        except SessionError as error:
            said = sanitise(f"{error.message}; {error.hint}")
            outcome.unread.append(Unread(name, Text(said, said)))
            continue
        if (missing := _missing(records, flows)) is not None:
            outcome.unread.append(Unread(name, missing))
            continue
        judged, state, lost = _again(records, flows)
        if judged is None:
            outcome.unjudged.append(name)
        else:
            outcome.moved += _causes(name, judged, state, catalog)
        outcome.moved += _walks(name, judged, state, lost, catalog)
    return outcome


class _Lost(msgspec.Struct, frozen=True):
    """An answer that a walk can no longer take."""

    flow: str
    node: str
    answer: str
    why: Text


def _last(records: Sequence[ev.Record]) -> int:
    """Return the place of the latest judgement, -1 when there is none."""
    return max((n for n, record in enumerate(records) if isinstance(record.event, ev.Judged)), default=-1)


def _missing(records: Sequence[ev.Record], flows: Mapping[str, Flow]) -> Text | None:
    """Return why a session cannot be read again: a flow that mattered in it is not there."""
    walked = [record.event.flow for record in records if isinstance(record.event, ev.Answered)]
    place = _last(records)
    event = records[place].event if place >= 0 else None
    causes = event.causes.values() if isinstance(event, ev.Judged) else ()
    mattered = [one.flow for one in causes if one.standing != Standing.RULED_OUT.value]
    gone = sorted({flow for flow in (*walked, *mattered) if flow not in flows})
    if not gone:
        return None
    names = sanitise(", ".join(gone), 200)
    return Text(
        f"not among the flows: {names}; give their folder with --flows", f"流程不存在：{names}；用 --flows 指定其目录"
    )


def _again(
    records: Sequence[ev.Record], flows: Mapping[str, Flow]
) -> tuple[ev.Judged | None, SessionState, dict[str, _Lost]]:
    """Return the latest judgement, the state before it under these flows, and the first answer lost of each walk."""
    place = _last(records)
    event = records[place].event if place >= 0 else None
    state, lost = SessionState(), dict[str, _Lost]()
    for record in records if place < 0 else records[:place]:
        one = record.event
        if isinstance(one, ev.Answered) and one.flow in flows and one.flow not in lost:
            flow, walk = flows[one.flow], state.walk(one.flow)
            if not fits(flow, walk, one.node, one.answer):
                lost[one.flow] = _Lost(one.flow, one.node, one.answer, _unfit(flow, one.node, one.answer))
        state = fold(state, record, flows)
    return (event if isinstance(event, ev.Judged) else None), state, lost


def _unfit(flow: Flow, node: str, answer: str) -> Text:
    """Return why an answer cannot be given at a node."""
    if node not in flow.nodes:
        return Text("the node is gone", "节点已不存在")
    if answer not in flow.nodes[node].branches:
        return Text(f"there is no branch {answer} any more", f"分支 {answer} 已不存在")
    return Text("the walk does not come there any more", "走查已不再经过此节点")


def _walks(
    session: str, judged: ev.Judged | None, state: SessionState, lost: Mapping[str, _Lost], catalog: Catalog
) -> Iterator[Moved]:
    """Yield the walks that stand elsewhere: than was recorded, or since an answer can no longer be taken."""
    for name, walk in state.walks.items():
        flow = catalog.flows.get(name)
        if flow is None:
            continue
        now, gone = position(flow, walk), lost.get(name)
        before = judged.stood.get(name) if judged is not None else None
        if judged is None and gone is not None:
            yield Moved(session, "walk", name, f"{gone.node}: {gone.answer}", now, name, gone.node, gone.why)
        elif before is not None and before != now:
            here = walk.steps[-1].node if walk.steps else flow.start
            node, why = here, Text(f"its answer leads to {now} now", f"其答案现通往 {now}")
            if gone is not None:
                node, why = gone.node, gone.why
            yield Moved(session, "walk", name, before, now, name, node, why)


def _causes(session: str, judged: ev.Judged, state: SessionState, catalog: Catalog) -> Iterator[Moved]:
    """Yield the causes that stand otherwise than was recorded.

    A cause that is new in the flows counts when it is confirmed, one that is gone when it was not ruled out.
    """
    report = state.report(catalog.flows.values(), catalog.vocabulary)
    now = {one.cause: ev.Stood(one.standing.value, one.flow, one.node) for one in (*report.causes, *report.ruled_out)}
    turns = Turns(judged.decided, decided(state, catalog.flows), state, catalog)
    for cause in dict.fromkeys((*judged.causes, *now)):
        was, stands = judged.causes.get(cause), now.get(cause)
        before, after = (one.standing if one is not None else GONE for one in (was, stands))
        untold = (GONE, Standing.POSSIBLE.value), (GONE, Standing.RULED_OUT.value), (Standing.RULED_OUT.value, GONE)
        if before == after or (before, after) in untold:
            continue
        yield Moved(session, "cause", cause, before, after, *turns.first(cause, was, stands))


@dataclass(frozen=True)
class Turns:
    """Finds the node at which the way to a cause turned. before, after: what was decided under either flows."""

    before: Decided
    after: Decided
    state: SessionState
    catalog: Catalog

    def first(self, cause: str, was: ev.Stood | None, stands: ev.Stood | None) -> tuple[str, str, Text]:
        """Return flow, node and why; the node is "" where no single one decides otherwise."""
        closest = min(
            ((one, table) for one, table in ((was, self.before), (stands, self.after)) if one is not None),
            key=lambda pair: _CLOSEST.index(pair[0].standing) if pair[0].standing in _CLOSEST else len(_CLOSEST),
        )
        stood, table = closest
        flow = self.catalog.flows.get(stood.flow)
        way = _way(table.get(stood.flow, {}), stood.node)
        every = dict.fromkeys((*self.before.get(stood.flow, {}), *self.after.get(stood.flow, {})))
        near = [
            name
            for name in every
            if name in way or flow is None or name not in flow.nodes or stood.node in flow.reach(name)
        ]
        nowhere = (stood.flow, "", Text("what lies before its proof changed", "其证据之前的路径已改变"))
        return self._on(stood.flow, near) or self._leaf(cause, stood) or self._on(stood.flow, every) or nowhere

    def _on(self, flow: str, way: Iterable[str]) -> tuple[str, str, Text] | None:
        """Return the first node on a way that decides otherwise, None when there is none."""
        before, after = self.before.get(flow, {}), self.after.get(flow, {})
        node = next((node for node in way if before.get(node) != after.get(node)), None)
        return None if node is None else (flow, node, self._why(flow, node, before.get(node), after.get(node)))

    def _leaf(self, cause: str, stood: ev.Stood) -> tuple[str, str, Text] | None:
        """Return what became of a leaf to which the way is the same, None when it is the same, too."""
        flow = self.catalog.flows.get(stood.flow)
        if flow is not None and stood.node not in flow.nodes:
            return stood.flow, stood.node, Text("the leaf is gone", "叶节点已不存在")
        if flow is not None and flow.nodes[stood.node].cause != cause:
            return stood.flow, stood.node, Text("the leaf names another cause now", "叶节点现指向另一原因")
        return None

    def _why(self, flow: str, name: str, was: tuple[str, str] | None, now: tuple[str, str] | None) -> Text:
        known = self.catalog.flows.get(flow)
        node = known.nodes.get(name) if known is not None else None
        if known is None or node is None:
            return Text("the node is gone", "节点已不存在")
        if was is None:
            answer = now[0] if now is not None else ""
            return Text(f"it decides {answer} now, and decided nothing before", f"现判定为 {answer}，此前未判定")
        answer, target = was
        if answer not in node.branches:
            return self._no_branch(node, answer)
        if now is None:
            return self._undecided(known, name)
        if now[0] == answer:
            return Text(f"{answer} leads to {now[1]} now, not to {target}", f"{answer} 现通往 {now[1]}，而非 {target}")
        return Text(f"it decides {now[0]} now, not {answer}", f"现判定为 {now[0]}，而非 {answer}")

    def _no_branch(self, node: Node, answer: str) -> Text:
        declared = {word for probe in node.probes for word in self.catalog.answers.get(probe, ())}
        if answer in declared:
            return Text(f"there is no branch {answer} any more", f"分支 {answer} 已不存在")
        return Text(f"none of its probes declares {answer} any more", f"其探针不再声明答案 {answer}")

    def _undecided(self, flow: Flow, name: str) -> Text:
        if all(name != one for one, _ in reached(self.state, flow)):
            return Text("the way does not come there any more", "路径已不再经过此节点")
        found, probes = self.state.findings_at(flow, name), flow.nodes[name].probes
        unasked = ", ".join(probe for probe in probes if probe not in found)
        if unasked:
            return Text(f"it asks {unasked} now, which was not asked then", f"现询问 {unasked}，当时未询问")
        names = ", ".join(probes) or "-"
        return Text(f"it asks {names} now, which does not decide it", f"现询问 {names}，不足以判定")


def _way(table: Mapping[str, tuple[str, str]], leaf: str) -> list[str]:
    """Return the decided nodes that lead to a leaf, in the order of the way."""
    on, fresh = {leaf}, {leaf}
    while fresh:
        fresh = {name for name, (_, target) in table.items() if target in fresh} - on
        on |= fresh
    return [name for name in table if name in on]

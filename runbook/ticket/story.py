"""The story in a ticket: how the evidence leads to a cause, what to do next, what happened, and who answered what."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from runbook.flow.model import Flow
from runbook.text import sanitise
from runbook.ticket import transcript as tr
from runbook.ticket.parts import Speaker, do, lines, place
from runbook.walk import By, How, Step, position


def title(make: Speaker) -> str:
    """Return the problem in one line."""
    confirmed, possible = make.report.confirmed, make.report.possible
    leaf = reached(make)
    if confirmed:
        return make.title(confirmed[0].cause)
    if leaf is not None:
        return make.word("title.reached", title=make.title(leaf[2]))
    if possible or make.report.unknown:
        return make.word("title.open", possible=len(possible), unknown=len(make.report.unknown))
    return make.word("title.clear")


def reached(make: Speaker) -> tuple[Flow, str, str] | None:
    """Return flow, leaf and cause at which the walk in front stands, None when it stands elsewhere."""
    flow = make.flows.get(make.state.current)
    if flow is None:
        return None
    here = position(flow, make.state.walk(flow.flow))
    cause = flow.nodes[here].cause
    return None if cause is None else (flow, here, cause)


def chain(make: Speaker, flow: Flow, leaf: str) -> tuple[tr.Link, ...]:
    """Return the way from the flow's start to a leaf that the evidence and the walk support best."""
    said = {step.node: step for step in make.state.walk(flow.flow).steps}
    cost: dict[str, int] = {flow.start: 0}
    came: dict[str, tuple[str, str]] = {}
    todo = [(0, flow.start)]
    while todo:
        so_far, name = heapq.heappop(todo)
        if so_far > cost[name]:
            continue
        decision = make.state.decision(flow, name)
        for word, target in flow.nodes[name].branches.items():
            agreed = word == (said[name].answer if name in said else decision.answer)
            price = so_far + (1 if agreed else 100 if decision.how is not How.DECIDED else 10_000)
            if price < cost.get(target, 1 << 60):
                cost[target], came[target] = price, (name, word)
                heapq.heappush(todo, (price, target))
    links: list[tr.Link] = []
    while leaf in came:
        leaf, word = came[leaf]
        links.append(_link(make, flow, leaf, word, said.get(leaf)))
    return tuple(reversed(links))


def _link(make: Speaker, flow: Flow, node: str, word: str, step: Step | None) -> tr.Link:
    decision = make.state.decision(flow, node)
    question, answer = make.question(flow.flow, node), make.answer(flow.flow, node, word)
    if decision.how is How.DECIDED and decision.answer == word:
        probes = ", ".join(finding.probe for finding in decision.findings)
        cited = next((c for finding in decision.findings for c in finding.citations), None)
        return tr.Link(node, question, answer, "evidence", probes, place(cited) if cited is not None else None)
    if step is not None and step.answer == word:
        return tr.Link(node, question, answer, "person", sanitise(step.who))
    return tr.Link(node, question, make.word("open_answer", answer=answer), "open")


def next_action(make: Speaker, session: str = "") -> tr.Next:
    """Return the one next action. session: id of the kept session, "" for none.

    The experiment at which a walk stands that has begun; else the fix of the first confirmed cause; else that of the
    cause the walk reached; else what settles the node at which the walk stands; else the first unknown on the way to
    the nearest possible cause.
    """
    confirmed, leaf = make.report.confirmed, reached(make)
    waiting = _waiting(make)
    if waiting is not None:
        return _experiment(make, *waiting, session)
    if confirmed:
        flow, name, node = confirmed[0].flow, confirmed[0].node, confirmed[0].leaf
        heading = make.word("next.fix", title=make.title(confirmed[0].cause))
    elif leaf is not None:
        flow, name, node = leaf[0].flow, leaf[1], make.state.node(leaf[0], leaf[1])
        heading = make.word("next.reached", title=make.title(leaf[2]))
    else:
        return _settle(make)
    actions = tuple(do(make, action) for action in node.actions)
    return tr.Next(heading, make.say(node.fix) or make.word("next.see", flow=flow, node=name), actions, node.verify)


def _waiting(make: Speaker) -> tuple[Flow, str] | None:
    """Return the experiment at which the walk in front stands, when somebody walked there."""
    flow = make.flows.get(make.state.current)
    if flow is None or not make.state.walk(flow.flow).steps:
        return None
    node = position(flow, make.state.walk(flow.flow))
    return (flow, node) if flow.nodes[node].kind == "experiment" else None


def _experiment(make: Speaker, flow: Flow, name: str, session: str) -> tr.Next:
    """Return what is to be done for an experiment: start the copy where there is one, and come back with its run."""
    node, copy = flow.nodes[name], make.state.copies.get((flow.flow, name))
    change = node.change.lines() if node.change is not None else ()
    actions = [tr.Do(make.word("next.experiment"), change=change)]
    if copy is not None and copy.command:
        actions.append(tr.Do(command=lines(copy.command)))
    if session:
        actions.append(tr.Do(make.word("next.resume"), command=f"slime-runbook resume {session} --attach RUN"))
    return tr.Next(make.question(flow.flow, name), "", tuple(actions), node.probes, settles=True)


def _settle(make: Speaker) -> tr.Next:
    opens = {(open_.flow, open_.node): open_ for open_ in make.report.unknown}
    flow = make.flows.get(make.state.current)
    standing = (flow.flow, position(flow, make.state.walk(flow.flow))) if flow is not None else ("", "")
    nearest = make.report.possible[0].flow if make.report.possible else ""
    chosen = opens.get(standing) or next((o for o in opens.values() if o.flow == nearest), None)
    chosen = chosen or next(iter(opens.values()), None)
    if chosen is None:
        return tr.Next(make.word("next.none"))
    node = make.state.node(make.flows[chosen.flow], chosen.node)
    actions = tuple(do(make, action) for action in node.actions)
    if node.change is not None:
        actions = (tr.Do(make.word("next.experiment"), change=node.change.lines()), *actions)
    return tr.Next(make.say(chosen.question), make.say(chosen.settle_with), actions, node.probes, settles=True)


def timeline(make: Speaker, problems: Sequence[tr.Proof]) -> tuple[tr.Moment, ...]:
    """Return what happened: the cited log lines that carry a time, then what people did, each earliest first.

    Log lines tell no zone, so nobody knows which of the others they came before.
    """
    moments = [
        tr.Moment(cited.time, "log", cited.excerpt, cited.where)
        for proof in problems
        for cited in proof.places
        if cited.time
    ]
    if make.state.began:
        moments.append(tr.Moment(make.state.began, "session", make.word("moment.began")))
    for name, walk in make.state.walks.items():
        for step in (*walk.stale, *walk.steps):
            answer = f"{make.question(name, step.node)} → {make.answer(name, step.node, step.answer)}"
            moments.append(tr.Moment(step.time, "session", answer, f"{name}/{step.node}"))
    moments += [
        tr.Moment(
            note.time,
            "session",
            make.word("moment.note", words=sanitise(" / ".join(note.words.splitlines()))),
            note.node,
        )
        for note in make.state.notes
    ]
    moments += [
        tr.Moment(fix.time, "session", f"{make.word('moment.fixed')} {sanitise(fix.words)}", sanitise(fix.cause))
        for fix in make.state.fixes
    ]
    return tuple(sorted(dict.fromkeys(moments), key=lambda moment: (moment.source != "log", moment.time)))


def answers(make: Speaker) -> tuple[tr.Said, ...]:
    """Return every answer of every walk, overtaken ones included, in the order of time."""
    return tuple(
        _said(make, name, step)
        for name, walk in make.state.walks.items()
        for step in sorted((*walk.stale, *walk.steps), key=lambda step: step.time)
    )


def _said(make: Speaker, name: str, step: Step) -> tr.Said:
    flow = make.flows.get(name)
    overrules = ""
    if flow is not None and step.node in flow.nodes and step.by is By.PERSON:
        decision = make.state.decision(flow, step.node)
        if decision.how is How.DECIDED and decision.answer not in (None, step.answer):
            overrules = make.answer(name, step.node, decision.answer or "")
    return tr.Said(
        flow=name,
        node=step.node,
        question=make.question(name, step.node),
        answer=make.answer(name, step.node, step.answer),
        by=step.by.value,
        who=sanitise(step.who),
        time=step.time,
        stale=step.stale,
        overrules=overrules,
    )

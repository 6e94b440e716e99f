"""Makes the transcript of a session: what is known, put into the words of one language. Pure: no clock, no disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runbook.experiments import grids, side_by_side
from runbook.finding import Finding, Verdict
from runbook.flow.model import Cause, Flow
from runbook.session.state import SessionState
from runbook.text import sanitise
from runbook.ticket import transcript as tr
from runbook.ticket.experiments import experiments
from runbook.ticket.parts import Speaker, do, number, place, proof_of, show_path, table_of
from runbook.ticket.story import answers, chain, next_action, timeline, title
from runbook.triage import Open, Report, Standing, Verdicted
from runbook.whereabouts import IN_TICKET, whereabouts

_ORDER = [
    Verdict.PROBLEM,
    Verdict.WARNING,
    Verdict.UNKNOWN,
    Verdict.TIMED_OUT,
    Verdict.PROBE_ERROR,
    Verdict.OK,
    Verdict.NOT_APPLICABLE,
]
_BAD = (Verdict.PROBLEM, Verdict.WARNING)


def transcript(
    state: SessionState,
    flows: Mapping[str, Flow],
    vocabulary: Mapping[str, Cause],
    report: Report,
    *,
    language: str = "en",
    session: str = "",
    facts: Sequence[tuple[str, str]] = (),
    seen: Sequence[str] = (),
) -> tr.Transcript:
    """Return the transcript of a session in `language` ("en" or "zh").

    session: its id, "" for a triage that was not kept. facts: what the caller knows of the machine, as name and value.
    seen: what is known of earlier sessions, a line each.
    """
    make = Speaker(state, flows, vocabulary, report, language)
    causes = tuple(_cause(make, rank, verdicted) for rank, verdicted in enumerate(report.causes, 1))
    problems = _problems(make, causes)
    walked = [flows[name] for name, walk in state.walks.items() if name in flows and (walk.steps or walk.stale)]
    front = [flows[state.current]] if state.current in flows else []
    return tr.Transcript(
        schema=tr.SCHEMA,
        language=language,
        session=session,
        title=title(make),
        root=show_path(state.root),
        symptoms=tuple(dict.fromkeys(make.say(flow.symptom) for flow in (*front, *walked))),
        notes=tuple(
            tr.Remark(tuple(map(sanitise, note.words.splitlines())), note.time, sanitise(note.who), note.node)
            for note in state.notes
        )
        + tuple(
            tr.Remark((make.word("moment.fixed"), sanitise(fix.words)), fix.time, sanitise(fix.who))
            for fix in state.fixes
        ),
        causes=causes,
        clear=tuple(make.say(flows[flow].nodes[node].clear) for flow, node in report.clear if flow in flows),
        asked=tuple(make.say(flows[flow].title) for flow in report.asked if flow in flows),
        problems=problems,
        checks=_checks(make),
        ruled_out=tuple(_ruled_out(make, verdicted) for verdicted in report.ruled_out),
        unknown=tuple(_unknown(make, open_) for open_ in report.unknown),
        next=next_action(make, session),
        environment=tr.Environment(
            version=state.version,
            sources=tuple(
                tr.Source(i.slot, show_path(i.path), make.say(i.why), i.origin, i.missing, i.run) for i in state.items
            ),
            facts=tuple((sanitise(name), sanitise(value)) for name, value in facts),
            flows=tuple(sorted(state.flow_hashes.items())),
        ),
        timeline=timeline(make, problems),
        answers=answers(make),
        walked=bool(walked),
        experiments=experiments(make),
        matrices=tuple(table_of(make, grid) for flow in walked for grid in grids(flow, state, language)),
        runs=table_of(make, compared) if (compared := side_by_side(state, language)) is not None else None,
        where=whereabouts(state, report, flows, vocabulary, language, width=IN_TICKET),
        seen=tuple(map(sanitise, seen)),
        began=state.began,
        changed=state.changed,
    )


def _cause(make: Speaker, rank: int, verdicted: Verdicted) -> tr.CauseLine:
    leaf = verdicted.leaf
    flow = make.flows.get(verdicted.flow)
    confirmed = verdicted.standing is Standing.CONFIRMED
    return tr.CauseLine(
        rank=rank,
        cause=verdicted.cause,
        title=make.title(verdicted.cause),
        standing=verdicted.standing.value,
        flow=verdicted.flow,
        node=verdicted.node,
        guide=leaf.guide_ids,
        proofs=tuple(proof_of(make, finding) for finding in verdicted.by),
        chain=chain(make, flow, verdicted.node) if flow is not None and confirmed else (),
        consequences=tuple(make.title(cause) for cause in verdicted.consequences),
        fix=make.say(leaf.fix),
        actions=tuple(do(make, action) for action in leaf.actions),
        verify=leaf.verify,
        open=verdicted.open,
        led=verdicted.led,
    )


def _problems(make: Speaker, causes: Sequence[tr.CauseLine]) -> tuple[tr.Proof, ...]:
    """Return what was found wrong, each once: proofs of the causes in rank order and the way there, then the rest."""
    bad = [finding for verdict in _BAD for finding in make.state.findings.values() if finding.verdict is verdict]
    ranked: list[tr.Proof] = []
    for cause in causes:
        if cause.standing == Standing.CONFIRMED.value:
            on_the_way = {probe for link in cause.chain if link.how == "evidence" for probe in link.by.split(", ")}
            ranked += (*cause.proofs, *(proof_of(make, finding) for finding in bad if finding.probe in on_the_way))
    return tuple(dict.fromkeys((*ranked, *(proof_of(make, finding) for finding in bad))))


def _checks(make: Speaker) -> tuple[tr.Check, ...]:
    every = sorted(make.state.findings.items(), key=lambda entry: (_ORDER.index(entry[1].verdict), entry[0]))
    return tuple(_check(make, run, finding) for (run, _), finding in every)


def _check(make: Speaker, run: str, finding: Finding) -> tr.Check:
    return tr.Check(
        probe=finding.probe,
        question=make.say(make.questions.get(finding.probe)),
        verdict=finding.verdict.value,
        answer=finding.answer or "",
        summary=make.say(finding.summary),
        run=run,
        places=tuple(place(citation) for citation in finding.citations),
        numbers=tuple(number(measurement) for measurement in finding.measurements),
        tables=tuple(table_of(make, table) for table in finding.tables),
        settle_with=make.say(finding.settle_with),
        seconds=finding.seconds,
    )


def _ruled_out(make: Speaker, verdicted: Verdicted) -> tr.RuledOut:
    first = verdicted.by[0] if verdicted.by else None
    cited = next(iter(verdicted.citations), None)
    return tr.RuledOut(
        verdicted.cause,
        make.title(verdicted.cause),
        make.say(first.summary) if first is not None else "",
        first.probe if first is not None else "",
        place(cited) if cited is not None else None,
    )


def _unknown(make: Speaker, open_: Open) -> tr.Question:
    return tr.Question(
        open_.flow,
        open_.node,
        make.say(open_.question),
        make.say(open_.why),
        make.say(open_.settle_with),
        open_.slots,
        open_.experiment,
    )

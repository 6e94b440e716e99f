"""`slime-runbook run FLOW RUN`: a plain walk, questions on stdin.

The walk is a session, so it can be resumed and exported. Invariants: the walk never ends without naming what evidence
has confirmed, wherever it stands; the exit code is evidence's, never a person's word alone (docs/errors.md).
"""

from __future__ import annotations

import argparse
import os
import sys

from runbook.cli import desks, options
from runbook.cli import seen as ledger
from runbook.errors import RunbookError, UsageError
from runbook.exits import ExitCode
from runbook.flow.model import Flow
from runbook.plain import Plain
from runbook.plain_experiments import copied, experiment, summary
from runbook.plain_handover import node_notes
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session
from runbook.session.people import author, note_words
from runbook.triage import Verdicted
from runbook.walk import Decision, How, position


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("flow", metavar="FLOW", help="id of the flow, see flows list")
    options.add_evidence(parser)
    options.add_drawn_flows(parser)
    options.add_sessions(parser)
    options.add_who(parser)
    parser.add_argument("--yes-to-probes", action="store_true", help="take what the probes decide without asking")


def run(parsed: argparse.Namespace) -> int:
    """Walk the flow; return the exit code of where it ended."""
    options.take_who(parsed)
    catalog = options.catalog(parsed.flows, parsed.lang)
    if parsed.flow not in catalog.flows:
        raise UsageError(f"unknown flow {parsed.flow!r}", f"flows: {', '.join(catalog.flows)}")
    pairs = options.given(parsed)
    root = options.run_root(parsed) or ("" if pairs else os.getcwd())
    desk = new_session(catalog, parsed.sessions, parsed.lang)
    try:
        desk.begin(root)
        desks.collect(desk, root, pairs)
        desk.append(ev.FlowStarted(parsed.flow))
        plain = Plain(parsed.lang, ascii_only=parsed.ascii)
        return walk_through(desk, catalog.flows[parsed.flow], plain, take_probes=parsed.yes_to_probes)
    finally:
        desk.close()


def walk_through(desk: Desk, flow: Flow, plain: Plain, *, take_probes: bool) -> int:
    """Ask node after node until a leaf, the end of stdin or `q`.

    All other probes of triage are asked behind those of the node at hand.
    """
    told: set[str] = set()
    while True:
        name = position(flow, desk.state.walk(flow.flow))
        node = flow.nodes[name]
        run = desk.state.run_at(flow, name)
        if run is not None:
            known = desk.state.findings_of(run)
            wanted = (*desk.light(node.probes), *(desk.flow_probes(flow.flow) if run else ()))
            desks.ask_all(desk, [probe for probe in wanted if probe not in known], run)
        for probe in desk.triage_probes():
            if probe not in desk.state.findings_of():
                desk.ask(probe)
        decision = desk.state.decision(flow, name)
        plain.node(flow, name, decision)
        experiment(plain, desk.state, flow, name)
        node_notes(plain, desk, flow.flow, name)
        if node.is_leaf:
            return _end(desk, flow, name, plain)
        if take_probes and decision.how is How.DECIDED and decision.answer is not None:
            plain.line(f"→ {decision.answer}" if not plain.ascii else f"-> {decision.answer}", 2, "bold cyan")
            desk.answer(flow.flow, decision.answer)
            continue
        if decision.how is not How.DECIDED:
            _meanwhile(desk, flow, plain, told)
        _unasked(desk, flow, name, plain)
        plain.choices(node, decision.answer)
        if not _ask(desk, flow, name, plain, decision):
            return _stop(desk, flow, name, plain)


def _meanwhile(desk: Desk, flow: Flow, plain: Plain, told: set[str]) -> None:
    """Say, each once, what evidence has confirmed so far; a person at a terminal is not kept waiting for the rest."""
    if not sys.stdin.isatty():
        _ask_rest(desk, plain)
    for cause in desk.report().confirmed:
        if cause.cause not in told:
            told.add(cause.cause)
            place = plain.say(f"confirmed meanwhile: {cause.cause}", f"同时已确认：{cause.cause}")
            if cause.flow == flow.flow:
                plain.line(place + plain.say(f" (this flow, node {cause.node})", f"（本流程，节点 {cause.node}）"), 2)
            else:
                there = plain.say("; go there with: ", "；前往：") + desks.walk_command(desk, cause.flow)
                plain.line(f"{place} ({plain.say('flow', '流程')} {cause.flow}){there}", 2)


def _unasked(desk: Desk, flow: Flow, name: str, plain: Plain) -> None:
    """Name the probes of the node that run only when a person says so."""
    run, probes = desk.state.run_at(flow, name), flow.nodes[name].probes
    heavy = [probe for probe in probes if probe in desk.catalog.probes and probe not in desk.light(probes)]
    waiting = [probe for probe in heavy if run is not None and probe not in desk.state.findings_of(run)]
    if waiting:
        names = ", ".join(waiting)
        plain.line(plain.say(f"not asked, it reads bulk data: {names}", f"未询问（需读取大量数据）：{names}"), 2, "dim")


def _prompt(desk: Desk, flow: Flow, name: str, plain: Plain, decision: Decision) -> str:
    """Return what may be typed at this node."""
    node = flow.nodes[name]
    experiment = node.kind == "experiment"
    ways = [plain.say("number or word", "编号或单词")]
    ways += [plain.say("Enter = recommended", "回车=推荐")] if decision.answer is not None else []
    if experiment:
        ways += [plain.say("c = write the changed copy", "c=写出修改后的副本")] if desk.catalog.changers else []
        ways.append(plain.say("r PATH = attach the new run", "r 路径=附上新的运行"))
    ways += [plain.say("p = ask the probes again", "p=重新询问探针")] if node.probes else []
    ways += [plain.say("b = back, n TEXT = note, q = leave", "b=返回，n 文字=备注，q=离开")]
    return plain.say(f"answer ({', '.join(ways)}): ", f"回答（{'，'.join(ways)}）：")


def _ask(desk: Desk, flow: Flow, name: str, plain: Plain, decision: Decision) -> bool:
    """Read words until one changes something; False when the person leaves or stdin ends."""
    words = list(flow.nodes[name].branches)
    while True:
        print(_prompt(desk, flow, name, plain, decision), end="", file=sys.stderr, flush=True)
        read = sys.stdin.readline()
        if not read or read.strip() == "q":
            return False
        said = read.strip()
        if said in words or (said.isdecimal() and 1 <= int(said) <= len(words)):
            desk.answer(flow.flow, said if said in words else words[int(said) - 1])
            return True
        if said == "" and decision.answer is not None:
            desk.answer(flow.flow, decision.answer)
            return True
        if said == "":
            plain.line(plain.say("Nothing is recommended here: choose an answer.", "此处没有推荐：请选择回答。"), 2)
        elif _done(desk, flow, name, plain, said):
            return True


def _done(desk: Desk, flow: Flow, name: str, plain: Plain, said: str) -> bool:
    """Do what is no answer; return whether the node is to be drawn again."""
    letter, _, rest = said.partition(" ")
    node, rest = flow.nodes[name], rest.strip()
    if said == "b":
        walk = desk.state.walk(flow.flow)
        if walk.steps:
            desk.append(ev.WentBack(flow.flow, walk.steps[-1].node))
            return True
        plain.line(plain.say("This is the first node.", "这是第一个节点。"), 2)
    elif letter == "n" and rest:
        desk.append(ev.Noted(note_words(rest), author(), flow.flow, name))
    elif said == "p" and node.probes:
        run = desk.state.run_at(flow, name)
        if run is not None:
            desks.ask_all(desk, node.probes, run)
            return True
        plain.line(plain.say("Attach the new run first: r PATH.", "请先附上新的运行：r 路径。"), 2)
    elif node.kind == "experiment" and (said == "c" or (letter == "r" and rest)):
        return _experiment(desk, flow, name, plain, rest)
    else:
        plain.line(plain.say(f"not an answer: {said}", f"不是可选的回答：{said}"), 2)
    return False


def _experiment(desk: Desk, flow: Flow, name: str, plain: Plain, run: str) -> bool:
    """Attach the run in `run`, or write the changed copy where it is ""; return whether to draw the node again."""
    try:
        if run:
            desks.attach(desk, flow.flow, name, run)
            return True
        copied(plain, desks.change(desk, flow.flow, name), desk.session_id if desk.folder else "")
    except RunbookError as error:
        plain.line(f"{error.message}  {error.hint}", 2, "yellow")
    return False


def _end(desk: Desk, flow: Flow, name: str, plain: Plain) -> int:
    """Show the leaf with what its probes say now; return the exit code."""
    node = flow.nodes[name]
    shown = {probe for step in desk.state.walk(flow.flow).steps for probe in step.probes}
    further = [probe for probe in node.verify if probe not in shown]
    desks.ask_all(desk, [probe for probe in desk.light(further) if probe not in desk.state.findings_of()])
    for probe in further:
        if (finding := desk.state.findings_of().get(probe)) is not None and finding.verdict.decides:
            plain.finding(finding, 2)
    if node.cause is not None:
        known = desk.catalog.vocabulary.get(node.cause)
        title = known.title.say(desk.language) if known is not None else ""
        plain.line(f"{plain.say('cause: ', '原因：')}{node.cause}  {title}", style="bold")
    plain.leaf(desk.state.node(flow, name))
    summary(plain, desk.state, flow)
    return _stop(desk, flow, name, plain)


def _stop(desk: Desk, flow: Flow, name: str, plain: Plain) -> int:
    """Name what evidence confirms, in whatever flow, and where the session is; return the exit code."""
    _ask_rest(desk, plain)
    report = desk.report()
    ledger.remember(desk)
    seen = ledger.of_session(desk, report, desk.folder)
    here = flow.nodes[name].cause
    for words in seen.get(here or "", ()):
        plain.line(words, 2, "yellow")
    if here is not None and here not in {cause.cause for cause in report.confirmed}:
        plain.line(
            plain.say("Reached by answers; evidence does not confirm it.", "由回答得出，证据尚未确认。"), 2, "yellow"
        )
    others = [cause for cause in report.confirmed if cause.cause != here]
    if others:
        plain.heading(plain.say("Confirmed by evidence", "证据已确认"))
        titles = {name: cause.title for name, cause in desk.catalog.vocabulary.items()}
        for cause in others:
            plain.cause(cause, titles, seen.get(cause.cause, ()))
            _where(desk, flow, cause, plain)
    hint = plain.say("session kept: ", "会话已保存：")
    print(f"{hint}{desk.session_id}  (slime-runbook export {desk.session_id} --format markdown)", file=sys.stderr)
    if report.confirmed:
        return ExitCode.CONFIRMED
    return ExitCode.CLEAR if (flow.flow, name) in report.clear else ExitCode.OPEN


def _where(desk: Desk, flow: Flow, cause: Verdicted, plain: Plain) -> None:
    if cause.flow != flow.flow:
        plain.line(plain.say("walk there with: ", "走查：") + desks.walk_command(desk, cause.flow), 2, "dim")


def _ask_rest(desk: Desk, plain: Plain) -> None:
    """Wait for every probe of triage."""
    rest = [probe for probe in desk.triage_probes() if probe not in desk.state.findings_of()]
    if rest:
        print(plain.say(f"asking {len(rest)} further probes", f"正在询问另外 {len(rest)} 个探针"), file=sys.stderr)
        desks.ask_all(desk, rest)

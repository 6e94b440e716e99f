"""`slime-runbook run FLOW RUN`: a plain walk, questions on stdin.

The walk is a session, so it can be resumed and exported.
"""

from __future__ import annotations

import argparse
import sys

from runbook.cli import desks, options
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.flow.model import Flow
from runbook.plain import Plain
from runbook.session import events as ev
from runbook.session.desk import Desk, login_name
from runbook.walk import How, position


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("flow", metavar="FLOW", help="id of the flow, see flows list")
    options.add_evidence(parser, run_required=False)
    options.add_common(parser)
    options.add_sessions(parser)
    parser.add_argument("--yes-to-probes", action="store_true", help="take what the probes decide without asking")


def run(parsed: argparse.Namespace) -> int:
    """Walk the flow; return the exit code of where it ended."""
    catalog = options.catalog(parsed)
    if parsed.flow not in catalog.flows:
        raise UsageError(f"unknown flow {parsed.flow!r}", f"flows: {', '.join(catalog.flows)}")
    pairs = options.given(parsed)
    root = options.run_root(parsed) or ("" if pairs else ".")
    desk = desks.new_session(catalog, parsed.sessions, parsed.lang)
    try:
        desk.begin(root)
        desks.collect(desk, root, pairs)
        desk.append(ev.FlowStarted(parsed.flow))
        plain = Plain(parsed.lang, ascii_only=parsed.ascii)
        return walk_through(desk, catalog.flows[parsed.flow], plain, take_probes=parsed.yes_to_probes)
    finally:
        desk.close()


def walk_through(desk: Desk, flow: Flow, plain: Plain, *, take_probes: bool) -> int:
    """Ask node after node until a leaf, the end of stdin or `q`."""
    while True:
        name = position(flow, desk.state.walk(flow.flow))
        node = flow.nodes[name]
        lacking = [probe for probe in node.probes if probe not in desk.state.findings_at(flow, name)]
        if node.kind != "experiment" and lacking:
            desks.ask_all(desk, lacking)
        decision = desk.state.decision(flow, name)
        plain.node(flow, name, decision)
        if node.is_leaf:
            return _end(desk, flow, name, plain)
        if take_probes and decision.how is How.DECIDED and decision.answer is not None:
            plain.line(f"→ {decision.answer}" if not plain.ascii else f"-> {decision.answer}", 2, "bold cyan")
            desk.answer(flow.flow, decision.answer)
            continue
        plain.choices(node, decision.answer)
        if not _ask(desk, flow, name, plain, decision.answer):
            _kept(desk, plain)
            return ExitCode.OPEN


def _ask(desk: Desk, flow: Flow, name: str, plain: Plain, recommended: str | None) -> bool:
    """Read words until one moves the walk; False when the person leaves or stdin ends."""
    words = list(flow.nodes[name].branches)
    prompt = plain.say(
        "answer (number or word, Enter = recommended, b = back, n TEXT = note, q = leave): ",
        "回答（编号或单词，回车=推荐，b=返回，n 文字=备注，q=离开）：",
    )
    while True:
        print(prompt, end="", file=sys.stderr, flush=True)
        read = sys.stdin.readline()
        if not read or read.strip() == "q":
            return False
        said = read.strip()
        if said == "b":
            walk = desk.state.walk(flow.flow)
            if walk.steps:
                desk.append(ev.WentBack(flow.flow, walk.steps[-1].node))
                return True
            plain.line(plain.say("This is the first node.", "这是第一个节点。"), 2)
        elif said.startswith("n "):
            desk.append(ev.Noted(said[2:].strip(), login_name(), flow.flow, name))
        elif said == "" and recommended is not None:
            desk.answer(flow.flow, recommended)
            return True
        elif said in words or (said.isdecimal() and 1 <= int(said) <= len(words)):
            desk.answer(flow.flow, said if said in words else words[int(said) - 1])
            return True
        else:
            plain.line(plain.say(f"not an answer: {said}", f"不是可选的回答：{said}"), 2)


def _end(desk: Desk, flow: Flow, name: str, plain: Plain) -> int:
    node = flow.nodes[name]
    shown = {probe for step in desk.state.walk(flow.flow).steps for probe in step.probes}
    further = [probe for probe in node.verify if probe not in shown]
    desks.ask_all(desk, [probe for probe in further if probe not in desk.state.findings_of()])
    for probe in further:
        if (finding := desk.state.findings_of().get(probe)) is not None and finding.verdict.decides:
            plain.finding(finding, 2)
    if node.cause is not None:
        title = desk.catalog.vocabulary[node.cause].title.say(desk.language)
        plain.line(f"{plain.say('cause: ', '原因：')}{node.cause}  {title}", style="bold")
    plain.leaf(node)
    _kept(desk, plain)
    return ExitCode.CONFIRMED if node.cause is not None else ExitCode.CLEAR


def _kept(desk: Desk, plain: Plain) -> None:
    hint = plain.say("session kept: ", "会话已保存：")
    print(f"{hint}{desk.session_id}  (slime-runbook export {desk.session_id} --format markdown)", file=sys.stderr)

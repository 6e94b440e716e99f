"""Experiments in plain text: the changed copy, the run that was made with it, the grid and the runs side by side.

The words of what is to be done next stand here once; the terminal UI and the ticket say them as well.
"""

from __future__ import annotations

import shlex

from runbook.experiments import grids, grids_at, runs, side_by_side
from runbook.flow.model import Flow
from runbook.picture import diff_lines
from runbook.plain import Plain
from runbook.session.events import CopyChanged
from runbook.session.journal import TOOL
from runbook.session.state import SessionState


def experiment(plain: Plain, state: SessionState, flow: Flow, node: str) -> None:
    """Write what belongs to a node beside its question: grids of which it is a cell, its copy, its run."""
    for grid in grids_at(flow, node, state, plain.language):
        plain.table(grid, 2)
    if flow.nodes[node].kind != "experiment":
        return
    copy, arrival = state.copies.get((flow.flow, node)), state.arrival(flow.flow, node)
    if arrival is not None:
        plain.line(plain.say(f"attached: {arrival.run}  ", f"已附上：{arrival.run}  ") + arrival.root, 2, "cyan")
        for words in arrival.lacks:
            plain.line(words.say(plain.language), 4, "yellow")
        if arrival.lacks:
            told = "It is not this experiment, so it decides nothing. Attach another run, or answer by hand."
            plain.line(plain.say(told, "它不是该实验，因此不作结论。请附上另一个运行，或手动回答。"), 4, "yellow")
        for words in arrival.notes:
            plain.line(words.say(plain.language), 4, "dim")
        compared(plain, state)
    elif copy is not None:
        plain.line(plain.say(f"changed copy: {copy.path}", f"已修改的副本：{copy.path}"), 2, "cyan")
        if copy.command:
            plain.command(copy.command, 4)


def compared(plain: Plain, state: SessionState) -> None:
    """Write the runs of the session side by side, with where each was found."""
    table = side_by_side(state, plain.language)
    if table is None:
        return
    plain.console.print()
    plain.table(table, 2)
    for run in runs(state):
        plain.line(f"{run.name}  {run.node}  {run.root}", 4, "dim")


def summary(plain: Plain, state: SessionState, flow: Flow) -> None:
    """Write the grids of a flow that was walked, and the runs side by side."""
    for grid in grids(flow, state, plain.language):
        plain.console.print()
        plain.table(grid, 2)
    compared(plain, state)


def following(plain: Plain, flow: Flow, node: str, command: str) -> None:
    """Write which experiment is the next thing to do. command: what walks there."""
    plain.heading(plain.say("Next, an experiment", "下一步：做一个实验"))
    question = flow.nodes[node].question
    words = question.say(plain.language) if question is not None else node
    plain.line(f"{flow.flow}/{node}  {words}", 2)
    plain.command(command, 4)


def copied(plain: Plain, copy: CopyChanged, session: str) -> None:
    """Write what was changed, what is left to do by hand, and how to go on, also hours later.

    session: id of the session, "" when it is not kept.
    """
    plain.line(plain.say(f"copy of {copy.of}, changed:", f"{copy.of} 的副本，已修改："), 2)
    plain.diff(diff_lines(copy.diff), 4)
    if not copy.diff:
        plain.line(plain.say("(nothing had to be changed)", "（无需修改）"), 4)
    for words in copy.left:
        plain.line(plain.say("by hand: ", "手动：") + words.say(plain.language), 4, "yellow")
    for words in copy.notes:
        plain.line(plain.say("note: ", "注意：") + words.say(plain.language), 4)
    if copy.path:
        plain.line(plain.say(f"written to {copy.path}", f"已写入 {copy.path}"), 2, "cyan")
    if copy.command:
        plain.line(plain.say("Start it as you start the original:", "像启动原脚本那样启动它："), 2)
        plain.command(copy.command, 4)
    plain.line(plain.say("When it has run, attach its folder or log:", "运行后附上其文件夹或日志："), 2)
    plain.line(plain.say("r PATH here, or later:", "在此输入 r 路径，或稍后："), 4)
    if session:
        plain.command(resume(session), 4)


def resume(session: str, run: str = "RUN") -> str:
    """Return the command that goes on with a session once the new run is there."""
    return shlex.join((TOOL, "resume", session, "--attach", run))

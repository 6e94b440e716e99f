"""Where a session stands, in at most five lines: what the next shift reads first. Pure: no clock, no disk.

The problem; how far the walk is; what is ruled out and what is open; the next action; who did what last. Every front
shows these lines. Invariants: the next action is the ticket's, in the ticket's words; a line is sanitised, and where it
is cut it is cut between words, so that a name, a path or a token stands whole in it or not at all.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from runbook.flow.model import Cause, Flow
from runbook.session.state import Note, SessionState, fix_of
from runbook.text import CUT, Text, sanitise
from runbook.ticket.parts import Speaker, show_path
from runbook.ticket.story import next_action, title
from runbook.triage import Open, Report, Verdicted
from runbook.walk import By, How, position

WIDTH = 100
"""Cells of a line."""
IN_TICKET = 240
"""Cells of a line in a ticket, on a pipe and where it wraps: what stands further down in full is only begun here."""
NAMED = 3
"""Causes that are ruled out and named; the others are counted."""
QUESTION = 28
"""Cells that an open question keeps beside the names of what is ruled out."""
PLACE = 48
"""Characters of a path that is shown as seen from RUN; of a longer one the file name is shown."""

WORDS = {
    "problem": Text("Problem: {title}", "问题：{title}"),
    "confirmed": Text("Problem: {title} (confirmed, {place})", "问题：{title}（已确认，{place}）"),
    "sure": Text("Problem: {title} (confirmed)", "问题：{title}（已确认）"),
    "walk": Text(
        "Walk: {flow}, at {node}; evidence answered {done} of {all} questions, people {people}",
        "走查：{flow}，位于 {node}；{all} 个问题中 {done} 个由证据回答，{people} 个由人回答",
    ),
    "no_walk": Text(
        "Walk: none begun; evidence answered {done} of {all} questions",
        "走查：尚未开始；{all} 个问题中 {done} 个由证据回答",
    ),
    "ruled_out": Text("Ruled out {count}: {names}", "已排除 {count} 个：{names}"),
    "out_count": Text("Ruled out {count}", "已排除 {count} 个"),
    "none_ruled_out": Text("Ruled out: nothing", "已排除：无"),
    "more": Text("+{count}", "+{count}"),
    "open": Text("Open {count}: {question}", "待定 {count} 个：{question}"),
    "none_open": Text("Open: nothing", "待定：无"),
    "next": Text("Next: {title}", "下一步：{title}"),
    "fixed": Text("Fixed: {words} by {who} at {time}", "已修复：{words}（{who}，{time}）"),
    "verify": Text("verify with {probes}", "验证：{probes}"),
    "copy": Text("the changed copy {path} is to be run", "待运行修改后的副本 {path}"),
    "no_copy": Text("no changed copy is written yet", "尚未写出修改后的副本"),
    "attached": Text("{run} is attached", "已附上 {run}"),
    "since": Text("waiting since {time}", "自 {time} 起等待"),
    "last": Text("Last change: {time}", "最后更改：{time}"),
    "by": Text("by {who}", "由 {who}"),
    "note": Text("{count} notes, the last {time} by {who}: {words}", "{count} 条备注，最新 {time}，{who}：{words}"),
    "one_note": Text("note {time} by {who}: {words}", "备注 {time}，{who}：{words}"),
    "somebody": Text("somebody", "某人"),
}  # fmt: skip

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(])|(?<=[。！？])")
_PIECES = re.compile(r"\s+|[\u2e80-\uffef]|[^\s\u2e80-\uffef]+")


def whereabouts(
    state: SessionState,
    report: Report,
    flows: Mapping[str, Flow],
    vocabulary: Mapping[str, Cause],
    language: str = "en",
    *,
    width: int | None = WIDTH,
) -> tuple[str, ...]:
    """Return where a session stands, in at most five lines of at most `width` cells; None: as long as it takes.

    vocabulary: titles of causes. language: "en" or "zh".
    """
    make = Speaker(state, flows, vocabulary, report, language)
    parts = (_problem(make), _walk(make), _left(make, width), _fixed(make, width) or _next(make, width), _last(make))
    lines = (" ".join(part.split()) for part in map(sanitise, parts))
    return tuple(line if width is None else cut(line, width) for line in lines if line)


def note_head(note: Note, language: str) -> str:
    """Return who wrote a note and when, as every front shows it beside its words."""
    return f"{sanitise(note.who) or WORDS['somebody'].say(language)}, {moment(note.time)}"


def moment(seconds: float) -> str:
    """Return a time since the epoch as people read it, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _later(seconds: float, other: float) -> str:
    """Return a time without its day, where another that is shown before it is of that day."""
    return moment(seconds)[11:] if moment(seconds)[:10] == moment(other)[:10] else moment(seconds)


def cut(line: str, width: int) -> str:
    """Return a line cut between words to `width` cells."""
    if cell_len(line) <= width:
        return line
    kept, room = "", width - cell_len(CUT) - 1
    for piece in _PIECES.findall(line):
        if cell_len(kept) + cell_len(piece) > room:
            break
        kept += piece
    return f"{kept.rstrip()} {CUT}" if kept.strip() else CUT


def _say(make: Speaker, key: str, **values: object) -> str:
    return WORDS[key].say(make.language).format(**values)


def _join(make: Speaker, *parts: str) -> str:
    """Return parts of a line as one; a question already ends."""
    line = ""
    for part in filter(None, parts):
        stop = "；" if make.language == "zh" else "; "
        line += part if not line else f" {part}" if line.endswith(("?", "？")) else f"{stop}{part}"
    return line


def _problem(make: Speaker) -> str:
    confirmed = make.report.confirmed
    if not confirmed:
        return _say(make, "problem", title=title(make))
    cited = next((citation for citation in confirmed[0].citations if citation.line is not None), None)
    if cited is None:
        return _say(make, "sure", title=title(make))
    return _say(make, "confirmed", title=title(make), place=f"{_path(make, cited.path)}:{cited.line}")


def _path(make: Speaker, path: str) -> str:
    """Return a path as seen from RUN, its last part where that is still long."""
    inside = os.path.relpath(path, make.state.root) if make.state.root and os.path.isabs(path) else path
    if inside == "." or inside.startswith(".."):
        inside = path
    shown = show_path(inside)
    return shown if len(shown) <= PLACE else os.path.basename(shown.rstrip("/"))


def _walk(make: Speaker) -> str:
    flow = make.flows.get(make.state.current)
    walked = {step.node for step in make.state.walk(flow.flow).steps if step.by is By.PERSON} if flow else set()
    asked = [(one, name) for one in ([flow] if flow else make.flows.values()) for name in _questions(one)]
    done = sum(1 for one, name in asked if name not in walked and make.state.decision(one, name).how is How.DECIDED)
    if flow is None:
        return _say(make, "no_walk", done=done, all=len(asked))
    here = sanitise(position(flow, make.state.walk(flow.flow)))
    return _say(make, "walk", flow=make.say(flow.title), node=here, done=done, all=len(asked), people=len(walked))


def _questions(flow: Flow) -> list[str]:
    return [name for name, node in flow.nodes.items() if not node.is_leaf]


def _left(make: Speaker, width: int | None) -> str:
    """Return what is ruled out and what is open; as many causes are named as leave room for the open question."""
    opens, out = make.report.unknown, sorted(make.report.ruled_out, key=lambda one: _far(make, one))
    chosen = _matters(make, opens)
    question = make.say(chosen.question) if chosen is not None else ""
    still = _say(make, "open", count=len(opens), question=question) if opens else _say(make, "none_open")
    if not out:
        return _join(make, _say(make, "none_ruled_out"), still)
    titles, ids = [make.title(one.cause) for one in out], [sanitise(one.cause) for one in out]
    line = _join(make, _out(make, titles, NAMED), still)
    if width is None or cell_len(line) <= width:
        return line
    least = cell_len(still) - max(0, cell_len(question) - QUESTION)
    ways = (_out(make, ids, named) for named in range(NAMED, -1, -1))
    return _join(make, next((way for way in ways if cell_len(way) + 2 + least <= width), ""), still)


def _out(make: Speaker, names: Sequence[str], named: int) -> str:
    """Return how many causes are ruled out, the first `named` of them by name."""
    said = list(names[:named])
    if not said:
        return _say(make, "out_count", count=len(names))
    if len(names) > named:
        said.append(_say(make, "more", count=len(names) - named))
    return _say(make, "ruled_out", count=len(names), names=("、" if make.language == "zh" else ", ").join(said))


def _far(make: Speaker, one: Verdicted) -> tuple[bool, bool, bool]:
    """Return how little a cause that is ruled out matters.

    First come those of the flow in front, then those of the flow of the first cause that stands, then proven ones.
    """
    nearest = next((cause.flow for cause in make.report.causes), "")
    return one.flow != make.state.current, one.flow != nearest, not one.citations


def _matters(make: Speaker, opens: tuple[Open, ...]) -> Open | None:
    """Return the open question that matters: where the walk stands, else on the way to the nearest possible cause."""
    flow = make.flows.get(make.state.current)
    here = (flow.flow, position(flow, make.state.walk(flow.flow))) if flow is not None else ("", "")
    nearest = make.report.possible[0].flow if make.report.possible else ""
    return min(opens, key=lambda one: ((one.flow, one.node) != here, one.flow != nearest), default=None)


def _fixed(make: Speaker, width: int | None) -> str:
    """Return what fixed the first confirmed cause, and the probes that verify it; "" when nobody said so.

    The words give way to who said them, when, and the probes.
    """
    first = next(iter(make.report.confirmed), None)
    fix = fix_of(make.state, first.cause) if first is not None else None
    if first is None or fix is None:
        return ""
    probes = ", ".join(map(sanitise, first.leaf.verify))
    verify = _say(make, "verify", probes=probes) if probes else ""
    who = sanitise(fix.who) or _say(make, "somebody")

    def said(words: str) -> str:
        return _join(make, _say(make, "fixed", words=words, who=who, time=moment(fix.time)), verify)

    words = " ".join(sanitise(fix.words).split())
    room = cell_len(words) if width is None else width - cell_len(said(""))
    return said(cut(words, max(room, QUESTION)))


def _begins(words: str) -> list[str]:
    """Return some words, then ever fewer of their sentences, the first one last."""
    ends = [match.start() for match in _SENTENCE.finditer(words)]
    return [words, *(words[:end] for end in reversed(ends))]


def _fitting(width: int | None, whole: str, *shorter: str) -> str:
    """Return the longest of the ways to say a line that fits; of the others the last, which is cut."""
    fits = (one for one in (whole, *(f"{one} {CUT}" for one in shorter)) if width is None or cell_len(one) <= width)
    return next(fits, (whole, *shorter)[-1])


def _next(make: Speaker, width: int | None) -> str:
    """Return the next action; where room is short, the first sentence of what is to be done goes before all else."""
    todo = next_action(make)
    flow = make.flows.get(make.state.current)
    steps = make.state.walk(flow.flow).steps if flow is not None else ()
    node = position(flow, make.state.walk(flow.flow)) if flow is not None else ""
    if flow is None or not steps or flow.nodes[node].kind != "experiment":
        words = todo.words or (todo.actions[0].say if todo.actions else "")
        if words and todo.title == make.word("next.fix", title=title(make)):  # the first line has that title already
            ways = [make.word("next.fix", title=said) for said in _begins(words)]
            return _fitting(width, *(_say(make, "next", title=way) for way in ways))
        stop = "" if todo.title.endswith(("?", "？", ".", "。")) else "。" if make.language == "zh" else "."
        ways = [f"{todo.title}{stop} {said}" for said in _begins(words)] if words else [todo.title]
        ways += _begins(words)[-1:] if words else []
        return _fitting(width, *(_say(make, "next", title=way) for way in ways))
    key = (flow.flow, node)
    if key in make.state.attached:
        how = _say(make, "attached", run=make.state.attached[key])
    elif key in make.state.copies and make.state.copies[key].path:
        how = _say(make, "copy", path=os.path.basename(show_path(make.state.copies[key].path)))
    else:
        how = _say(make, "no_copy")
    since = (
        _say(make, "since", time=moment(steps[-1].time)) if steps[-1].time and key not in make.state.attached else ""
    )
    return _join(make, _say(make, "next", title=todo.title), how, since)


def _last(make: Speaker) -> str:
    state = make.state
    if not state.changed:
        return ""
    said = _say(make, "last", time=moment(state.changed))
    said = " ".join(part for part in (said, _say(make, "by", who=sanitise(state.by)) if state.by else "") if part)
    if not state.notes:
        return said
    note = state.notes[-1]
    return _join(
        make,
        said,
        _say(
            make,
            "note" if len(state.notes) > 1 else "one_note",
            count=len(state.notes),
            time=_later(note.time, state.changed),
            who=sanitise(note.who) or _say(make, "somebody"),
            words=" / ".join(sanitise(line) for line in note.words.splitlines()),
        ),
    )

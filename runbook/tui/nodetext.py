"""The reading part of the node pane: where one is, the question, what was measured, why it is open. Pure.

Invariant: citations are numbered in the order in which they are drawn, so that `citations` and the drawing agree.
"""

from __future__ import annotations

from textual.content import Content

from runbook.finding import Citation, Finding
from runbook.flow.model import Action, Change, Flow, Node
from runbook.glyphs import STANDINGS
from runbook.text import sanitise
from runbook.triage import Standing
from runbook.tui import paint
from runbook.tui.advice import answer_words
from runbook.tui.experimenttext import arrival_block, experiment_blocks
from runbook.tui.notetext import note_block
from runbook.tui.view import View
from runbook.tui.words import KINDS
from runbook.walk import By, earlier_answer


def spoken(view: View, flow: Flow, node_id: str) -> tuple[Finding, ...]:
    """Return the findings shown at a node: of its probes; at a cause, those that decided how it stands."""
    node = flow.nodes[node_id]
    if node.cause is not None:
        verdict = view.verdict_of(node.cause)
        return verdict.by if verdict is not None else ()
    findings = view.state.findings_at(flow, node_id)
    return tuple(findings[probe] for probe in node.probes if probe in findings)


def citations(view: View, flow: Flow, node_id: str) -> tuple[Citation, ...]:
    """Return the citations shown at a node, in order."""
    return tuple(citation for finding in spoken(view, flow, node_id) for citation in finding.citations)


def node_text(view: View, flow: Flow, node_id: str, width: int, chosen: int) -> Content:
    """Return everything about a node for a pane of `width` cells. chosen: index of the chosen citation."""
    node = view.state.node(flow, node_id)
    blocks = [_breadcrumb(view, flow, node_id, width), _head(view, flow, node_id, node, width)]
    if node.note is not None:
        bar = Content.styled(f"{view.signs.bar} ", view.ink.dim)
        blocks.append(paint.wrapped(Content.styled(view.say(node.note), view.ink.dim), width, 0, bar))
    attached = view.state.arrival(flow.flow, node_id)
    if node.change is not None and attached is None and (flow.flow, node_id) not in view.state.copies:
        blocks.append(_section(view, "change", change_lines(view, node.change)))
    if attached is not None:
        blocks.append(arrival_block(view, attached, width))
    else:
        blocks += experiment_blocks(view, flow, node_id, width)
    if node.is_leaf:
        blocks += _leaf(view, flow, node_id, node, width, chosen)
    else:
        blocks += _check(view, flow, node_id, node, width, chosen)
    if attached is not None:
        blocks += experiment_blocks(view, flow, node_id, width)
    notes = [note for note in view.state.notes if note.flow == flow.flow and note.node == node_id]
    if notes:
        blocks.append(_section(view, "notes", *(note_block(view, note, width, place=False) for note in notes)))
    return Content("\n\n").join(blocks)


def _section(view: View, key: str, *parts: Content) -> Content:
    return paint.lines(Content.styled(view.word(key), view.ink.accent), *parts)


def _breadcrumb(view: View, flow: Flow, node_id: str, width: int) -> Content:
    """Return the way here in at most three lines: the oldest answers give way first."""
    ink, sep = view.ink, Content.styled(f" {view.signs.arrow} ", view.ink.dim)
    first = Content.styled(view.say(flow.title), ink.dim)
    last = Content.styled(sanitise(node_id), ink.strong)
    steps = []
    for step in view.state.walk(flow.flow).steps:
        if step.node == node_id:
            break
        by = "" if step.by is By.PROBE else f" ({view.word('by_person')})"
        steps.append(Content.assemble((f"{sanitise(step.node)}: ", ink.dim), sanitise(step.answer), (by, ink.dim)))
    drawn = paint.wrapped(sep.join([first, *steps, last]), width)
    while len(drawn.split("\n")) > 3 and steps:
        del steps[0]
        drawn = paint.wrapped(sep.join([first, Content.styled(view.signs.ellipsis, ink.dim), *steps, last]), width)
    return drawn


def _head(view: View, flow: Flow, node_id: str, node: Node, width: int) -> Content:
    ink = view.ink
    if node.cause is not None:
        title = Content.styled(view.cause_title(node.cause), ink.strong)
    else:
        title = Content.styled(view.say(node.question or node.clear) or sanitise(node_id), ink.strong)
    guide = "  ".join(view.word("guide", id=sanitise(one)) for one in node.guide_ids if one != "-")
    kind = Content.styled("  ".join(part for part in (KINDS[node.kind].say(view.language), guide) if part), ink.dim)
    if node.cause is not None and (verdict := view.verdict_of(node.cause)) is not None:
        kind = Content.assemble(view.status(STANDINGS[verdict.standing]), "  ", kind)
    parts = [paint.wrapped(title, width), kind]
    parts += [paint.wrapped(Content.styled(said, ink.warn), width) for said in view.seen.get(node.cause or "", ())]
    step = next((s for s in view.state.walk(flow.flow).steps if s.node == node_id), None)
    if step is not None:
        who = view.word("by_probe") if step.by is By.PROBE else sanitise(step.who) or view.word("by_person")
        parts.append(Content.styled(view.word("answered_by", answer=sanitise(step.answer), who=who), ink.good))
        decided = view.state.decision(flow, node_id).answer
        if step.by is By.PERSON and decided not in (None, step.answer):
            parts.append(Content.styled(view.word("overruled", answer=sanitise(decided or "")), ink.warn))
    elif (old := earlier_answer(view.state.walk(flow.flow), node_id)) is not None:
        parts.append(Content.styled(view.word("earlier", answer=sanitise(old.answer)), ink.warn))
    return paint.lines(*parts)


def _check(view: View, flow: Flow, node_id: str, node: Node, width: int, chosen: int) -> list[Content]:
    if not node.probes:
        return []
    run = view.state.run_at(flow, node_id)
    findings = view.state.findings_at(flow, node_id)
    blocks: list[Content] = []
    first = 0
    for probe in node.probes:
        running = view.running.get((run or "", probe)) if run is not None else None
        if running is not None:
            blocks.append(paint.running_line(view, probe, running, width))
        elif probe in findings:
            blocks.append(paint.finding_block(view, findings[probe], width, first, chosen))
        else:
            line = f"{view.signs.queued} {view.word('not_asked')}  {sanitise(probe)}"
            blocks.append(Content.styled(line, view.ink.dim))
        if probe in findings:
            first += len(findings[probe].citations)
    return blocks


def _leaf(view: View, flow: Flow, node_id: str, node: Node, width: int, chosen: int) -> list[Content]:
    blocks: list[Content] = []
    verdict = view.verdict_of(node.cause or "")
    if verdict is not None and verdict.by:
        key = {Standing.CONFIRMED: "why_confirmed", Standing.RULED_OUT: "why_ruled_out"}.get(verdict.standing, "probes")
        title = Content.styled(view.word(key), view.ink.accent)
        ahead = [Content.styled(view.word("unwalked"), view.ink.dim)]
        proof = verdict.standing is Standing.CONFIRMED and view.here(flow) != node_id
        first, said = 0, []
        for finding in verdict.by:
            said.append(paint.finding_block(view, finding, width, first, chosen))
            first += len(finding.citations)
        blocks += [paint.lines(title, *(paint.wrapped(line, width) for line in ahead if proof), *said[:1]), *said[1:]]
    if node.fix is not None:
        blocks.append(_section(view, "fix", paint.wrapped(Content(view.say(node.fix)), width, 2)))
    if node.actions:
        said = [action_lines(view, action, i, width) for i, action in enumerate(node.actions, 1)]
        blocks.append(_section(view, "actions", *said))
    if node.verify:
        words = view.word("verify_how", probes=", ".join(sanitise(probe) for probe in node.verify))
        blocks.append(_section(view, "verify", paint.wrapped(Content(words), width, 2)))
    if verdict is not None and verdict.consequences:
        blocks.append(_section(view, "follows", *(Content(f"  {view.cause_title(c)}") for c in verdict.consequences)))
    return blocks


def action_lines(view: View, action: Action, index: int, width: int) -> Content:
    """Return one action of a leaf: its number, its words, and the command, link or change."""
    ink = view.ink
    head = Content.assemble((f"{index}  ", ink.accent), view.say(action.say))
    body: list[Content] = []
    if action.command is not None:
        bar = Content.styled(f"{view.signs.bar} ", ink.dim)
        body = [
            paint.wrapped(Content.styled(sanitise(line), ink.quote), width, 5, bar)
            for line in action.command.splitlines()
        ]
    elif action.link is not None:
        body = [Content.styled(f"     {sanitise(action.link)}", ink.accent)]
    elif action.change is not None:
        body = [paint.indent(change_lines(view, action.change), 3)]
    if action.say is None and body:
        return paint.lines(Content.assemble((f"  {index}  ", ink.accent), body[0][5:]), *body[1:])
    return paint.lines(paint.wrapped(head, width, 2), *body)


def change_lines(view: View, change: Change) -> Content:
    """Return a described edit of the launch script: the lines that every front shows, in the colours of a diff."""
    inks = {"+": view.ink.good, "-": view.ink.bad}
    return paint.lines(
        *(Content.assemble("  ", (line[:1], inks.get(line[:1], "")), sanitise(line[1:])) for line in change.lines())
    )


def answer_rows(view: View, flow: Flow, node_id: str) -> list[tuple[str, Content]]:
    """Return the answers of a node, each as (word, line): number, words, and where it leads."""
    ink = view.ink
    node = flow.nodes[node_id]
    decided = view.state.decision(flow, node_id).answer
    names = {word: answer_words(view, flow, node_id, word) for word in node.branches}
    width = max((Content(name).cell_length for name in names.values()), default=0)
    rows = []
    for i, (word, target) in enumerate(node.branches.items(), 1):
        name = Content(names[word])
        style = ink.strong if word == decided else ""
        name = name.pad_right(width - name.cell_length)
        line = Content.assemble(
            (f"{i if i < 10 else ' '}  ", ink.accent),
            name.stylize(style) if style else name,
            (f"  {view.signs.arrow} {sanitise(target)}", ink.dim),
        )
        rows.append((word, line))
    return rows

"""The ticket as GitHub-flavoured Markdown, for an issue on GitHub or GitLab.

The confirmed cause with its chain and the very log line come first. Everything that came from evidence stands in code
spans, fences or escaped prose (`runbook.ticket.gfm`). A ticket that GitHub would refuse for its length loses its
least telling rows, and says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from runbook.finding import Verdict
from runbook.glyphs import STANDINGS, VERDICTS
from runbook.picture import grid_lines
from runbook.plot import Fidelity, plot_text
from runbook.session.journal import TOOL
from runbook.ticket import transcript as tr
from runbook.ticket.fit import Block, fit
from runbook.ticket.gfm import TEXT_LIMIT, cell, clip, code, fence, plain, row, table_head
from runbook.ticket.gfm_experiments import experiment_blocks
from runbook.ticket.gfm_page import Page, action_lines, one_blank
from runbook.ticket.renderers import Renderer
from runbook.ticket.telling import when
from runbook.triage import Standing

LIMIT = 65_536
"""Characters that GitHub takes in the body of an issue or a comment; GitLab takes a million."""

PLOT_WIDTH, PLOT_HEIGHT = 72, 12
"""Cells of a plot: what an issue shows beside its margins without scrolling sideways."""

_ROOM = 1_500
"""Kept free for the note on what was left out."""

_SHOWN = 3
"""Places of one proof shown beside the cause."""

_PLACES = 12
"""Places of one proof in the section on evidence."""


def render(transcript: tr.Transcript) -> bytes:
    """Return the ticket; at most LIMIT characters."""
    page = Page(transcript)
    sections: Sequence[Callable[[Page], list[Block]]] = (
        _problem, _standing, _evidence, _checked, _ruled_out, _unknown, _next,
        _environment, _timeline, _answers, _redaction,
    )  # fmt: skip
    blocks = fit([block for section in sections for block in section(page)], LIMIT - _ROOM)
    lines = [line for block in blocks for line in block.lines(lambda count: page.say("more", count=count))]
    lost = page.left_out(blocks)
    if lost:
        lines += ["", "---", "", page.say("shortened", limit=f"{LIMIT:,}", parts=clip(lost, _ROOM - 300))]
    return ("\n".join(one_blank(lines)).strip("\n") + "\n").encode("utf-8")


def _problem(page: Page) -> list[Block]:
    of = page.of
    about = [f"**{page.say('run')}:** {code(of.root)}"] if of.root else []
    if of.session:
        about.append(f"**{page.say('session')}:** {code(of.session)} ({when(of.began)} UTC)")
    lines = [f"# {plain(of.title, 200)}", "", " · ".join(about), "", f"## {page.say('problem')}", ""]
    lines += _first_cause(page, of.confirmed[0]) if of.confirmed else []
    for symptom in of.symptoms[:3]:
        lines += [f"**{page.say('symptom')}:** {plain(symptom, 600)}", ""]
    notes = tuple(
        "\n".join([*(f"> {plain(line)}" for line in note.lines), f"> — {plain(note.who, 80)}, {when(note.time)}\n"])
        for note in of.notes
    )
    return [
        Block(tuple(lines)),
        *(_pictures(page, of.confirmed[0].proofs[:_SHOWN], 24, 1) if of.confirmed else []),
        *([Block((), notes, (), page.say("notes"), 45, 2)] if notes else []),
    ]


def _first_cause(page: Page, cause: tr.CauseLine) -> list[str]:
    sign = STANDINGS[Standing.CONFIRMED]
    standing = f"{sign.glyph} **{sign.words.say(page.of.language)}** {code(cause.cause)}"
    lines = [] if cause.proofs else [f"{standing}: {plain(cause.title, 200)}", ""]
    for number, proof in enumerate(cause.proofs[:_SHOWN]):
        begin = f"{standing}: " if number == 0 else ""
        lines += [f"{begin}{plain(proof.summary, 1000)}", ""]
        lines += [*page.quote(proof.places[:_SHOWN]), ""] if proof.places else []
    if cause.fix:
        lines += [f"**{page.say('fix')}:** {plain(cause.fix, 2000)}", ""]
    if cause.chain:
        steps = (_link(page, number, link) for number, link in enumerate(cause.chain[:20], 1))
        lines += [f"**{page.say('chain')}**", "", *steps, ""]
    if cause.consequences:
        explained = "; ".join(plain(title, 120) for title in cause.consequences[:12])
        lines += [f"**{page.say('consequences')}:** {explained}", ""]
    return lines


def _pictures(page: Page, proofs: Sequence[tr.Proof], order: int, floor: int = 0) -> list[Block]:
    """Return the plots, pictures and proposed edits of some proofs, each in a block of code that keeps its columns."""
    rows: list[str] = []
    for proof in proofs:
        for plot in proof.plots:
            lines = plot_text(plot, PLOT_WIDTH, PLOT_HEIGHT, Fidelity.BLOCK, page.of.language)
            rows.append(_drawing(page, plot.title, lines))
        rows += (_drawing(page, grid.title, grid_lines(grid)) for grid in proof.grids)
        rows += (_drawing(page, edit.path, edit.lines, "diff") for edit in proof.edits)
    return [Block((), tuple(rows), ("",), page.say("pictures"), order, floor)] if rows else []


def _drawing(page: Page, title: str, drawn: Sequence[str], language: str = "text") -> str:
    """Return lines as a block of code under their title, cut after a whole line when they are too long."""
    kept: list[str] = []
    room = TEXT_LIMIT
    for line in drawn:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    more = len(drawn) - len(kept)
    lines = [f"**{plain(title, 200)}**", "", *fence("\n".join(kept), language)]
    return "\n".join([*lines, *(["", page.say("more", count=more)] if more else []), ""])


def _link(page: Page, number: int, link: tr.Link) -> str:
    by = page.say(f"by.{link.how}")
    source = f"{by} {code(link.by)}" if link.by else by
    where = f", {code(page.path(link.place))}" if link.place is not None else ""
    return f"{number}. {cell(link.question)} → **{cell(link.answer)}** ({source}{where})"


def _standing(page: Page) -> list[Block]:
    of = page.of
    counts = page.say(
        "counts",
        confirmed=len(of.confirmed),
        possible=len(of.possible),
        ruled_out=len(of.ruled_out),
        unknown=len(of.unknown),
    )
    lines = [counts, ""]
    for key, said in (("asked", of.asked), ("clear", of.clear)):
        if said:
            lines += [f"**{page.say(key)}:** {'; '.join(plain(words, 300) for words in said[:12])}", ""]
    columns = page.columns("rank", "cause", "standing", "where")
    confirmed = tuple(_cause_row(page, cause) for cause in of.confirmed)
    proven = [Block(columns, confirmed, ("",), page.say("confirmed"), 22, 5)] if confirmed else []
    possible = page.table(page.say("possible"), columns, (_cause_row(page, cause) for cause in of.possible), 42, 5)
    return [page.heading("standing"), Block(tuple(lines)), *proven, *_other_fixes(page), *possible]


def _cause_row(page: Page, cause: tr.CauseLine) -> str:
    sign = STANDINGS[Standing(cause.standing)]
    place = next((place for proof in cause.proofs for place in proof.places), None)
    standing = f"{sign.glyph} {sign.words.say(page.of.language)}"
    if cause.open:
        standing += f"<br>{page.say('away', count=cause.open)}"
    title = f"{cell(cause.title)} ({code(cause.cause, in_table=True)})"
    return row((str(cause.rank), title, standing, page.where(place)))


def _other_fixes(page: Page) -> list[Block]:
    """Return what to do about the other confirmed causes that are not consequences of the first."""
    explained = page.of.confirmed[0].consequences if page.of.confirmed else ()
    rows = []
    for cause in page.of.confirmed[1:]:
        if cause.title not in explained:
            lines = [f"**{plain(cause.title, 200)}:** {plain(cause.fix, 2000)}", ""]
            rows.append("\n".join([*lines, *(line for do in cause.actions[:6] for line in action_lines(do))]))
    return [page.folded(page.say("other_fixes"), tuple(rows), 28)] if rows else []


def _evidence(page: Page) -> list[Block]:
    if not page.of.problems:
        return [page.heading("evidence"), Block((page.say("nothing.evidence"),))]
    rows = []
    for proof in page.of.problems:
        lines = [f"{code(proof.probe)}: {plain(proof.summary, 1000)}", ""]
        lines += [*page.quote(proof.places[:_PLACES]), ""] if proof.places else []
        if len(proof.places) > _PLACES:
            lines += [page.say("more", count=len(proof.places) - _PLACES), ""]
        rows.append("\n".join(lines))
    first = page.of.confirmed[0].proofs[:_SHOWN] if page.of.confirmed else ()
    others = [proof for proof in page.of.problems if proof not in first]
    return [
        page.heading("evidence"),
        Block((), tuple(rows), (), page.say("evidence"), 20, 1),
        *_pictures(page, others, 72),
    ]


def _checked(page: Page) -> list[Block]:
    of = page.of
    if not of.checks:
        return [page.heading("checked"), Block((page.say("nothing.checked"),))]
    head = page.columns("verdict", "check", "answer", "found", "where")
    answered = [check for check in of.checks if Verdict(check.verdict).decides]
    idle = [check for check in of.checks if check.verdict == Verdict.NOT_APPLICABLE.value]
    silent = [check for check in of.checks if check not in answered and check not in idle]
    rows = tuple(_check_row(page, check) for check in answered)
    blocks = [Block(head, rows, ("",), page.say("checked"), 35, 5)] if rows else []
    blocks += page.table(page.say("silent"), head, (_check_row(page, check) for check in silent), 75, fold=True)
    blocks += page.table(page.say("idle"), head, (_check_row(page, check) for check in idle), 85, fold=True)
    numbers = [_number_row(check, number) for check in of.checks for number in check.numbers]
    columns = page.columns("name", "value", "threshold", "source")
    blocks += page.table(page.say("measured"), columns, numbers, 70, fold=True)
    for check in of.checks:
        for table in check.tables:
            drawn = [row(map(cell, cells[: len(table.columns)])) for cells in table.rows]
            head = table_head([cell(column) for column in table.columns])
            folded = page.table(f"{check.probe}: {table.title}", head, drawn, 90, fold=True)
            blocks += (replace(block, part=page.say("tables"), quiet=True) for block in folded)
    return [page.heading("checked"), *blocks, *experiment_blocks(page)]


def _check_row(page: Page, check: tr.Check) -> str:
    sign = VERDICTS[Verdict(check.verdict)]
    question = f"{cell(check.question)}<br>" if check.question else ""
    run = f" ({code(check.run, in_table=True)})" if check.run else ""
    return row(
        (
            f"{sign.glyph} {sign.words.say(page.of.language)}",
            f"{question}{code(check.probe, in_table=True)}{run}",
            code(check.answer, in_table=True),
            cell(check.summary),
            page.where(check.places[0] if check.places else None),
        )
    )


def _number_row(check: tr.Check, number: tr.Number) -> str:
    name = f"{code(check.probe, in_table=True)} {cell(number.name)}"
    return row((name, cell(number.shown), cell(number.threshold), cell(number.source)))


def _ruled_out(page: Page) -> list[Block]:
    rows = []
    for out in page.of.ruled_out:
        by = f"{cell(out.by)} ({code(out.probe, in_table=True)})" if out.probe else cell(out.by)
        rows.append(row((f"{cell(out.title)} ({code(out.cause, in_table=True)})", by, page.where(out.place))))
    table = page.table(page.say("ruled_out"), page.columns("cause", "by", "where"), rows, 50)
    return [page.heading("ruled_out"), *(table or [Block((page.say("nothing.ruled_out"),))])]


def _unknown(page: Page) -> list[Block]:
    """Return what is open: first what evidence can settle, then experiments, then what a person has to say."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for open_ in sorted(page.of.unknown, key=lambda one: (not one.slots, not one.experiment)):
        nodes.setdefault((open_.question, open_.why, open_.settle_with), []).append(f"{open_.flow}/{open_.node}")
    rows = []
    for (question, why, settle), names in nodes.items():
        where = ", ".join(code(name, in_table=True) for name in names[:4]) + (" …" if len(names) > 4 else "")
        rows.append(row((f"{cell(question)}<br>{where}", cell(why), cell(settle))))
    table = page.table(page.say("unknown"), page.columns("question", "why", "settle"), rows, 30, 3)
    return [page.heading("unknown"), *(table or [Block((page.say("nothing.unknown"),))])]


def _next(page: Page) -> list[Block]:
    action = page.of.next
    lines = [f"**{plain(action.title, 300)}**", ""]
    lines += [plain(action.words, 2000), ""] if action.words else []
    lines += [line for do in action.actions[:12] for line in action_lines(do)]
    if action.verify:
        label = page.say("ask_again" if action.settles else "verify")
        lines += [f"{label}: {', '.join(code(probe) for probe in action.verify[:12])}", ""]
    return [page.heading("next"), Block(tuple(lines))]


def _environment(page: Page) -> list[Block]:
    environment = page.of.environment
    facts = ((TOOL, environment.version), *environment.facts)
    rows = [row((cell(name), code(value, in_table=True))) for name, value in facts if value]
    sources = []
    for source in environment.sources:
        slot = code(source.slot, in_table=True) + (f" ({code(source.run, in_table=True)})" if source.run else "")
        path = code(source.path, in_table=True) + (f" **{page.say('missing')}**" if source.missing else "")
        sources.append(row((slot, path, cell(source.why))))
    flows = [row((code(name, in_table=True), code(known[:12], in_table=True))) for name, known in environment.flows]
    name = page.say("environment")
    return [
        page.heading("environment"),
        *page.table(name, page.columns("name", "value"), rows, 60, 3),
        *page.table(name, page.columns("slot", "path", "reason"), sources, 55, 5),
        *page.table(page.say("flows"), page.columns("name", "value"), flows, 80, fold=True),
    ]


def _timeline(page: Page) -> list[Block]:
    rows = []
    for moment in page.of.timeline:
        what = code(clip(moment.what, 160), in_table=True) if moment.source == "log" else cell(clip(moment.what, 240))
        where = page.where(tr.Place(moment.where)) if moment.where else "–"
        rows.append(row((when(moment.time), what, where)))
    table = page.table(page.say("timeline"), page.columns("time", "what", "where"), rows, 65)
    return [page.heading("timeline"), *table] if table else []


def _answers(page: Page) -> list[Block]:
    if not page.of.walked:
        return [page.heading("answers"), Block((page.say("nothing.answers"),))]
    rows = [_answer_row(page, said) for said in page.of.answers]
    table = page.table(page.say("answers"), page.columns("question", "answer", "who", "time"), rows, 40, 3)
    return [page.heading("answers"), *table]


def _answer_row(page: Page, said: tr.Said) -> str:
    answer = f"~~{cell(said.answer)}~~ ({page.say('stale')})" if said.stale else f"**{cell(said.answer)}**"
    if said.overrules:
        answer += f"<br>{page.say('overrules', answer=cell(said.overrules))}"
    who = cell(said.who) if said.who else page.say(f"by.{said.by}")
    question = f"{cell(said.question)}<br>{code(f'{said.flow}/{said.node}', in_table=True)}"
    return row((question, answer, who, when(said.time)))


def _redaction(page: Page) -> list[Block]:
    hidden = page.of.redaction
    if not hidden:
        return [page.heading("redaction"), Block((page.say("nothing.redaction"),))]
    rows = (row((cell(line.kind), str(line.values), str(line.count), cell(", ".join(line.where)))) for line in hidden)
    head = page.columns("kind", "values", "count", "parts")
    return [page.heading("redaction"), Block((page.say("redaction.intro"), "", *head, *rows))]


RENDERER = Renderer(".md", render)

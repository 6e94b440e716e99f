"""The ticket as one HTML file that needs nothing else: no script, no font, no picture from elsewhere.

It says what the Markdown ticket says, in the same order, and leaves nothing out: plots are drawn as SVG, grids as
tables of cells. Everything that came from evidence is the text of an element or the value of an attribute
(`runbook.ticket.markup`), never markup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from xml.etree.ElementTree import Element

from runbook.finding import Verdict
from runbook.glyphs import STANDINGS, VERDICTS, Sign
from runbook.session.journal import TOOL
from runbook.ticket import transcript as tr
from runbook.ticket.html_experiments import experiment_parts
from runbook.ticket.html_page import Page, action, code, folded, lines, table
from runbook.ticket.html_style import STYLE
from runbook.ticket.markup import Child, el, page, readable
from runbook.ticket.renderers import Renderer
from runbook.ticket.telling import signed, when
from runbook.triage import Standing, foremost

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Were markup ever to slip in, a browser would neither run nor fetch anything."""


def render(transcript: tr.Transcript) -> bytes:
    """Return the ticket."""
    told = Page(transcript)
    sections: Sequence[Callable[[Page], list[Element]]] = (
        _problem, _standing, _evidence, _checked, _ruled_out, _unknown, _next,
        _environment, _timeline, _answers, _redaction,
    )  # fmt: skip
    head = el(
        "head",
        el("meta", attrs={"charset": "utf-8"}),
        el("meta", attrs={"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        el("meta", attrs={"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        el("title", transcript.title),
        el("style", STYLE),
    )
    body = el("main", _header(told), *(part for section in sections for part in section(told)))
    language = "zh-CN" if transcript.language == "zh" else "en"
    return page(el("html", head, el("body", body), attrs={"lang": language}))


def _header(page: Page) -> Element:
    of = page.of
    about: list[Child] = [f"{page.say('run')}: ", code(of.root)] if of.root else []
    if of.session:
        about += [" · " if about else "", f"{page.say('session')}: ", code(of.session), f" ({when(of.began)} UTC)"]
    where = [el("ul", *(el("li", line) for line in of.where), cls="where")] if of.where else []
    return el("header", el("h1", of.title), *where, el("p", *about, cls="about"))


def _problem(page: Page) -> list[Element]:
    of = page.of
    parts = _first_cause(page, of.confirmed[0]) if of.confirmed else []
    parts = parts or [el("p", page.say("nothing.problem"))]
    parts += [el("ul", *(el("li", line) for line in of.seen))] if of.seen else []
    parts += (page.labelled("symptom", *lines(symptom)) for symptom in of.symptoms)
    for note in of.notes:
        said = el("p", *lines("\n".join(note.lines)))
        parts.append(el("blockquote", said, el("p", f"— {signed(note)}", cls="quiet")))
    return [page.section("problem", *parts)]


def _first_cause(page: Page, cause: tr.CauseLine) -> list[Element]:
    standing: list[Child] = [_sign(STANDINGS[Standing.CONFIRMED], page), " ", code(cause.cause), ": "]
    parts = [] if cause.proofs else [el("p", *standing, cause.title)]
    for number, proof in enumerate(cause.proofs):
        parts.append(el("p", *(standing if number == 0 else []), *lines(proof.summary)))
        parts += page.quote(proof.places)
        parts += page.pictures([proof])
    if cause.fix:
        parts.append(page.labelled("fix", *lines(cause.fix)))
    if cause.chain:
        parts += [el("h3", page.say("chain")), el("ol", *(_link(page, link) for link in cause.chain))]
    if cause.consequences:
        parts.append(page.labelled("consequences", page.between(cause.consequences)))
    return parts


def _link(page: Page, link: tr.Link) -> Element:
    by: list[Child] = [page.say(f"by.{link.how}"), *([" ", code(link.by)] if link.by else [])]
    where: list[Child] = [", ", code(page.path(link.place))] if link.place is not None else []
    return el("li", f"{link.question} → ", el("b", link.answer), " (", *by, *where, ")")


def _standing(page: Page) -> list[Element]:
    of = page.of
    found, open_, out, asked = len(of.confirmed), len(of.possible), len(of.ruled_out), len(of.unknown)
    parts = [el("p", page.say("counts", confirmed=found, possible=open_, ruled_out=out, unknown=asked))]
    for key, said in (("asked", of.asked), ("clear", of.clear)):
        parts += [page.labelled(key, page.between(said))] if said else []
    columns = ("rank", "cause", "standing", "where")
    first = foremost(of.possible)
    for key, causes in (("confirmed", of.confirmed), ("possible", first)):
        rows = [_cause_row(page, cause) for cause in causes]
        parts += page.table(page.say(key), columns, rows, fold=key == "possible" and len(rows) > 3, titled=True)
    more = len(of.possible) - len(first)
    parts += [el("p", page.say("more_possible", count=more))] if more else []
    explained = of.confirmed[0].consequences if of.confirmed else ()
    others = [cause for cause in of.confirmed[1:] if cause.title not in explained]
    if others:
        fixes = [part for cause in others for part in _fix(cause)]
        parts.append(folded(page.say("other_fixes"), len(others), *fixes))
    return [page.section("standing", *parts)]


def _fix(cause: tr.CauseLine) -> list[Element]:
    done = [part for do in cause.actions for part in action(do)]
    return [el("p", el("b", f"{cause.title}:"), " ", *lines(cause.fix)), *done]


def _cause_row(page: Page, cause: tr.CauseLine) -> tuple[Child, ...]:
    place = next((place for proof in cause.proofs for place in proof.places), None)
    away: list[Child] = [el("br"), page.say("away", count=cause.open)] if cause.open else []
    return (
        str(cause.rank),
        el("span", f"{cause.title} (", code(cause.cause), ")"),
        el("span", _sign(STANDINGS[Standing(cause.standing)], page), *away),
        page.where(place),
    )


def _evidence(page: Page) -> list[Element]:
    first = page.of.confirmed[0].proofs if page.of.confirmed else ()
    parts: list[Element] = []
    for proof in page.of.problems:
        parts += [el("p", code(proof.probe), ": ", *lines(proof.summary)), *page.quote(proof.places)]
        parts += page.pictures([proof]) if proof not in first else []
    return [page.section("evidence", *(parts or [el("p", page.say("nothing.evidence"))]))]


def _checked(page: Page) -> list[Element]:
    of = page.of
    if not of.checks:
        return [page.section("checked", el("p", page.say("nothing.checked")))]
    head = ("verdict", "check", "answer", "found", "where")
    answered = [check for check in of.checks if Verdict(check.verdict).decides]
    idle = [check for check in of.checks if check.verdict == Verdict.NOT_APPLICABLE.value]
    silent = [check for check in of.checks if check not in answered and check not in idle]
    parts = page.table(page.say("checked"), head, (_check_row(page, check) for check in answered))
    parts += page.table(page.say("silent"), head, (_check_row(page, check) for check in silent), fold=True)
    parts += page.table(page.say("idle"), head, (_check_row(page, check) for check in idle), fold=True)
    numbers = [_number_row(check, number) for check in of.checks for number in check.numbers]
    parts += page.table(page.say("measured"), ("name", "value", "threshold", "source"), numbers, fold=True)
    for check in of.checks:
        for one in check.tables:
            parts += table(f"{check.probe}: {one.title}", one.columns, one.rows, fold=True)
    return [page.section("checked", *parts, *experiment_parts(page))]


def _check_row(page: Page, check: tr.Check) -> tuple[Child, ...]:
    question: list[Child] = [check.question, el("br")] if check.question else []
    run: list[Child] = [" (", code(check.run), ")"] if check.run else []
    return (
        _sign(VERDICTS[Verdict(check.verdict)], page),
        el("span", *question, code(check.probe), *run),
        code(check.answer),
        el("span", *lines(check.summary)),
        page.where(check.places[0] if check.places else None),
    )


def _number_row(check: tr.Check, number: tr.Number) -> tuple[Child, ...]:
    return (
        el("span", code(check.probe), f" {number.name}"),
        number.shown,
        number.threshold or "–",
        number.source or "–",
    )


def _ruled_out(page: Page) -> list[Element]:
    rows: list[tuple[Child, ...]] = []
    for (by, name, place), outs in page.closed().items():
        probe: list[Child] = [" (", code(name), ")"] if name else []
        causes: list[Child] = []
        for out in outs:
            causes += [*([el("br")] if causes else []), f"{out.title} (", code(out.cause), ")"]
        rows.append((el("span", by or "–", *probe), el("span", *causes), page.where(place)))
    drawn = page.table(page.say("ruled_out"), ("by", "causes", "where"), rows)
    return [page.section("ruled_out", *(drawn or [el("p", page.say("nothing.ruled_out"))]))]


def _unknown(page: Page) -> list[Element]:
    """Return what is open: first what evidence can settle, then experiments, then what a person has to say."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for open_ in sorted(page.of.unknown, key=lambda one: (not one.slots, not one.experiment)):
        nodes.setdefault((open_.question, open_.why, open_.settle_with), []).append(f"{open_.flow}/{open_.node}")
    rows: list[tuple[Child, ...]] = [
        (el("span", question, el("br"), *_listed(names)), why or "–", settle or "–")
        for (question, why, settle), names in nodes.items()
    ]
    drawn = page.table(page.say("unknown"), ("question", "why", "settle"), rows)
    return [page.section("unknown", *(drawn or [el("p", page.say("nothing.unknown"))]))]


def _listed(names: Iterable[str]) -> list[Child]:
    parts: list[Child] = []
    for name in names:
        parts += [", ", code(name)] if parts else [code(name)]
    return parts


def _next(page: Page) -> list[Element]:
    step = page.of.next
    parts = [el("p", el("b", step.title)), *([el("p", *lines(step.words))] if step.words else [])]
    parts += (part for do in step.actions for part in action(do))
    if step.verify:
        label = page.say("ask_again" if step.settles else "verify")
        parts.append(el("p", f"{label}: ", *_listed(step.verify)))
    return [page.section("next", *parts)]


def _environment(page: Page) -> list[Element]:
    environment = page.of.environment
    facts = [(name, code(value)) for name, value in ((TOOL, environment.version), *environment.facts) if value]
    sources: list[tuple[Child, ...]] = []
    for source in environment.sources:
        run: list[Child] = [" (", code(source.run), ")"] if source.run else []
        gone: list[Child] = [" ", el("b", page.say("missing"), cls="bad")] if source.missing else []
        sources.append((el("span", code(source.slot), *run), el("span", code(source.path), *gone), source.why or "–"))
    flows = [(code(name), code(known[:12])) for name, known in environment.flows]
    return [
        page.section(
            "environment",
            *page.table(page.say("machine"), ("name", "value"), facts, titled=True),
            *page.table(page.say("sources"), ("slot", "path", "reason"), sources, titled=True),
            *page.table(page.say("flows"), ("name", "value"), flows, fold=True),
        )
    ]


def _timeline(page: Page) -> list[Element]:
    logged: list[tuple[Child, ...]] = []
    done: list[tuple[Child, ...]] = []
    for moment in page.of.timeline:
        rows = logged if moment.source == "log" else done
        where: Child = page.where(tr.Place(moment.where)) if moment.where else "–"
        rows.append((when(moment.time), code(moment.what) if moment.source == "log" else moment.what, where))
    drawn = [
        *page.table(page.say("timeline.log"), ("log_time", "what", "where"), logged, titled=True),
        *page.table(page.say("timeline.people"), ("time", "what", "where"), done, titled=True),
    ]
    return [page.section("timeline", *drawn)] if drawn else []


def _answers(page: Page) -> list[Element]:
    if not page.of.walked:
        return [page.section("answers", el("p", page.say("nothing.answers")))]
    rows = [_answer_row(page, said) for said in page.of.answers]
    return [page.section("answers", *page.table(page.say("answers"), ("question", "answer", "who", "time"), rows))]


def _answer_row(page: Page, said: tr.Said) -> tuple[Child, ...]:
    answer: list[Child] = [el("s", said.answer), f" ({page.say('stale')})"] if said.stale else [el("b", said.answer)]
    if said.overrules:
        answer += [el("br"), page.say("overrules", answer=said.overrules)]
    question = el("span", said.question, el("br"), code(f"{said.flow}/{said.node}"))
    return (question, el("span", *answer), said.who or page.say(f"by.{said.by}"), when(said.time))


def _redaction(page: Page) -> list[Element]:
    hidden = page.of.redaction
    if not hidden:
        return [page.section("redaction", el("p", page.say("nothing.redaction")))]
    rows = [(line.kind, str(line.values), str(line.count), ", ".join(line.where)) for line in hidden]
    name, head = page.say("redaction"), ("kind", "values", "count", "parts")
    return [page.section("redaction", el("p", page.say("redaction.intro")), *page.table(name, head, rows))]


def _sign(sign: Sign, page: Page) -> Element:
    return el("span", f"{sign.glyph} {sign.words.say(page.of.language)}", cls=f"sign {sign.role}")


RENDERER = Renderer(".html", render, readable)

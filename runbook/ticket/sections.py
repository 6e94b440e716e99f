"""What a ticket says, section by section, as an outline: the problem and its standing first, the redaction report last.

The confirmed cause with its chain and the very log lines come before anything else. The orders of the parts say what is
least telling: those with the highest go first where a layout has a limit.
"""

from __future__ import annotations

from runbook.finding import Verdict
from runbook.glyphs import STANDINGS, VERDICTS, Sign
from runbook.session.journal import TOOL
from runbook.ticket import transcript as tr
from runbook.ticket.outline import (
    Entries,
    Grid,
    Items,
    Node,
    Note,
    Outline,
    Section,
    Span,
    Words,
    code,
    listed,
    plain,
    strong,
    words,
)
from runbook.ticket.section_experiments import experiment_parts
from runbook.ticket.teller import PATH, Teller
from runbook.ticket.telling import signed, when
from runbook.triage import Standing, foremost

_SHOWN = 3
"""Places of one proof shown beside the cause, and proofs of the cause."""

_PLACES = 12
"""Places of one proof in the section on evidence."""

_Parts = list[Entries | Grid]


def outline_of(transcript: tr.Transcript, share: float | None = None, columns: int | None = None) -> Outline:
    """Return the outline of a ticket. share, columns: see `Teller`."""
    tell = Teller(transcript, share, columns)
    of = tell.of
    about: list[str | Span] = [strong(f"{tell.say('run')}:"), " ", code(tell.cut(of.root, PATH))] if of.root else []
    if of.session:
        about += [*([" · "] if about else []), strong(f"{tell.say('session')}:"), " ", code(of.session)]
        about.append(f" ({when(of.began)} UTC)")
    sections = (
        _problem, _standing, _evidence, _checked, _ruled_out, _unknown, _next,
        _environment, _timeline, _answers, _redaction,
    )  # fmt: skip
    return Outline(
        tell.cut(of.title, 200),
        tuple(tell.cut(line, 300) for line in of.where),
        words(*about),
        tuple(section for make in sections for section in make(tell)),
    )


def _problem(tell: Teller) -> list[Section]:
    of = tell.of
    nodes = _first_cause(tell, of.confirmed[0]) if of.confirmed else [tell.own("nothing.problem")]
    nodes += [Items(tuple(words(tell.cut(line, 300)) for line in tell.first(of.seen, 5)))] if of.seen else []
    nodes += [tell.labelled("symptom", tell.cut(symptom, 600)) for symptom in tell.first(of.symptoms, 3)]
    parts: _Parts = [tell.always(*nodes)]
    if of.confirmed:
        pictures = tuple(tell.pictures(tell.first(of.confirmed[0].proofs, _SHOWN)))
        parts.append(Entries(name=tell.say("pictures"), rows=pictures, order=24, floor=tell.floor(1)))
    notes = tuple(_note(tell, note) for note in of.notes)
    parts.append(Entries(name=tell.say("notes"), rows=notes, order=45, floor=tell.floor(2)))
    return [tell.section("problem", [part for part in parts if part.rows])]


def _note(tell: Teller, note: tr.Remark) -> tuple[Node, ...]:
    shown = tell.first(note.lines, 40)
    lines = tuple(tell.cut(line, 2000) for line in shown)
    return (Note(lines, tell.cut(signed(note), 200)), *tell.rest(len(note.lines) - len(shown)))


def _first_cause(tell: Teller, cause: tr.CauseLine) -> list[Node]:
    standing = (*_sign(tell, STANDINGS[Standing.CONFIRMED]), plain(" "), code(cause.cause), plain(": "))
    nodes: list[Node] = [] if cause.proofs else [tell.told(*standing, tell.cut(cause.title, 200))]
    for number, proof in enumerate(tell.first(cause.proofs, _SHOWN)):
        nodes.append(tell.told(*(standing if number == 0 else ()), tell.cut(proof.summary, 1000)))
        nodes += tell.quote(proof.places, _SHOWN)
    if cause.fix:
        nodes.append(tell.labelled("fix", tell.cut(cause.fix, 2000)))
    if cause.chain:
        links = tell.first(cause.chain, 20)
        nodes += [
            tell.told(strong(tell.say("chain"))),
            Items(tuple(_link(tell, link) for link in links), numbered=True),
        ]
        nodes += tell.rest(len(cause.chain) - len(links))
    if cause.consequences:
        nodes.append(tell.labelled("consequences", _joined(tell, cause.consequences, 120)))
    return nodes


def _joined(tell: Teller, titles: tuple[str, ...], room: int) -> str:
    """Return words with semicolons between, without their full stops, and how many more there are."""
    shown = [tell.cut(title, room) for title in tell.first(titles, 12)]
    more = len(titles) - len(shown)
    return tell.between([*shown, *([tell.say("more", count=more)] if more else [])])


def _sign(tell: Teller, sign: Sign) -> tuple[Span, ...]:
    return plain(f"{sign.glyph} "), strong(sign.words.say(tell.of.language))


def _link(tell: Teller, link: tr.Link) -> Words:
    by: list[str | Span] = [" ", code(tell.cut(link.by, 200))] if link.by else []
    where: list[str | Span] = [", ", code(tell.place(link.place))] if link.place is not None else []
    question, answer = tell.cut(link.question, 300), tell.cut(link.answer, 200)
    return words(question, " → ", strong(answer), " (", tell.say(f"by.{link.how}"), *by, *where, ")")


def _standing(tell: Teller) -> list[Section]:
    of = tell.of
    found, open_, out, asked = len(of.confirmed), len(of.possible), len(of.ruled_out), len(of.unknown)
    nodes: list[Node] = [tell.told(tell.say("counts", confirmed=found, possible=open_, ruled_out=out, unknown=asked))]
    nodes += (tell.labelled(key, _joined(tell, said, 300)) for key, said in (("asked", of.asked), ("clear", of.clear))
              if said)  # fmt: skip
    columns = ("rank", "cause", "standing", "where")
    first = foremost(of.possible)
    more = len(of.possible) - len(first)
    confirmed = tell.table("confirmed", columns, (_cause(tell, cause) for cause in of.confirmed), 22, 5, titled=True)
    possible = tell.table("possible", columns, (_cause(tell, cause) for cause in first), 42, 5, titled=True)
    possible += [tell.always(tell.told(tell.say("more_possible", count=more)))] if more else []
    return [tell.section("standing", [tell.always(*nodes), *confirmed, *_other_fixes(tell), *possible])]


def _cause(tell: Teller, cause: tr.CauseLine) -> tuple[Words, ...]:
    sign = STANDINGS[Standing(cause.standing)]
    place = next((place for proof in cause.proofs for place in proof.places), None)
    away = ["\n", tell.say("away", count=cause.open)] if cause.open else []
    return (
        tell.cell(str(cause.rank)),
        tell.cell(cause.title, " (", code(cause.cause), ")"),
        tell.cell(f"{sign.glyph} {sign.words.say(tell.of.language)}", *away),
        tell.where(place),
    )


def _other_fixes(tell: Teller) -> _Parts:
    """Return what to do about the other confirmed causes that are not consequences of the first."""
    explained = tell.of.confirmed[0].consequences if tell.of.confirmed else ()
    rows = []
    for cause in tell.of.confirmed[1:]:
        if cause.title not in explained:
            said = tell.told(strong(f"{tell.cut(cause.title, 200)}:"), " ", tell.cut(cause.fix, 2000))
            done = (node for do in tell.first(cause.actions, 6) for node in tell.action(do))
            rows.append((said, *done))
    return [Entries(name=tell.say("other_fixes"), rows=tuple(rows), order=28, fold=True)] if rows else []


def _evidence(tell: Teller) -> list[Section]:
    rows = []
    for proof in tell.of.problems:
        said = tell.told(code(proof.probe), ": ", tell.cut(proof.summary, 1000))
        rows.append((said, *tell.quote(proof.places, _PLACES)))
    first = tell.first(tell.of.confirmed[0].proofs, _SHOWN) if tell.of.confirmed else ()
    pictures = tuple(tell.pictures(proof for proof in tell.of.problems if proof not in first))
    parts: _Parts = [
        Entries(name=tell.say("evidence"), rows=tuple(rows), order=20, floor=1),
        Entries(name=tell.say("pictures"), rows=pictures, order=72),
    ]
    return [tell.section("evidence", [part for part in parts if part.rows])]


def _checked(tell: Teller) -> list[Section]:
    of = tell.of
    head = ("verdict", "check", "answer", "found", "where")
    kinds: dict[str, list[tr.Check]] = {"checked": [], "silent": [], "idle": []}
    for check in of.checks:
        verdict = Verdict(check.verdict)
        idle = verdict is Verdict.NOT_APPLICABLE
        kinds["checked" if verdict.decides else "idle" if idle else "silent"].append(check)
    parts: _Parts = []
    for key, order, floor in (("checked", 35, 5), ("silent", 75, 0), ("idle", 85, 0)):
        rows = [_check(tell, check) for check in kinds[key]]
        parts += tell.table(key, head, rows, order, floor, fold=key != "checked")
    numbers = [_number(tell, check, number) for check in of.checks for number in check.numbers]
    parts += tell.table("measured", ("name", "value", "threshold", "source"), numbers, 70, fold=True)
    for check in of.checks:
        for table in check.tables:
            parts += _table(tell, f"{check.probe}: {tell.cut(table.title, 200)}", table)
    return [tell.section("checked", [*parts, *experiment_parts(tell)])]


def _table(tell: Teller, title: str, table: tr.Table) -> _Parts:
    """Return a table that a probe made."""
    rows = tuple(tuple(tell.cell(cell) for cell in row[: len(table.columns)]) for row in table.rows)
    if not rows or not table.columns:
        return []
    columns = tuple(tell.cut(column, 100) for column in table.columns)
    tables = tell.say("tables")
    return [Grid(name=tables, title=title, columns=columns, rows=rows, order=90, fold=True, quiet=True)]


def _check(tell: Teller, check: tr.Check) -> tuple[Words, ...]:
    sign = VERDICTS[Verdict(check.verdict)]
    question = [check.question, "\n"] if check.question else []
    run: list[str | Span] = [" (", code(check.run), ")"] if check.run else []
    return (
        tell.cell(f"{sign.glyph} {sign.words.say(tell.of.language)}"),
        tell.cell(*question, code(check.probe), *run),
        tell.cell(code(check.answer)),
        tell.cell(check.summary),
        tell.where(check.places[0] if check.places else None),
    )


def _number(tell: Teller, check: tr.Check, number: tr.Number) -> tuple[Words, ...]:
    name = tell.cell(code(check.probe), " ", number.name)
    return name, tell.cell(number.shown), tell.cell(number.threshold), tell.cell(number.source)


def _ruled_out(tell: Teller) -> list[Section]:
    """Return what is ruled out: one row for each finding that closed the way, with all causes that it closed."""
    rows = []
    for (by, name, place), outs in tell.closed().items():
        probe: list[str | Span] = [" (", code(name), ")"] if name else []
        causes: list[str | Span] = []
        for out in tell.first(outs, 40):
            causes += ["\n"] if causes else []
            causes += [out.title, " (", code(out.cause), ")"]
        more = len(outs) - len(tell.first(outs, 40))
        causes += ["\n", tell.say("more", count=more)] if more else []
        rows.append((tell.cell(by, *probe), tell.cell(*causes), tell.where(place)))
    return [tell.section("ruled_out", tell.table("ruled_out", ("by", "causes", "where"), rows, 50))]


def _unknown(tell: Teller) -> list[Section]:
    """Return what is open: first what evidence can settle, then experiments, then what a person has to say."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for open_ in sorted(tell.of.unknown, key=lambda one: (not one.slots, not one.experiment)):
        nodes.setdefault((open_.question, open_.why, open_.settle_with), []).append(f"{open_.flow}/{open_.node}")
    rows = []
    for (question, why, settle), names in nodes.items():
        shown = tell.first(names, 4)
        where = tell.cell(question, "\n", *listed(shown), " …" if len(shown) < len(names) else "")
        rows.append((where, tell.cell(why), tell.cell(settle)))
    return [tell.section("unknown", tell.table("unknown", ("question", "why", "settle"), rows, 30, 3))]


def _next(tell: Teller) -> list[Section]:
    action = tell.of.next
    nodes: list[Node] = [tell.told(strong(tell.cut(action.title, 300)))]
    nodes += [tell.told(tell.cut(action.words, 2000))] if action.words else []
    done = tell.first(action.actions, 12)
    nodes += (node for do in done for node in tell.action(do))
    nodes += tell.rest(len(action.actions) - len(done))
    if action.verify:
        label = tell.say("ask_again" if action.settles else "verify")
        nodes.append(tell.told(f"{label}: ", *listed(tell.first(action.verify, 12))))
    return [tell.section("next", [tell.always(*nodes)])]


def _environment(tell: Teller) -> list[Section]:
    environment = tell.of.environment
    facts = ((TOOL, environment.version), *environment.facts)
    rows = [(tell.cell(name), tell.cell(code(value))) for name, value in facts if value]
    sources = []
    for source in environment.sources:
        run: list[str | Span] = [" (", code(source.run), ")"] if source.run else []
        gone: list[str | Span] = [" ", strong(tell.say("missing"))] if source.missing else []
        sources.append((tell.cell(code(source.slot), *run), tell.cell(code(source.path), *gone), tell.cell(source.why)))
    flows = [(tell.cell(code(name)), tell.cell(code(known[:12]))) for name, known in environment.flows]
    parts = [
        *tell.table("machine", ("name", "value"), rows, 60, 3, titled=True),
        *tell.table("sources", ("slot", "path", "reason"), sources, 55, 5, titled=True),
        *tell.table("flows", ("name", "value"), flows, 80, fold=True),
    ]
    return [tell.section("environment", parts)] if parts else []


def _timeline(tell: Teller) -> list[Section]:
    """Return what happened in two tables, for the clock of a log cannot be compared with that of people."""
    logged: list[tuple[Words, ...]] = []
    done: list[tuple[Words, ...]] = []
    for moment in tell.of.timeline:
        rows = logged if moment.source == "log" else done
        what = code(tell.cut(moment.what, 160)) if moment.source == "log" else plain(tell.cut(moment.what, 240))
        where = tell.where(tr.Place(moment.where) if moment.where else None)
        rows.append((tell.cell(when(moment.time)), tell.cell(what), where))
    tables = [
        *tell.table("timeline.log", ("log_time", "what", "where"), logged, 65, titled=True),
        *tell.table("timeline.people", ("time", "what", "where"), done, 66, titled=True),
    ]
    return [tell.section("timeline", tables)] if tables else []


def _answers(tell: Teller) -> list[Section]:
    rows = [_answer(tell, said) for said in tell.of.answers] if tell.of.walked else []
    return [tell.section("answers", tell.table("answers", ("question", "answer", "who", "time"), rows, 40, 3))]


def _answer(tell: Teller, said: tr.Said) -> tuple[Words, ...]:
    stale = [f" ({tell.say('stale')})"] if said.stale else []
    overruled = ["\n", tell.say("overrules", answer=tell.cut(said.overrules, 200))] if said.overrules else []
    answer = Span(said.answer, "struck") if said.stale else strong(said.answer)
    return (
        tell.cell(said.question, "\n", code(f"{said.flow}/{said.node}")),
        tell.cell(answer, *stale, *overruled),
        tell.cell(said.who or tell.say(f"by.{said.by}")),
        tell.cell(when(said.time)),
    )


def _redaction(tell: Teller) -> list[Section]:
    hidden = tell.of.redaction
    rows = [
        (tell.cell(one.kind), tell.cell(str(one.values)), tell.cell(str(one.count)), tell.cell(", ".join(one.where)))
        for one in hidden
    ]
    table = tell.table("redaction", ("kind", "values", "count", "parts"), rows, 88, len(rows))
    return [tell.section("redaction", [tell.always(tell.own("redaction.intro")), *table] if rows else [])]

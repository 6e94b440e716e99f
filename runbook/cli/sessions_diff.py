"""`slime-runbook sessions diff A B`: what differs between two sessions, two runs of one, or two RUNs.

A side is a session by its id, `ID:run-2` for one run of it, a bundle, or a RUN, which is triaged in memory. Exit code:
0 when nothing differs, 3 when something does (1 would say that a cause is confirmed).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from rich.text import Text as RichText

from runbook.catalog import Catalog
from runbook.cli import desks, kept, options
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.glyphs import as_cut
from runbook.plain import Plain
from runbook.session.desk import Desk
from runbook.session.difference import Change, Difference, FindingChange, Side, difference, side, side_of_run, weight
from runbook.session.opening import read_session
from runbook.text import sanitise

WIDTH = 80
SHOWN = 12
"""Rows of one probe's tables that are written; the JSON holds all of them."""
LONGEST = 160
"""Characters of one value."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    kinds = "a session (ID or ID:run-2), a bundle, or the folder or file of a run"
    parser.add_argument("before", metavar="A", help=f"one side: {kinds}")
    parser.add_argument("after", metavar="B", help="the other side, in the same words")
    parser.add_argument("--json", action="store_true", help="print the difference as JSON")
    options.add_drawn_flows(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Compare and print."""
    catalog = options.catalog(parsed.flows, parsed.lang)
    before, after = (_side(parsed, catalog, word) for word in (parsed.before, parsed.after))
    found = difference(before, after, parsed.lang)
    if parsed.json:
        _print_json(found)
    else:
        _Drawn(Plain(parsed.lang, ascii_only=parsed.ascii)).write(found, before.root, after.root)
    return ExitCode.OPEN if found.any else ExitCode.CLEAR


def _side(parsed: argparse.Namespace, catalog: Catalog, word: str) -> Side:
    """Return the side that a word names. Raises UsageError when it names none."""
    whole, _, run = word.rpartition(":")
    if not whole or os.path.exists(word):
        whole, run = word, ""
    if os.path.isfile(whole) and (opened := _bundle(whole, parsed.lang)) is not None:
        return _of_desk(opened, word, run)
    if os.path.exists(word):
        return _of_run(catalog, word, parsed.lang)
    folder = kept.session(parsed.sessions, whole)
    desk = read_session(catalog, str(folder), parsed.lang)
    desks.tell(desk)
    return _of_desk(desk, f"{folder.name}:{run}" if run else folder.name, run)


def _bundle(path: str, language: str) -> Desk | None:
    from runbook.bundle.archive import is_bundle

    if not is_bundle(path):
        return None
    from runbook.bundle.read import open_bundle, read_bundle

    return open_bundle(read_bundle(path), language)


def _of_desk(desk: Desk, name: str, run: str) -> Side:
    state = desk.state
    if not run:
        return side(state, desk.report(), name)
    if run not in state.runs and run != "run-1":
        known = ", ".join(("run-1", *state.runs))
        raise UsageError(f"{sanitise(name)}: the session has no run of that name", f"its runs: {known}")
    chosen = "" if run == "run-1" else run
    return side_of_run(state, chosen, desk.catalog.flows.values(), desk.catalog.vocabulary, name)


def _of_run(catalog: Catalog, path: str, language: str) -> Side:
    """Triage a run in memory."""
    desk = Desk(catalog, language=language)
    try:
        root = os.path.abspath(path)
        desk.begin(root)
        desks.collect(desk, root, ())
        desks.ask_all(desk, desk.triage_probes())
        return side(desk.state, desk.report(), path)
    finally:
        desk.close()


def _print_json(found: Difference) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode({"schema": 1, **_plain(found)}), indent=1) + b"\n")
    sys.stdout.buffer.flush()


def _plain(found: Difference) -> dict[str, object]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


class _Drawn:
    """Writes a difference in lines of WIDTH columns."""

    def __init__(self, plain: Plain) -> None:
        self.plain = plain
        self.say = plain.say
        self.arrow = "->" if plain.ascii else "→"

    def line(self, words: str, indent: int = 0, style: str = "") -> None:
        """Write one paragraph, wrapped with a hanging indent."""
        text = RichText(sanitise(words), style=style)
        for number, piece in enumerate(text.wrap(self.plain.console, WIDTH - indent - 2)):
            piece.rstrip()
            self.plain.console.print(RichText(" " * (indent + 2 * (number > 0))) + piece, soft_wrap=True)

    def part(self, title: str, lines: Iterable[tuple[str, int]]) -> None:
        """Write lines under a heading; nothing where there are none."""
        held = list(lines)
        if held:
            self.plain.heading(title)
        for words, indent in held:
            self.line(words, indent)

    def write(self, found: Difference, *roots: str) -> None:
        """Write everything that differs."""
        for sign, name, root in zip("-+", (found.before, found.after), roots, strict=True):
            self.line(f"{sign} {name}" + (f"  {root}" if root and root != os.path.abspath(name) else ""), style="bold")
        if not found.any:
            self.line(self.say("nothing differs", "没有差异"))
            return
        self.part(self.say("Causes", "原因"), self.causes(found.causes))
        self.part(self.say("Findings", "发现"), (line for one in found.findings for line in self.finding(one)))
        for title, changes in (
            (self.say("Evidence", "证据"), found.evidence),
            (self.say("Answers", "回答"), found.answers),
            (self.say("Attached runs", "附上的运行"), found.runs),
            (self.say("Notes", "备注"), found.notes),
            (self.say("Flows and tool", "流程与工具"), (*found.flows, *found.version)),
        ):
            self.part(title, ((self.change(one), 2) for one in changes))

    def causes(self, changes: Iterable[Change]) -> Iterable[tuple[str, int]]:
        """Yield what became of causes, those of one change in one line, what was or is confirmed first."""
        groups: dict[tuple[str, str], list[str]] = {}
        for one in sorted(changes, key=weight):
            groups.setdefault((one.before, one.after), []).append(one.what)
        for ways, causes in groups.items():
            before, after = (self.standing(word) for word in ways)
            yield f"{before} {self.arrow} {after}: {', '.join(causes)}", 2

    def standing(self, word: str) -> str:
        """Return a standing in words."""
        words = {
            "": self.say("not in the flows", "流程中没有"),
            "confirmed": self.say("confirmed", "已确认"),
            "possible": self.say("possible", "可能"),
            "ruled_out": self.say("ruled out", "已排除"),
        }
        return words.get(word, word)

    def finding(self, one: FindingChange) -> Iterable[tuple[str, int]]:
        """Yield what a probe says on both sides."""
        unasked = self.say("not asked", "未询问")
        if one.before == one.after:
            yield f"{one.probe}  {one.after}", 2
        else:
            yield f"{one.probe}  {one.before or unasked} {self.arrow} {one.after or unasked}", 2
            for sign, words in (("-", one.summary.before), ("+", one.summary.after)):
                if words:
                    yield f"{sign} {words}", 4
        for number in one.numbers:
            values = (self.value(number.before, number.unit), self.value(number.after, number.unit))
            yield f"{number.name}: {values[0]} {self.arrow} {values[1]}", 4
        for row in one.rows[:SHOWN]:
            yield self.change(row), 4
        if len(one.rows) > SHOWN:
            more = len(one.rows) - SHOWN
            yield self.say(f"and {more} more", f"另有 {more} 项"), 4

    def value(self, value: float | None, unit: str) -> str:
        """Return a number with its unit."""
        return self.say("not measured", "未测量") if value is None else f"{value:.6g} {unit}".rstrip()

    def change(self, one: Change) -> str:
        """Return a change in one line."""
        before, after = (
            as_cut(sanitise(" / ".join(words.splitlines()), LONGEST), ascii_only=self.plain.ascii)
            for words in (one.before, one.after)
        )
        if not (before and after):
            sign = "+" if after else "-"
            return f"{sign} {one.what}: {after or before}" if one.what else f"{sign} {after or before}"
        return f"{one.what}: {before} {self.arrow} {after}"

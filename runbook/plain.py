"""Plain mode: the same state as the terminal UI, as lines of text for pipes, logs and screen readers.

Every status is glyph and word; colour is added only on a terminal that wants it (NO_COLOR, FORCE_COLOR and
TERM=dumb are respected by Rich). Words that are searched for later (paths, log lines) are never wrapped in the
middle when stdout is not a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from runbook.chart import chart_of
from runbook.evidence import Item, Slot
from runbook.exits import ExitCode
from runbook.finding import Citation, Finding, Grid, Measurement, Plot, Table, Verdict
from runbook.flow.model import Action, Flow, Node
from runbook.glyphs import MARKS, STANDINGS, VERDICTS, Sign, as_cut, ellipsis, wants_ascii
from runbook.picture import cells_of, grid_lines, proposal_lines
from runbook.plot import Fidelity, plot_lines, spark_of
from runbook.session.desk import Desk
from runbook.text import Text, counted, sanitise
from runbook.triage import Open, Report, Standing, Verdicted, exit_code, foremost, settling
from runbook.walk import By, Decision, How, Mark, Walk

ROLES = {"good": "green", "bad": "bold red", "warn": "yellow", "dim": "dim", "accent": "bold cyan", "strong": "bold"}
"""Colour roles of the signs as Rich styles from the 16 colours that every terminal has."""

LEADS_SHOWN = 5
"""Leads that are written where no cause is confirmed."""

CITATIONS_SHOWN = 6
"""Citations of one finding in plain text; the JSON holds all of them."""

ROWS_SHOWN = 12
"""Rows of a table in plain text, one line each; the JSON of `probes run` holds all of them."""

PLOT_WIDTH, PLOT_HEIGHT = 76, 12
"""Largest plot, in cells: wider ones do not survive being pasted."""

SPARK_WIDTH = 24
"""Cells of the sparkline beside a finding that is only named."""

PIPE_WIDTH = 240
"""Columns of a table where stdout is no terminal: paths and log lines stay whole."""

OPEN_SHOWN = 12
"""Open questions listed; the rest is counted."""


class Plain:
    """Writes the state of a desk to stdout. language: "en" or "zh"."""

    def __init__(self, language: str, *, ascii_only: bool = False, console: Console | None = None) -> None:
        """Write to `console`, or to stdout."""
        self.language = language
        self.ascii = ascii_only or wants_ascii()
        self.console = console or _stdout()

    def line(self, words: str = "", indent: int = 0, style: str = "") -> None:
        """Write one paragraph, wrapped with a hanging indent on a terminal and unwrapped elsewhere."""
        text = RichText(sanitise(words), style=style)
        if self.console.is_terminal:
            self.console.print(Padding(text, (0, 0, 0, indent)))
        else:
            self.console.print(RichText(" " * indent) + text, soft_wrap=True)

    def command(self, words: str, indent: int = 0, style: str = "bold") -> None:
        """Write a command for a shell: never broken into lines, so that it can be copied as it stands."""
        self.console.print(RichText(" " * indent + f"$ {sanitise(words)}", style), soft_wrap=True)

    def say(self, en: str, zh: str) -> str:
        """Return the words in the language in force."""
        return zh if self.language == "zh" else en

    def heading(self, words: str) -> None:
        """Write a heading with a blank line before it."""
        self.console.print()
        self.line(words, style="bold")

    def sign(self, sign: Sign, words: str, indent: int = 0) -> None:
        """Write a status line: glyph, word, then `words`."""
        text = RichText(" " * indent)
        text.append(f"{sign.draw(ascii_only=self.ascii)} {sign.words.say(self.language)}", ROLES[sign.role])
        text.append(f"  {sanitise(words)}")
        self.console.print(text, soft_wrap=not self.console.is_terminal)

    def finding(self, finding: Finding, indent: int = 0) -> None:
        """Write a finding with its citations, measurements, tables and what would settle it."""
        answer = f"{finding.probe}: {finding.answer}" if finding.answer else finding.probe
        self.sign(VERDICTS[finding.verdict], f"{answer}  ({finding.seconds:.1f} s)", indent)
        self.line(finding.summary.say(self.language), indent + 2)
        self.citations(finding.citations, indent + 2)
        for measurement in finding.measurements:
            self.measurement(measurement, indent + 2)
        for plot in finding.plots:
            self.plot(plot, indent + 2)
        for grid in finding.grids:
            self.grid(grid, indent + 2)
        for table in finding.tables:
            self.table(table, indent + 2)
        self.proposals(finding, indent + 2)
        if finding.settle_with is not None:
            self.line(self.say("settle it: ", "如何确定：") + finding.settle_with.say(self.language), indent + 2)

    def citations(self, citations: Sequence[Citation], indent: int) -> None:
        """Write the first citations, each as place and excerpt."""
        for citation in citations[:CITATIONS_SHOWN]:
            place = citation.path if citation.line is None else f"{citation.path}:{citation.line}"
            times = f"  {'x' if self.ascii else '×'}{citation.count}" if citation.count > 1 else ""
            self.line(f"{place}{times}", indent, "cyan")
            if citation.excerpt:
                self.line(as_cut(citation.excerpt.strip(), ascii_only=self.ascii), indent + 2)
        if len(citations) > CITATIONS_SHOWN:
            more = len(citations) - CITATIONS_SHOWN
            self.line(self.say(f"and {counted(more, 'more place')}", f"另有 {more} 处"), indent, "dim")

    def measurement(self, measurement: Measurement, indent: int) -> None:
        """Write a number with unit, threshold and the threshold's source."""
        words = f"{measurement.name} = {measurement.value:.6g} {measurement.unit}".rstrip()
        if measurement.threshold is not None:
            words += self.say(" (threshold ", "（阈值 ") + f"{measurement.threshold:.6g}"
            words += f"; {measurement.source})" if measurement.source else ")"
        self.line(words, indent, "dim")

    def table(self, table: Table, indent: int) -> None:
        """Write a table of evidence."""
        table = table.said(self.language)
        rows = [[sanitise(cell) for cell in row] for row in table.rows[:ROWS_SHOWN]]
        longest = [max(map(cell_len, column)) for column in zip(table.columns, *rows, strict=True)]
        widths = shared_widths(longest, self.console.width - indent - 2 * (len(longest) - 1))
        self.line(table.title.say(self.language), indent)
        drawn = RichTable(box=None, pad_edge=False)
        for column, width in zip(table.columns, widths, strict=True):
            drawn.add_column(self._cell(sanitise(column), width), no_wrap=True, width=width)
        for row in rows:
            drawn.add_row(*(self._cell(cell, width) for cell, width in zip(row, widths, strict=True)))
        self.console.print(Padding(drawn, (0, 0, 0, indent), expand=False))
        if len(table.rows) > ROWS_SHOWN:
            more = len(table.rows) - ROWS_SHOWN
            self.line(self.say(f"and {counted(more, 'more row')}", f"另有 {more} 行"), indent, "dim")

    def _cell(self, words: str, width: int) -> RichText:
        """Return a cell of a table, cut to its column."""
        return RichText(self.cell(words, width))

    def cell(self, words: str, width: int) -> str:
        """Return words cut to `width` cells, their cut end in the signs in use."""
        words = as_cut(words, ascii_only=self.ascii)
        if cell_len(words) > width:
            sign = ellipsis(ascii_only=self.ascii)
            words = set_cell_size(set_cell_size(words, max(0, width - len(sign))) + sign, width)
        return words

    def grid(self, grid: Grid, indent: int) -> None:
        """Write a picture of cells with its legend; colour repeats what the code letters say."""
        roles = {code: ROLES.get(role, "") for code, _, role in grid.legend}
        self.line(grid.title.say(self.language), indent)
        lines = grid_lines(cells_of(grid, self.language))
        for drawn, cells in zip(lines, grid.cells, strict=False):
            text = RichText(" " * (indent + 2) + drawn)
            begin = len(text) - len(cells)
            for number, code in enumerate(cells):
                text.stylize(roles.get(code, ""), begin + number, begin + number + 1)
            self.console.print(text, soft_wrap=True)
        for drawn in lines[len(grid.rows) :]:
            self.line(drawn, indent + 2, "dim")

    def plot(self, plot: Plot, indent: int) -> None:
        """Write a plot: in the finest dots on a terminal, in signs that every font has where it will be read elsewhere.

        Colour repeats what letters and signs say.
        """
        chart = chart_of(plot, self.language)
        width = max(20, min(PLOT_WIDTH, self.console.width - indent - 2))
        fidelity = Fidelity.ASCII if self.ascii else Fidelity.BRAILLE if self.console.is_terminal else Fidelity.BLOCK
        self.line(chart.title, indent)
        for pieces in plot_lines(chart, width, PLOT_HEIGHT, fidelity, self.language):
            text = RichText(" " * (indent + 2))
            for piece in pieces:
                text.append(piece.words, ROLES.get(piece.role, ""))
            text.rstrip()
            self.console.print(text, soft_wrap=True)

    def proposals(self, finding: Finding, indent: int) -> None:
        """Write the edits that a finding proposes."""
        for path, lines in proposal_lines(finding):
            self.line(self.say(f"proposed edit of {path}:", f"建议对 {path} 的修改："), indent)
            self.diff(lines, indent + 2)

    def diff(self, lines: Iterable[str], indent: int) -> None:
        """Write the lines of a diff, the signs at their begin in colour as well."""
        for drawn in lines:
            style = {"+": "green", "-": "red"}.get(drawn[:1], "")
            self.console.print(RichText(" " * indent + drawn, style), soft_wrap=True)

    def evidence(self, items: Iterable[Item], slots: Mapping[str, Slot]) -> None:
        """Write what was taken and why, and which slots are empty."""
        every = list(items)
        for item in every:
            gone = self.say("  MISSING", "  缺失") if item.missing else ""
            self.line(f"{item.slot}{gone}", style="bold")
            self.line(item.path, 2, "cyan")
            self.line(item.why.say(self.language), 2)
        empty = [name for name in slots if not any(item.slot == name and not item.missing for item in every)]
        if empty:
            self.line(self.say("empty slots: ", "空缺的证据槽：") + ", ".join(empty), style="dim")

    def triage(self, desk: Desk, report: Report, seen: Mapping[str, Sequence[str]] = {}) -> None:
        """Write the ranked causes, what is open, ruled out and was checked. seen: by cause, as `cause` takes it."""
        titles = {name: cause.title for name, cause in desk.catalog.vocabulary.items()}
        self.line(self._verdict(report), style="bold")
        self.line(desk.state.root, style="dim")
        for cause in report.confirmed:
            self.cause(cause, titles, seen.get(cause.cause, ()))
        if not report.confirmed:
            self.leads(desk.state.findings_of().values())
        near = [cause for cause in report.possible if cause.flow in report.asked]
        if near:
            self.heading(self.say("Possible, what evidence points to first", "可能的原因（证据指向者在前）"))
            shown = foremost(near)
            for cause in shown:
                self.sign(STANDINGS[Standing.POSSIBLE], f"{cause.cause}  {self._title(cause.cause, titles)}")
            rest = self.say("; nothing that went wrong leads there (all: --json)", "，没有异常指向它们（全部：--json）")
            self._more(len(near) - len(shown), rest)
        if report.unknown:
            self.heading(self.say("Unknown, and what would settle it", "未知，以及如何确定"))
            for slots, opens in settling(report.unknown):
                self.open_group(slots, opens)
        if report.ruled_out:
            self.heading(self.say("Ruled out", "已排除"))
            self.line(", ".join(cause.cause for cause in report.ruled_out), style="dim")
        self.checked(desk)

    def leads(self, findings: Iterable[Finding]) -> None:
        """Write the findings that warn of something though no cause is confirmed, what happened last first."""
        warned = [finding for finding in findings if finding.verdict in (Verdict.PROBLEM, Verdict.WARNING)]
        if not warned:
            return
        self.heading(self.say("Leads, which prove no cause", "线索（不足以确认原因）"))
        for finding in sorted(warned, key=_last, reverse=True)[:LEADS_SHOWN]:
            self.line(finding.summary.say(self.language), 2)
            self.citations(finding.citations, 4)
        self._more(len(warned) - LEADS_SHOWN)

    def checked(self, desk: Desk) -> None:
        """Write what every probe answered, which did not, and which were not asked."""
        findings = desk.state.findings_of()
        self.heading(self.say("Checked", "已检查"))
        for finding in findings.values():
            if finding.verdict.decides:
                spark = spark_of(finding, SPARK_WIDTH, ascii_only=self.ascii)
                answer = f"{finding.probe}: {finding.answer}  {finding.summary.say(self.language)}"
                self.sign(VERDICTS[finding.verdict], f"{answer}  {spark}".rstrip())
        silent = [finding.probe for finding in findings.values() if not finding.verdict.decides]
        if silent:
            self.line(self.say("no answer from ", "没有结论：") + ", ".join(silent), style="dim")
        unasked = [probe for probe in desk.triage_probes(heavy=True) if probe not in findings]
        if unasked:
            words = self.say(
                "not asked, they read bulk data (triage --heavy): ", "未询问，需读取大量数据（triage --heavy）："
            )
            self.line(words + ", ".join(unasked), style="dim")

    def cause(self, cause: Verdicted, titles: Mapping[str, Text], seen: Sequence[str] = ()) -> None:
        """Write a confirmed cause: what proves it, the fix, how to verify. seen: what earlier sessions know of it."""
        self.console.print()
        self.sign(STANDINGS[cause.standing], f"{cause.cause}  {self._title(cause.cause, titles)}")
        for words in seen:
            self.line(words, 2, "yellow")
        for finding in cause.by:
            self.line(finding.summary.say(self.language), 2)
            self.citations(finding.citations, 4)
            for plot in finding.plots:
                self.plot(plot, 4)
            for grid in finding.grids:
                self.grid(grid, 4)
            self.proposals(finding, 4)
        if cause.consequences:
            follows = self.say("its consequences: ", "其后果：") + ", ".join(cause.consequences)
            self.line(follows, 2)
        self.leaf(cause.leaf)

    def leaf(self, node: Node) -> None:
        """Write the end of a walk: the fix and what to do, or that nothing was found."""
        if node.clear is not None:
            self.line(node.clear.say(self.language), 2)
        if node.note is not None:
            self.line(node.note.say(self.language), 2, "dim")
        if node.fix is not None:
            self.line(self.say("fix: ", "修复：") + node.fix.say(self.language), 2)
        for action in node.actions:
            self.action(action)
        if node.verify:
            self.line(self.say("verify with: ", "验证：") + ", ".join(node.verify), 2)

    def action(self, action: Action) -> None:
        """Write one action."""
        if action.say is not None:
            self.line(action.say.say(self.language), 4)
        if action.command is not None:
            for part in action.command.rstrip().splitlines():
                self.command(part, 6)
        if action.link is not None:
            self.line(action.link, 6, "cyan")
        if action.change is not None:
            for part in action.change.lines():
                self.console.print(RichText(" " * 6 + sanitise(part), "bold"), soft_wrap=True)

    def open_group(self, slots: tuple[str, ...], opens: Sequence[Open]) -> None:
        """Write the open nodes that one thing would settle."""
        names = ", ".join(f"{open_.flow}/{open_.node}" for open_ in opens[:OPEN_SHOWN])
        more = f" (+{len(opens) - OPEN_SHOWN})" if len(opens) > OPEN_SHOWN else ""
        if slots:
            reasons = dict.fromkeys(open_.why.say(self.language) for open_ in opens)
            settle = opens[0].settle_with.say(self.language)
            self.sign(VERDICTS[Verdict.UNKNOWN], f"{settle}  {' '.join(list(reasons)[:2])}")
        else:
            self.sign(VERDICTS[Verdict.UNKNOWN], self.say("A person or an experiment decides:", "需人工判断或做实验："))
        self.line(names + more, 4, "dim")

    def _verdict(self, report: Report) -> str:
        confirmed, possible = len(report.confirmed), len(report.possible)
        if confirmed == 1:
            return self.say("1 cause confirmed", "已确认 1 个原因")
        if confirmed:
            return self.say(
                f"{confirmed} causes confirmed, the first is the root", f"已确认 {confirmed} 个原因，首个为根因"
            )
        if exit_code(report) is ExitCode.CLEAR:
            return self.say("nothing wrong found, the main questions were answered", "没有发现问题，主要问题均已回答")
        if not report.asked:
            return self.say("nothing could be decided from this evidence", "根据现有证据无法作出任何判断")
        words = f"nothing confirmed, {counted(possible, 'cause')} possible"
        return self.say(words, f"没有确认的原因，{possible} 个原因可能")

    def _title(self, cause: str, titles: Mapping[str, Text]) -> str:
        return titles[cause].say(self.language) if cause in titles else ""

    def _more(self, count: int, why: str = "") -> None:
        if count > 0:
            self.line(self.say(f"and {count} more", f"另有 {count} 项") + why, style="dim")

    def node(self, flow: Flow, name: str, decision: Decision) -> None:
        """Write a node of a walk: question, note, findings and what they decide."""
        node = flow.nodes[name]
        section = f"  [{', '.join(node.guide_ids)}]" if node.guide_ids else ""
        self.heading(f"{flow.flow} / {name}{section}")
        if node.question is not None:
            self.line(node.question.say(self.language), style="bold")
        if node.note is not None:
            self.line(node.note.say(self.language), 2, "dim")
        if node.change is not None:
            self.line(self.say("Run again with this change:", "做如下改动后重新运行："), 2)
            for part in node.change.lines():
                self.line(part, 4, "bold")
        for finding in decision.findings:
            self.finding(finding, 2)
        if decision.how is How.DISAGREE:
            self.line(self.say("The probes disagree; you decide.", "各探针结论不一致，请裁定。"), 2, "yellow")

    def path(self, flow: Flow | None, walk: Walk) -> None:
        """Write the answers of a walk, who gave each, and the overtaken ones."""
        self.heading(f"{walk.flow}" + (f"  {flow.title.say(self.language)}" if flow else ""))
        for step in (*walk.steps, *walk.stale):
            sign = MARKS[Mark.STALE if step.stale else Mark.DONE]
            by = self.say("probe", "探针") if step.by is By.PROBE else step.who or self.say("a person", "人工")
            self.sign(sign, f"{step.node}: {step.answer}  ({by})", 2)

    def choices(self, node: Node, recommended: str | None) -> None:
        """Write the numbered answers, the recommended one marked."""
        for number, word in enumerate(node.branches, 1):
            words = node.answers[word].say(self.language) if word in node.answers else word
            mark = self.say("  (recommended)", "（推荐）") if word == recommended else ""
            self.line(f"{number}  {word}  {words if words != word else ''}{mark}", 2)


def _last(finding: Finding) -> tuple[float, int]:
    """Return where the last line stands that a finding cites, by time and by line; before all others where none."""
    return max(((citation.time or 0.0, citation.line or 0) for citation in finding.citations), default=(0.0, 0))


def _stdout() -> Console:
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def shared_widths(wanted: Sequence[int], room: int) -> list[int]:
    """Return column widths that fit into `room`: narrow columns get what they want, wide ones share the rest evenly."""
    widths = [0] * len(wanted)
    left = max(room, len(wanted))
    for place, number in enumerate(sorted(range(len(wanted)), key=lambda number: wanted[number])):
        widths[number] = max(1, min(wanted[number], left // (len(wanted) - place)))
        left -= widths[number]
    return widths

"""The tree of a flow: every node with its mark, and what is ruled out folded away.

A line begins with the answer that leads to it and an arrow, where there is room. Invariant: of the lines of an end that
several checks share, only the one on the way of the walk or the evidence carries its mark, and the cursor goes there.
"""

from __future__ import annotations

from textual.content import Content

from runbook.flow.model import Flow
from runbook.glyphs import MARKS
from runbook.plot import spark_of
from runbook.text import sanitise
from runbook.tui.actions import bindings
from runbook.tui.advice import mark_of
from runbook.tui.nodetext import spoken
from runbook.tui.outline import Line, came_from, home, outline, visible
from runbook.tui.paint import cut
from runbook.tui.rows import LazyRows, Row, Rows
from runbook.tui.view import View
from runbook.walk import Mark

SPARK_WIDTH = 8
"""Cells of the sparkline beside a node whose finding has a plot."""

ANSWER_LEAST = 4
"""Cells below which the answer that leads to a line is left out rather than cut."""


class TreePane(Rows):
    """A list whose rows are the lines of the outline; the key of a row is the key of its line."""

    BINDINGS = bindings("tree")
    scopes = ("tree", "rows")

    def __init__(self) -> None:
        """Make an empty tree."""
        super().__init__(id="tree")
        self.flow: Flow | None = None
        self.lines: tuple[Line, ...] = ()
        self._folded: frozenset[str] = frozenset()
        self._touched: set[str] = set()
        self._view: View | None = None
        self._here = ""
        self._ways: dict[str, str] = {}

    def show_flow(self, view: View, flow: Flow) -> None:
        """Draw `flow`; when the walk has moved, the cursor goes with it."""
        if self.flow is not flow:
            self.flow, self.lines, self._touched, self._here = flow, outline(flow), set(), ""
        self._view = view
        marks = mark_of(view, flow)
        gone = {
            line.node
            for line in self.lines
            if line.inside and marks[line.node] is Mark.RULED_OUT and line.node not in self._touched
        }
        opened = {node for node in self._folded if node not in self._touched and marks[node] is not Mark.RULED_OUT}
        self._folded = (self._folded - opened) | gone
        here = view.here(flow)
        moved = here != self._here
        self._here = here
        self._draw(marks, self._home(here) if moved or not self.key else None, centre=moved)

    def node_at_cursor(self) -> str:
        """Return the node of the cursor's line, "" when there is none."""
        return self.key.rsplit("\0", 1)[-1]

    def go_to(self, node: str) -> None:
        """Put the cursor on a node, unfolding what hides it."""
        if self._view is None or self.flow is None or (place := self._home(node)) < 0:
            return
        around = {line.node for i, line in enumerate(self.lines[:place]) if place <= i + line.inside}
        self._touched |= around & self._folded
        self._folded -= around
        self._draw(mark_of(self._view, self.flow), place, centre=False)

    def _home(self, node: str) -> int:
        """Return the place of the line that stands for a node, -1 for none."""
        if self._view is None or self.flow is None:
            return -1
        return home(self.lines, node, came_from(self.flow, self._view.state, (node,)).get(node, ""))

    def _draw(self, marks: dict[str, Mark], cursor: int | None, *, centre: bool) -> None:
        """Draw the lines that are not folded away. cursor: place of the line to go to, None to stay."""
        view, flow = self._view, self.flow
        if view is None or flow is None:
            return
        lines = visible(self.lines, self._folded)
        ends = {line.node for line in self.lines if line.again and flow.nodes[line.node].is_leaf}
        self._ways = came_from(flow, view.state, ends)
        keys = [line.key for line in lines]
        rows = LazyRows(
            len(lines),
            lambda i: self._row(lines[i], marks[lines[i].node]),
            lambda key: keys.index(key) if key in keys else -1,
        )
        self.set_rows(rows, cursor=self.lines[cursor].key if cursor is not None and cursor >= 0 else None)
        if cursor is not None:
            self.move_to(self.cursor, lead=self.size.height // 3 if centre else None, tell=False)

    def _row(self, line: Line, mark: Mark) -> Row:
        view, flow = self._view, self.flow
        if view is None or flow is None:
            return Row(line.key, Content(""))
        ink, signs = view.ink, view.signs
        rails = "".join(f"{signs.spine} " if goes_on else "  " for goes_on in line.rails)
        sign = MARKS[mark]
        name = sanitise(line.node)
        style = {
            Mark.CURRENT: ink.strong,
            Mark.RULED_OUT: ink.dim,
            Mark.STALE: ink.dim,
        }.get(mark, "")
        node = flow.nodes[line.node]
        verdict = view.verdict_of(node.cause) if node.cause is not None else None
        if verdict is not None and verdict in view.report.confirmed and verdict.node == line.node:
            style = f"{ink.bad} {ink.strong}".strip()
        elsewhere = line.parent != self._ways[line.node] if line.node in self._ways else line.again and not node.is_leaf
        sparkline = "" if line.again else _spark(view, flow, line.node)
        if elsewhere:
            end = Content.styled(name, ink.dim)
            front = Content.assemble((rails, ink.dim), (f"{signs.again} ", ink.dim))
        else:
            folded = f" {signs.folded} {line.inside}" if line.node in self._folded else ""
            end = Content.assemble((name, style), (folded, ink.dim))
            front = Content.assemble((rails, ink.dim), (f"{view.sign(sign)} ", view.role_ink(sign.role)))
        room = self.size.width - 3 - front.cell_length - end.cell_length
        content = Content.assemble(front, self._led(view, line, room), end)
        return Row(line.key, content, beside=Content.styled(sparkline, ink.accent))

    @staticmethod
    def _led(view: View, line: Line, room: int) -> Content:
        """Return the answer that leads to a line, before an arrow; in `room` cells, nothing where there are too few."""
        arrow = Content.styled(f" {view.signs.arrow} ", view.ink.dim)
        answer = Content.styled(sanitise(line.answer), view.ink.dim)
        room -= arrow.cell_length
        if not line.answer or room < min(ANSWER_LEAST, answer.cell_length):
            return Content("")
        return Content.assemble(cut(answer, room, view.signs), arrow)

    def action_fold(self) -> None:
        """Fold the branch of the cursor, or go to its parent."""
        node = self.node_at_cursor()
        line = next((line for line in self.lines if line.key == self.key), None)
        if line is None or self._view is None or self.flow is None:
            return
        if line.inside and node not in self._folded:
            self._touched.add(node)
            self._folded |= {node}
            self._draw(mark_of(self._view, self.flow), None, centre=False)
        elif line.parent:
            self.go_to(line.parent)
            self.move_to(self.cursor)

    def action_unfold(self) -> None:
        """Unfold the branch of the cursor."""
        node = self.node_at_cursor()
        if node in self._folded and self._view is not None and self.flow is not None:
            self._touched.add(node)
            self._folded -= {node}
            self._draw(mark_of(self._view, self.flow), None, centre=False)

    def action_here(self) -> None:
        """Go to the node at which the walk stands."""
        self.go_to(self._here)
        self.move_to(self.cursor)


def _spark(view: View, flow: Flow, node: str) -> str:
    """Return the numbers behind a check as a sparkline, "" when its findings have no plot.

    A cause has none of its own: it would repeat those of the check that decides it.
    """
    if flow.nodes[node].is_leaf:
        return ""
    sparks = (spark_of(finding, SPARK_WIDTH, ascii_only=view.signs.ascii_only) for finding in spoken(view, flow, node))
    return next((spark for spark in sparks if spark), "")

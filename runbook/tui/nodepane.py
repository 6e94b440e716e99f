"""The node pane: the reading part scrolls, answers and the recommended action stay at its foot."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from runbook.finding import Citation
from runbook.flow.model import Flow
from runbook.tui.actions import bindings, key_of
from runbook.tui.advice import Advice, Do, advise
from runbook.tui.nodetext import answer_rows, citations, node_text
from runbook.tui.paint import cut
from runbook.tui.view import View
from runbook.tui.wishes import OUTSIDE, WRITES

ANSWER_LINES = 6
"""Answers shown at the foot; the list behind `a` has them all."""


class Reading(VerticalScroll, can_focus=True):
    """The part that scrolls."""

    BINDINGS = bindings("node")
    scopes = ("node",)


class NodePane(Vertical):
    """One node of a flow. chosen: index of the chosen citation."""

    DEFAULT_CSS = """
    NodePane { height: 1fr; }
    NodePane Reading { height: 1fr; padding: 0 1 0 2; scrollbar-size-vertical: 1; }
    NodePane #foot { height: auto; padding: 0 1 0 2; border-top: solid $ink-line; }
    """

    def __init__(self) -> None:
        """Make an empty pane."""
        super().__init__(id="node")
        self.flow: Flow | None = None
        self.node = ""
        self.chosen = 0
        self.advice: Advice | None = None
        self._view: View | None = None

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Reading():
            yield Static(id="text", markup=False)
        yield Static(id="foot", markup=False)

    def show_node(self, view: View, flow: Flow, node: str) -> None:
        """Draw `node`; a new node starts at its top, the same one stays where it was scrolled to."""
        if (flow.flow, node) != (self.flow.flow if self.flow else "", self.node):
            self.chosen = 0
            self.query_one(Reading).scroll_home(animate=False)
        self.flow, self.node, self._view = flow, node, view
        self.chosen = min(self.chosen, max(0, len(self.citations()) - 1))
        self.redraw()

    def redraw(self) -> None:
        """Draw again at the present size."""
        view, flow = self._view, self.flow
        if view is None or flow is None or not self.node:
            return
        width = max(20, self.size.width - 4) if self.size.width else 50
        text = node_text(view, flow, self.node, width, self.chosen)
        self.advice = advise(view, flow, self.node)
        self._update("#text", text)
        self._update("#foot", self._foot(view, flow, self.advice, width))

    def _update(self, selector: str, content: Content) -> None:
        """Change a part only when it reads differently: a layout costs more than the comparison."""
        part = self.query_one(selector, Static)
        old = part.content
        if not (isinstance(old, Content) and old.is_same(content)):
            part.update(content)

    def _foot(self, view: View, flow: Flow, advice: Advice, width: int) -> Content:
        ink = view.ink
        rows: list[Content] = []
        if self.node == view.here(flow) and not flow.nodes[self.node].is_leaf:
            rows = [cut(line, width, view.signs) for _, line in answer_rows(view, flow, self.node)]
            if len(rows) > ANSWER_LINES:
                more = Content.styled(f"   + {len(rows) - ANSWER_LINES + 1}  ({key_of('walk', 'answer')})", ink.dim)
                rows = [*rows[: ANSWER_LINES - 1], more]
        cannot = (view.bundled and advice.do.value in OUTSIDE) or (view.held and advice.do.value in WRITES)
        quiet = advice.do in (Do.WAIT, Do.ANSWER) or cannot
        line = Content.assemble(
            (f"{view.signs.enter} ", ink.dim if quiet else ink.accent),
            (advice.words, "" if quiet else f"{ink.accent} {ink.strong}".strip()),
            (f"  {advice.why}" if advice.why else "", ink.dim),
        )
        return Content("\n").join([*rows, cut(line, width, view.signs)])

    def citations(self) -> tuple[Citation, ...]:
        """Return the citations of the shown node, in order."""
        if self._view is None or self.flow is None or not self.node:
            return ()
        return citations(self._view, self.flow, self.node)

    def citation(self) -> Citation | None:
        """Return the chosen citation."""
        every = self.citations()
        return every[self.chosen] if every else None

    def choose(self, by: int) -> None:
        """Choose another citation, round and round."""
        every = self.citations()
        if every:
            self.chosen = (self.chosen + by) % len(every)
            self.redraw()

    def on_resize(self) -> None:
        """Wrap to the new width."""
        self.redraw()

"""The walk screen: tree, node and evidence.

All three side by side on a wide terminal, tree and node on a normal one, one at a time on a narrow one.

Invariants: the node shown may be another than the one at which the walk stands (looking ahead changes nothing); every
change goes out as a message and comes back as a new view.
"""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from runbook.finding import Citation
from runbook.flow.model import Flow
from runbook.tui.actions import bindings
from runbook.tui.advice import Do
from runbook.tui.linespane import Lines, LinesPane
from runbook.tui.nodepane import NodePane, Reading
from runbook.tui.page import Page
from runbook.tui.rows import Rows
from runbook.tui.treepane import TreePane
from runbook.tui.view import View
from runbook.tui.wishes import Wish


class WalkScreen(Page):
    """One flow. node: the node shown, "" to follow the walk."""

    BINDINGS = bindings("walk")
    scope = "walk"
    DEFAULT_CSS = """
    WalkScreen #panes { height: 1fr; }
    WalkScreen TreePane { width: 31; border-right: solid $ink-line; padding: 0; }
    WalkScreen NodePane { width: 1fr; }
    WalkScreen LinesPane { display: none; width: 1fr; }
    WalkScreen.-wide TreePane { width: 30%; max-width: 44; }
    WalkScreen.-wide NodePane { width: 1fr; }
    WalkScreen.-wide LinesPane { display: block; width: 1fr; border-left: solid $ink-line; }
    WalkScreen.-evidence.-narrow NodePane, WalkScreen.-evidence.-narrow TreePane,
    WalkScreen.-evidence.-normal NodePane, WalkScreen.-evidence.-normal TreePane { display: none; }
    WalkScreen.-evidence.-narrow LinesPane, WalkScreen.-evidence.-normal LinesPane { display: block; }
    WalkScreen.-narrow TreePane { display: none; width: 1fr; border-right: none; }
    WalkScreen.-narrow.-tree TreePane { display: block; }
    WalkScreen.-narrow.-tree NodePane { display: none; }
    """

    def __init__(self, flow: Flow, node: str = "") -> None:
        """Make the screen of `flow`, showing `node`."""
        super().__init__()
        self.flow = flow
        self.node = node
        self._here = ""

    @property
    def run(self) -> str:
        """Return the run that the node is about."""
        node = self.node or self._here
        return (self.view.state.run_at(self.flow, node) or "") if self.view is not None and node else ""

    def foot_scopes(self) -> tuple[str, ...]:
        """Return whose keys the foot shows: those of the evidence first while it has the focus."""
        return ("lines", "walk") if isinstance(self.focused, Lines) else ("walk",)

    def body(self) -> ComposeResult:
        """Lay out."""
        with Horizontal(id="panes"):
            yield TreePane()
            yield NodePane()
            yield LinesPane()

    def on_mount(self) -> None:
        """Put the focus on the node."""
        self.query_one(Reading).focus()

    def where(self, view: View) -> str:
        """Return the flow's title."""
        return view.say(self.flow.title)

    def show(self, view: View) -> None:
        """Draw `view`; when the walk moved, the node shown moves with it."""
        super().show(view)
        if not self.is_mounted:
            return
        here = view.here(self.flow)
        if here != self._here:
            self.node = self.node if self.node and not self._here else here
            self._here = here
        tree, node, lines = self.query_one(TreePane), self.query_one(NodePane), self.query_one(LinesPane)
        tree.ink, tree.signs = view.ink, view.signs
        tree.show_flow(view, self.flow)
        if tree.node_at_cursor() != self.node:
            tree.go_to(self.node)
        node.show_node(view, self.flow, self.node or here)
        lines.show(view)
        self._follow()

    def look_at(self, node: str) -> None:
        """Show another node; the walk stays where it is."""
        self.node = node
        if self.view is not None:
            self.query_one(NodePane).show_node(self.view, self.flow, node)
            self._follow()

    def open_evidence(self, path: str, citation: Citation | None) -> None:
        """Open a file in the evidence pane and go there."""
        self.query_one(LinesPane).open(path, citation)
        self.add_class("-evidence")
        self.query_one(Lines).focus()

    def leave_pane(self) -> bool:
        """Go from the evidence or the tree back to the node; False when the node has the focus already."""
        if isinstance(self.focused, Reading) and not self.has_class("-evidence"):
            return False
        away = not self.has_class("-wide") or not isinstance(self.focused, Reading)
        self.remove_class("-evidence", "-tree")
        self.query_one(Reading).focus()
        return away

    def _follow(self) -> None:
        """On a wide terminal the evidence pane follows the chosen citation, without taking the focus."""
        if not self.has_class("-wide"):
            return
        citation = self.query_one(NodePane).citation()
        if citation is not None and not isinstance(self.focused, Lines):
            self.query_one(LinesPane).open(citation.path, citation)

    @on(Rows.Moved, "#tree")
    def _on_tree_moved(self, event: Rows.Moved) -> None:
        self.look_at(event.key.rsplit("\0", 1)[-1])

    @on(Rows.Chosen, "#tree")
    def _on_tree_chosen(self) -> None:
        self.action_accept()

    def on_key(self, event: events.Key) -> None:
        """Take a number key as an answer by hand, or as a command to copy at a leaf."""
        if event.key in "123456789" and len(event.key) == 1:
            event.stop()
            self._number(int(event.key))

    def _number(self, n: int) -> None:
        node = self.flow.nodes[self.node or self._here]
        if node.is_leaf:
            self._wish("copy", str(n - 1))
        elif self.node and self.node != self._here:
            self._wish("not_yet")
        else:
            words = list(node.branches)
            self._wish("answer", words[n - 1]) if n <= len(words) else self._wish("no_answer")

    def _wish(self, do: str, target: str = "") -> None:
        self.post_message(Wish(do, self.flow.flow, self.node or self._here, target))

    def on_descendant_focus(self) -> None:
        """Show the keys of the pane in focus."""
        if self.view is not None:
            super().show(self.view)

    def action_accept(self) -> None:
        """Do what the action line says."""
        advice = self.query_one(NodePane).advice
        if advice is None or advice.do is Do.WAIT:
            return
        if advice.do is Do.RETURN:
            self.query_one(TreePane).go_to(advice.target)
            self.look_at(advice.target)
        else:
            self._wish(advice.do.value, advice.target)

    def action_answer(self) -> None:
        """Answer from the list."""
        away = bool(self.node) and self.node != self._here
        self._wish("not_yet" if away else "answer_list")

    def action_back(self) -> None:
        """Back to the node before."""
        self._wish("back")

    def action_proof(self) -> None:
        """Open the chosen citation; a second time leads back."""
        citation = self.query_one(NodePane).citation()
        if isinstance(self.focused, Lines):
            self.leave_pane()
        elif citation is None:
            self._wish("no_citation")
        else:
            self.open_evidence(citation.path, citation)

    def action_next_proof(self) -> None:
        """Choose the next citation."""
        self._choose(1)

    def action_previous_proof(self) -> None:
        """Choose the citation before."""
        self._choose(-1)

    def _choose(self, by: int) -> None:
        node = self.query_one(NodePane)
        node.choose(by)
        citation = node.citation()
        if citation is not None and (self.has_class("-wide") or self.has_class("-evidence")):
            self.query_one(LinesPane).open(citation.path, citation)

    def turn(self, by: int) -> None:
        """Go to the next pane that can be seen; on a narrow terminal, to the next one at all."""
        panes: list[Widget] = [self.query_one(TreePane), self.query_one(Reading), self.query_one(Lines)]
        now = next((i for i, pane in enumerate(panes) if pane is self.focused), 1)
        self.go_to_pane((now + by) % 3)

    def go_to_pane(self, index: int) -> None:
        """Show a pane and give it the focus: 0 tree, 1 node, 2 evidence."""
        self.set_class(index == 0, "-tree")
        self.set_class(index == 2, "-evidence")
        citation = self.query_one(NodePane).citation()
        lines = self.query_one(LinesPane)
        if index == 2 and citation is not None and lines.window is None:
            lines.open(citation.path, citation)
        self.query_one((TreePane, Reading, Lines)[index]).focus()

    def action_note(self) -> None:
        """Write a note at this node."""
        self._wish("note")

    def action_copy(self) -> None:
        """Copy the first command of the node."""
        self._wish("copy")

    def action_ask(self) -> None:
        """Ask this node's probes again."""
        self._wish("ask")

    def action_cancel(self) -> None:
        """Cancel this node's probes."""
        self._wish("cancel")

    def action_add(self) -> None:
        """Add evidence."""
        self._wish("add")

    def action_change(self) -> None:
        """Write the changed copy that this experiment asks for."""
        self._wish("change")

    def action_attach(self) -> None:
        """Attach a run to this experiment."""
        self._wish("attach")

    def action_export(self) -> None:
        """Write the ticket."""
        self._wish("export")

"""What both screens share: the bar above, the keys below, and the words for a terminal that is too small."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from runbook.text import sanitise
from runbook.tui.action import Action
from runbook.tui.actions import of_scopes, show_key
from runbook.tui.paint import cut, left_cut
from runbook.tui.view import View
from runbook.tui.wishes import WRITES

MINIMUM = (60, 20)
"""Columns and rows below which nothing useful fits."""

PLACE_LEAST = 12
"""Cells that the place keeps in the head beside what is said at its right end, which gives way after that."""


class Page(Screen[None]):
    """A screen with a head, a body and a foot. scopes: whose actions the foot shows, in order."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-normal"), (110, "-wide")]  # noqa: RUF012
    DEFAULT_CSS = """
    Page { layout: vertical; }
    Page #head { height: 1; padding: 0 1; background: $ink-resting; }
    Page #keys { height: 1; padding: 0 1; background: $ink-resting; }
    Page #body { height: 1fr; }
    Page #small { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center; }
    Page.-small #small { display: block; }
    Page.-small #head, Page.-small #keys, Page.-small #body { display: none; }
    Page:nocolor #head, Page:nocolor #keys { text-style: reverse; }
    """
    scope = ""
    """Whose actions this page serves, "" for none."""

    def __init__(self) -> None:
        """Make the page; it draws once it is shown a view."""
        super().__init__()
        self.view: View | None = None

    def compose(self) -> ComposeResult:
        """Lay out head, body and foot."""
        yield Static(id="head", markup=False)
        with Container(id="body"):
            yield from self.body()
        yield Static(id="keys", markup=False)
        yield Static(id="small", markup=False)

    def body(self) -> ComposeResult:
        """Lay out what is between head and foot."""
        yield from ()

    def on_mount(self) -> None:
        """Draw what is known."""
        self._measure()

    def on_resize(self) -> None:
        """Fit the new size."""
        self._measure()
        if self.view is not None:
            self.show(self.view)

    def show(self, view: View) -> None:
        """Draw `view`."""
        self.view = view
        if not self.is_mounted:
            return
        self.query_one("#head", Static).update(self._head(view))
        self.query_one("#keys", Static).update(self._keys(view))
        width, height = self.app.size
        want = view.word("too_small", w=MINIMUM[0], h=MINIMUM[1], have_w=width, have_h=height)
        self.query_one("#small", Static).update(Content(want))

    @property
    def run(self) -> str:
        """Return which run of the session the page is about."""
        return ""

    def foot_scopes(self) -> tuple[str, ...]:
        """Return whose keys the foot shows, the nearest first."""
        return (self.scope,)

    def help_scopes(self) -> tuple[str, ...]:
        """Return whose keys help shows: the page's and those of the pane in focus."""
        focused = getattr(self.focused, "scopes", ())
        reader = ("reader",) if self.view is not None and self.view.held else ()
        return (*reader, *((self.scope,) if self.scope else ()), *focused, "app")

    def leave_pane(self) -> bool:
        """Go one level up inside the page; False when there is none."""
        return False

    def turn(self, by: int) -> None:
        """Go to the next pane, or with -1 to the one before."""
        if by > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def where(self, view: View) -> str:  # noqa: ARG002  # pages that stand somewhere look at it
        """Return what the head says of this page."""
        return ""

    def _measure(self) -> None:
        width, height = self.app.size
        self.set_class(width < MINIMUM[0] or height < MINIMUM[1], "-small")

    def _head(self, view: View) -> Content:
        ink, dot = view.ink, f" {view.signs.dot} "
        width = max(10, self.app.size.width - 2)
        done, every = sum(1 for probe in view.all_probes if ("", probe) in view.state.findings), len(view.all_probes)
        if view.trouble:
            right = Content.styled(sanitise(view.trouble), ink.bad)
        elif view.held:
            right = Content.styled(sanitise(view.held), ink.warn)
        elif view.saving:
            right = Content.styled(view.word("saving"), ink.warn)
        elif done < every:
            right = Content.styled(view.word("asked", done=done, all=every), ink.dim)
        else:
            right = Content.styled(view.word("all_asked", all=every), ink.dim)
        root = sanitise(view.state.root)
        left = Content.assemble(("runbook", f"{ink.accent} {ink.strong}".strip()))
        if view.bundled:
            left = Content.assemble(left, (dot + view.word("bundle"), ink.warn))
        place = self.where(view)
        if place:
            room = max(PLACE_LEAST, width - left.cell_length - right.cell_length - len(dot) - 1)
            left = Content.assemble(left, (dot, ink.dim), cut(Content(place), room, view.signs))
        room = width - left.cell_length - right.cell_length - 6
        if root and room > 8:
            left = Content.assemble(left, (dot + left_cut(root, room, view.signs), ink.dim))
        right = cut(right, max(1, width - left.cell_length - 1), view.signs)
        gap = width - left.cell_length - right.cell_length
        return Content.assemble(left, " " * max(1, gap), right).truncate(width)

    def _keys(self, view: View) -> Content:
        width = max(10, self.app.size.width - 2)
        last = Content("   ").join(self._key(view, action) for action in of_scopes("app") if action.foot)
        line = Content("")
        for action in of_scopes(*(("reader",) if view.held else ()), *self.foot_scopes()):
            part = self._key(view, action)
            if action.name == "app.browse" and not view.browsers(self.run):
                continue
            if action.foot and line.cell_length + part.cell_length + last.cell_length + 6 <= width:
                line = Content.assemble(line, part, "   ")
        return Content.assemble(line, last)

    @staticmethod
    def _key(view: View, action: Action) -> Content:
        cannot = (view.bundled and action.outside) or (view.held and action.name.rpartition(".")[2] in WRITES)
        strong = view.ink.dim if cannot else f"{view.ink.accent} {view.ink.strong}".strip()
        return Content.assemble(
            (show_key(action.keys[0]), strong), (f" {action.title.say(view.language)}", view.ink.dim)
        )

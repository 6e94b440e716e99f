"""Colours and inks: one accent, four status colours, one quiet grey, and a set without any colour.

Invariants: every ink on its background has a contrast of at least 4.5:1 (a test computes it); without colour the same
meanings are carried by bold, dim, underline and reverse alone, and no colour code at all is sent (the app is then
started with `ansi_color=True`, which makes Textual strip colours instead of turning them to greys).
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme


@dataclass(frozen=True)
class Ink:
    """Style strings by meaning. cursor: the chosen row while its list has focus. resting: the same without focus."""

    dim: str
    strong: str
    accent: str
    good: str
    bad: str
    warn: str
    quote: str
    cursor: str
    resting: str


COLOUR = Ink(
    dim="$ink-dim",
    strong="bold",
    accent="$ink-accent",
    good="$ink-good",
    bad="$ink-bad",
    warn="$ink-warn",
    quote="$ink-quote",
    cursor="on $ink-cursor",
    resting="on $ink-resting",
)
PLAIN = Ink(
    dim="dim",
    strong="bold",
    accent="bold",
    good="",
    bad="bold",
    warn="bold",
    quote="",
    cursor="reverse",
    resting="underline",
)

DARK_INKS = {
    "ink-dim": "#98a2b2",
    "ink-accent": "#7fb4ff",
    "ink-good": "#8fd08a",
    "ink-bad": "#ff8085",
    "ink-warn": "#e8b765",
    "ink-quote": "#c2cad6",
    "ink-cursor": "#263450",
    "ink-resting": "#1d232e",
    "ink-line": "#2b323e",
}
LIGHT_INKS = {
    "ink-dim": "#545e6c",
    "ink-accent": "#1556b8",
    "ink-good": "#1e6b2b",
    "ink-bad": "#b3202b",
    "ink-warn": "#865400",
    "ink-quote": "#363d48",
    "ink-cursor": "#d4e2f8",
    "ink-resting": "#e9edf3",
    "ink-line": "#cfd6df",
}
DARK_BACKGROUND, DARK_FOREGROUND = "#12161d", "#dde3ec"
LIGHT_BACKGROUND, LIGHT_FOREGROUND = "#fafbfc", "#1b2028"


def _theme(name: str, inks: dict[str, str], background: str, foreground: str, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        primary=inks["ink-accent"],
        accent=inks["ink-accent"],
        warning=inks["ink-warn"],
        error=inks["ink-bad"],
        success=inks["ink-good"],
        foreground=foreground,
        background=background,
        surface=background,
        panel=inks["ink-resting"],
        dark=dark,
        variables={
            **inks,
            "scrollbar": inks["ink-line"],
            "scrollbar-background": background,
            "scrollbar-corner-color": background,
            "scrollbar-hover": inks["ink-dim"],
            "scrollbar-active": inks["ink-accent"],
            "scrollbar-background-hover": background,
            "scrollbar-background-active": background,
        },
    )


DARK = _theme("runbook-dark", DARK_INKS, DARK_BACKGROUND, DARK_FOREGROUND, dark=True)
LIGHT = _theme("runbook-light", LIGHT_INKS, LIGHT_BACKGROUND, LIGHT_FOREGROUND, dark=False)

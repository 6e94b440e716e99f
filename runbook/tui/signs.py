"""The signs that the terminal UI draws with, beside the status signs of `runbook.glyphs`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runbook.glyphs import wants_ascii


@dataclass(frozen=True)
class Signs:
    """One set.

    bar: left edge of quoted text. spine: vertical line of the tree. again: a node that is drawn elsewhere. folded: a
    folded branch.
    """

    ascii_only: bool
    running: str = "◐"
    queued: str = "·"
    bar: str = "▏"
    spine: str = "│"
    arrow: str = "→"
    again: str = "↗"
    folded: str = "▸"
    cursor: str = "▌"
    enter: str = "⏎"
    dot: str = "·"
    rule: str = "─"
    times: str = "×"
    ellipsis: str = "…"


UNICODE = Signs(ascii_only=False)
ASCII = Signs(True, "%", ".", "|", "|", "->", "^", "+", ">", "Enter", "-", "-", "x", "...")


def choose(environ: Mapping[str, str]) -> Signs:
    """Return the set for this terminal.

    RUNBOOK_ASCII asks for ASCII, and so does the Linux console, whose font lacks most signs.
    """
    return ASCII if environ.get("RUNBOOK_ASCII") or environ.get("TERM") == "linux" or wants_ascii() else UNICODE

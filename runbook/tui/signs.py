"""The signs that the terminal UI draws with, beside the status signs of `runbook.glyphs`."""

from __future__ import annotations

from dataclasses import dataclass

from textual.scrollbar import ScrollBarRender

from runbook.glyphs import ellipsis


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
    times: str = "×"
    ellipsis: str = ellipsis(ascii_only=False)


UNICODE = Signs(ascii_only=False)
ASCII = Signs(True, "%", ".", "|", "|", "->", "^", "+", ">", "Enter", "-", "x", ellipsis(ascii_only=True))


class PlainBars(ScrollBarRender):
    """Scroll bars whose ends fall on whole cells, so that no block character is needed."""

    VERTICAL_BARS = [" "]  # noqa: RUF012
    HORIZONTAL_BARS = [" "]  # noqa: RUF012

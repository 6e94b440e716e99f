"""Status as glyph and word: colour is never the only sign. One set for Unicode terminals, one for ASCII."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from runbook.finding import Verdict
from runbook.text import CUT, Text
from runbook.triage import Standing
from runbook.walk import Mark


class Sign(NamedTuple):
    """How a status is drawn.

    Glyph for Unicode terminals, mark for ASCII ones (both one column), words, and the name of its colour role.
    """

    glyph: str
    mark: str
    words: Text
    role: str

    def draw(self, *, ascii_only: bool) -> str:
        """Return the one-column sign."""
        return self.mark if ascii_only else self.glyph


VERDICTS: dict[Verdict, Sign] = {
    Verdict.OK: Sign("✓", "+", Text("ok", "正常"), "good"),
    Verdict.PROBLEM: Sign("✗", "x", Text("problem", "有问题"), "bad"),
    Verdict.WARNING: Sign("▲", "!", Text("warning", "警告"), "warn"),
    Verdict.UNKNOWN: Sign("?", "?", Text("unknown", "未知"), "dim"),
    Verdict.NOT_APPLICABLE: Sign("–", "-", Text("not applicable", "不适用"), "dim"),
    Verdict.TIMED_OUT: Sign("◷", "~", Text("timed out", "超时"), "warn"),
    Verdict.PROBE_ERROR: Sign("!", "E", Text("probe error", "探针出错"), "warn"),
}

STANDINGS: dict[Standing, Sign] = {
    Standing.CONFIRMED: Sign("✗", "x", Text("confirmed", "已确认"), "bad"),
    Standing.POSSIBLE: Sign("?", "?", Text("possible", "可能"), "warn"),
    Standing.RULED_OUT: Sign("–", "-", Text("ruled out", "已排除"), "dim"),
}

MARKS: dict[Mark, Sign] = {
    Mark.DONE: Sign("✓", "+", Text("done", "已答"), "good"),
    Mark.CURRENT: Sign("▶", ">", Text("here", "当前"), "accent"),
    Mark.STALE: Sign("↺", "~", Text("stale", "过时"), "warn"),
    Mark.RULED_OUT: Sign("–", "-", Text("ruled out", "已排除"), "dim"),
    Mark.UNKNOWN: Sign("?", "?", Text("unknown", "未知"), "warn"),
    Mark.AHEAD: Sign("·", ".", Text("ahead", "待定"), "dim"),
}


def wants_ascii() -> bool:
    """Return whether the terminal should get ASCII signs only.

    It is dumb, its encoding cannot show others, or it is the Linux console, whose font lacks most of them.
    """
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return os.environ.get("TERM") in ("dumb", "linux") or "utf" not in encoding


def ellipsis(*, ascii_only: bool) -> str:
    """Return the sign for what was cut off."""
    return "..." if ascii_only else CUT


def as_cut(text: str, *, ascii_only: bool) -> str:
    """Return text that `sanitise` may have cut, its cut end in the signs in use."""
    return text[: -len(CUT)] + ellipsis(ascii_only=True) if ascii_only and text.endswith(CUT) else text

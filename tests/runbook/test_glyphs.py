"""Tests of runbook.glyphs: a status is told by its sign and its word, never by colour alone."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from runbook.finding import Verdict
from runbook.glyphs import MARKS, STANDINGS, VERDICTS, Sign, as_cut, ellipsis
from runbook.text import sanitise
from runbook.triage import Standing
from runbook.walk import Mark

SETS: list[tuple[Mapping[Any, Sign], type[Enum]]] = [(VERDICTS, Verdict), (STANDINGS, Standing), (MARKS, Mark)]


@pytest.mark.parametrize(("signs", "kind"), SETS, ids=["verdicts", "standings", "marks"])
def test_every_status_has_its_own_sign_and_word(signs: Mapping[Any, Sign], kind: type[Enum]) -> None:
    """Within one set no two statuses share a glyph, an ASCII mark or a word in either language."""
    assert set(signs) == set(kind)
    for part in ("glyph", "mark"):
        assert len({getattr(sign, part) for sign in signs.values()}) == len(signs)
    assert len({sign.words.en for sign in signs.values()}) == len(signs)
    assert len({sign.words.zh for sign in signs.values()}) == len(signs)


@pytest.mark.parametrize("sign", [sign for signs, _ in SETS for sign in signs.values()], ids=lambda s: s.words.en)
def test_signs_take_one_column(sign: Sign) -> None:
    """Glyphs are one column wide in every terminal, no emoji; ASCII marks are ASCII."""
    assert len(sign.glyph) == len(sign.mark) == 1
    assert sign.mark.isascii()
    assert unicodedata.east_asian_width(sign.glyph) in ("N", "Na", "A")
    assert ord(sign.glyph) < 0x1F000
    assert sign.draw(ascii_only=True) == sign.mark
    assert sign.draw(ascii_only=False) == sign.glyph


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"PYTHONIOENCODING": "utf-8", "TERM": "xterm"}, "False"),
        ({"PYTHONIOENCODING": "utf-8", "TERM": "dumb"}, "True"),
        ({"PYTHONIOENCODING": "utf-8", "TERM": "linux"}, "True"),
        ({"PYTHONIOENCODING": "latin-1", "TERM": "xterm"}, "True"),
    ],
)
def test_terminals_that_cannot_draw_glyphs_get_ascii(environment: dict[str, str], expected: str) -> None:
    """A dumb terminal, the Linux console and one whose encoding is not UTF-8 get the ASCII set."""
    code = "from runbook.glyphs import wants_ascii; print(wants_ascii())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_what_was_cut_ends_in_the_signs_of_the_terminal() -> None:
    """The end of a cut text is one character of the Unicode set or three of ASCII; an ellipsis inside stays."""
    cut = sanitise("a long … line", 9)
    assert cut == "a long ……"
    assert as_cut(cut, ascii_only=False) == cut
    assert as_cut(cut, ascii_only=True) == "a long …..."
    assert as_cut("whole", ascii_only=True) == "whole"
    assert ellipsis(ascii_only=True).isascii()

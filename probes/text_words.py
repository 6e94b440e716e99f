"""Finds words that make no sentences: stutters, token salad, English words in an order that English does not have.

Each test gets one piece of a response. Invariant: what other evidence could explain (another language, a list, a
program) is asked for before words are called salad, and every expression takes time linear in the length of its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

from probes.thresholds import text as limit
from runbook.text import Text

_CASED = re.compile(r"[A-Za-zÀ-ɏḀ-ỿͰ-ӿ]+(?:['’][A-Za-zÀ-ɏ]+)*")
_CASED_ASCII = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_LETTERS = re.compile(r"[^\W\d_]+")
_LONG_ASCII = re.compile(r"[a-z]{2,}")
"""What the two give of text in ASCII, which most is: they take half as long."""
_JOINT = re.compile("[a-zß-öø-ÿа-я][A-ZА-Я]")
_BLANK = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_PREFIXED = re.compile("[a-z]{1,5}[A-Z][a-z]+")
_MARK = re.compile(r"[.,;:!?()\"\n]")
_ENGLISH = """
    the of and to a in is that it for on with as was are be this by at from or an not have has had he they we you i his
    her their its our your my but which who what when where how if then than so there can will would do does did been
    were no into about up out more some any all each other also these those one two even only
"""
FUNCTION_WORDS = frozenset(_ENGLISH.split())
_STUTTER = re.compile(r"\b([^\W\d_]+)(?=\s+\1\b)", re.IGNORECASE)
_PIECES = re.compile(r"([A-Za-z<>_]{3,20}?)\1{3,}")
_RUN = re.compile(r"[A-Za-z<>_]{12,}")
_ARTICLES = "the a an my your our their its every"
_NO_NOUNS = """
    the a an and of to is are was were be been that with as it by this from have has had at which their its your my our
    we they he she would could should must than into because if but when who them these those does did or in for on
"""
_PREPOSITIONS = "of in for with on at by from into about"
_NO_OBJECTS = "is are was were be has had will would could should must than been we they he does did of"
_MODALS = "could should must would will may can to"
_NO_VERBS = "of is are was were has had for been with from"
_ENGLISH_ONLY = frozenset(
    ("the", "of", "and", "is", "that", "with", "this", "from", "which", "would", "could", "should", "because")
)
_TWICE = "the of to and a in for with on at by from is are was an be as or"


def _wrong_order() -> dict[str, frozenset[str]]:
    """Return, for a function word, the words that cannot follow it in an English sentence.

    An article is followed by no article, preposition or verb, a preposition by no finite verb, a modal by no form of
    "be" but "be", and no such word by itself.
    """
    wrong: dict[str, set[str]] = {}
    for firsts, seconds in ((_ARTICLES, _NO_NOUNS), (_PREPOSITIONS, _NO_OBJECTS), (_MODALS, _NO_VERBS)):
        for first in firsts.split():
            wrong.setdefault(first, set()).update(seconds.split())
    for word in _TWICE.split():
        wrong.setdefault(word, set()).add(word)
    return {first: frozenset(seconds) for first, seconds in wrong.items()}


_WRONG = _wrong_order()
_ORDERED = frozenset(_WRONG).union(*_WRONG.values())


@lru_cache(maxsize=32)
def neighbours(text: str) -> tuple[tuple[str, str], ...]:
    """Return the English function words that stand side by side, with one blank between and no mark."""
    return tuple(pair for pair in pairwise(text.split(" ")) if pair[0] in _ORDERED and pair[1] in _ORDERED)


def order(pairs: Sequence[tuple[str, str]]) -> Text | None:
    """Find function words, of `neighbours`, beside words that cannot follow them.

    The pairs must hold words that only English has: "a", "he", "to" and "be" are words of other languages as well.
    """
    wrong = [(first, second) for first, second in pairs if second in _WRONG.get(first, ())]
    if len(wrong) < max(limit.ORDER_COUNT.value, limit.ORDER_SHARE.value * len(pairs)):
        return None
    english = _ENGLISH_ONLY.intersection(word for pair in pairs for word in pair)
    if len(set(wrong)) < limit.ORDER_KINDS.value or len(english) < limit.ORDER_ENGLISH.value:
        return None
    shown = " ".join(wrong[0])
    return Text(
        f"no English word order: {len(wrong)} of {len(pairs)} pairs such as {shown!r}",
        f"词序不成句：{len(pairs)} 处中有 {len(wrong)} 处如 {shown!r}",
    )


def pieces(text: str) -> Text | None:
    """Find pieces of words that follow themselves at once, again and again."""
    long = _RUN.findall(text)
    if sum(map(len, long)) < limit.LOOP_CHARACTERS.value:
        return None
    dense = sum(map(len, text.split()))
    runs = [match for match in _PIECES.finditer(" ".join(long)) if len(set(match[1])) > 1]
    covered = sum(match.end() - match.start() for match in runs)
    if covered >= limit.PIECES_SHARE.value * dense and covered >= limit.LOOP_CHARACTERS.value:
        return Text(f"stutters: {runs[0][1]!r} follows itself", f"口吃：{runs[0][1]!r} 连续重复")
    return None


def _joints(words: list[str]) -> float:
    """Return the share of words that two tokens make, as upper case after lower case shows.

    0 where all are a short prefix before a name, as Xhosa and Zulu write it (yeZizwe).
    """
    odd = [word for word in words if not (word.islower() or word.istitle()) and _JOINT.search(word)]
    return 0.0 if all(map(_PREFIXED.fullmatch, odd)) else len(odd) / len(words)


def vocabulary(text: str) -> Text | None:
    """Find words drawn from a vocabulary: hardly one twice, many glued together, no function words.

    Text of 40 words repeats some of them, and so does a program; lists of different names have nothing glued together,
    and programs' names that are glued have no blanks between them.
    """
    if text.isascii():
        long = _LONG_ASCII.findall(text.lower())
    else:
        long = [word.lower() for word in _LETTERS.findall(text) if len(word) > 1]
    if len(long) < limit.DRAWN_WORDS.value:
        return None
    distinct = len(set(long)) / len(long)
    if distinct < limit.DRAWN_DISTINCT.value:
        return None
    words = _LETTERS.findall(text)
    joints = _joints(words)
    blanks = len(_BLANK.findall(text)) / len(words)
    function = sum(word in FUNCTION_WORDS for word in long) / len(long)
    if (
        not limit.DRAWN_JOINTS.value <= joints <= limit.DRAWN_JOINTS_MOST.value
        or blanks < limit.DRAWN_BLANKS.value
        or function > limit.DRAWN_FUNCTION_WORDS.value
    ):
        return None
    return Text(
        f"token salad: {distinct:.0%} of the words occur once, {joints:.0%} glued together",
        f"词元乱拼：{distinct:.0%} 的词只出现一次，{joints:.0%} 的词粘连",
    )


def sentences(text: str) -> list[str]:
    """Return the words of a text in alphabets with case; [] where they are not nearly all there is."""
    words = (_CASED_ASCII if text.isascii() else _CASED).findall(text)
    few = len(words) < limit.SALAD_WORDS.value
    if few or sum(map(len, words)) < limit.PLAIN_SHARE.value * sum(map(len, text.split())):
        return []
    return words


def stutter(text: str, words: list[str]) -> Text | None:
    """Find a stutter over few words, or function words only. words: of `sentences`."""
    start = [word.lower() for word in words[: int(limit.STUTTER_START.value)]]
    if len(words) < limit.STUTTER_WORDS.value or len(set(start)) > limit.STUTTER_DISTINCT.value * len(start):
        return None
    marks = len(_MARK.findall(text))
    repeats = len(_STUTTER.findall(text)) / len(words)
    if repeats >= limit.STUTTER_SHARE.value and marks <= limit.STUTTER_MARKS.value * len(words):
        share = f"{repeats:.0%}"
        return Text(f"stutters: {share} of the words repeat the one before", f"口吃：{share} 的词与前一词相同")
    function_words = sum(word.lower() in FUNCTION_WORDS for word in words) / len(words)
    listed = text.count("\n") > limit.FUNCTION_LINES.value * len(words)
    if function_words >= limit.FUNCTION_WORDS_ONLY.value and not listed:
        share = f"{function_words:.0%}"
        return Text(f"{share} function words, no content", f"{share} 为虚词，没有内容")
    return None


def salad(text: str, words: list[str], language: Callable[[str], tuple[str, float]]) -> tuple[Text, bool] | None:
    """Find words that nothing joins into sentences: glued together, upper and lower case at random.

    words: of `sentences`. Returns the reason and whether it is one; False: the words are odd, other evidence decides.
    """
    if not words or _digits(text) > limit.SALAD_DIGITS.value * sum(map(len, words)):
        return None
    marks = len(_MARK.findall(text)) / len(words)
    start = [word.lower() for word in words[: int(limit.STUTTER_START.value)]]
    various = len(set(start)) >= limit.SALAD_DISTINCT.value * len(start) and sum(
        word.lower() in FUNCTION_WORDS for word in words
    ) <= limit.SALAD_FUNCTION_WORDS.value * len(words)
    joints = _joints(words)
    if joints > limit.DRAWN_JOINTS_MOST.value:
        return None
    fragments = joints >= limit.FRAGMENT_JOINTS.value and marks <= limit.FRAGMENT_MARKS.value
    if marks > limit.SALAD_MARKS.value or not (various or fragments):
        return None
    upper = sum(word[0].isupper() for word in words) / len(words)
    name, confidence = language(text)
    believed = limit.SALAD_CONFIDENCE.value if various else limit.FRAGMENT_CONFIDENCE.value
    foreign = name != "en" and confidence >= limit.FOREIGN_CONFIDENCE.value
    listed = not fragments and not limit.SALAD_UPPER_LEAST.value <= upper <= limit.SALAD_UPPER_MOST.value
    if foreign or confidence >= believed or listed:
        return None
    if joints < limit.SALAD_JOINTS.value:
        return Text("words without sentences", "词语堆砌"), False
    share = f"{max(joints, sum(len(word) >= limit.LONG_WORD.value for word in words) / len(words)):.0%}"
    return (
        Text(f"token salad: no sentences, {share} of the words glued together", f"词元乱拼：不成句，{share} 的词粘连"),
        True,
    )


def _digits(text: str) -> int:
    return sum(map(text.count, "0123456789")) if text.isascii() else sum(map(str.isdigit, text))

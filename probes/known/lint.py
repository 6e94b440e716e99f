"""Checks the library: what an entry says of itself must be true. Faults are sentences that begin with file and id.

Slow expressions are found by their shape, not by trying: a repeat without a narrow limit inside another one makes the
time grow with the square of a line and worse, and so do several in a row and one that an alternative begins with. A
negative sample counts only where it is a near miss: one without any literal cannot match whatever the pattern is.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from probes.known import build
from probes.known.model import Entry, Role, Shelf
from probes.readers.logscan import Signature

WIDE = 400
"""Repeats up to this many times are narrow: what they cost is bounded by it."""
WIDE_IN_A_ROW = 4
"""Repeats without a narrow limit that one alternative may hold; those of digits end at once at anything else."""
ASKED_FOR_ALL = "known.in_log"
"""The probe that shows an entry's own words, in both languages, and whose answers are causes."""
_LEAST_LITERAL = 4
_WORD = re.compile(rb"\w+")


def lint(shelves: Mapping[str, Shelf], causes: Collection[str], probes: Collection[str]) -> list[str]:
    """Return what is wrong with these files. causes: the vocabulary. probes: ids of all probes."""
    told = [f"{name}: no probe is called {one}" for name, one in _strangers(shelves, probes)]
    built: dict[str, tuple[Entry, Signature]] = {}
    for name, shelf in shelves.items():
        for entry in shelf.signatures:
            at = f"{name}: {entry.id}:"
            if entry.id in built:
                told.append(f"{at} the id is taken")
                continue
            try:
                each = build(entry, shelf.parts)
                re.compile(each.expression)
            except (KeyError, re.error) as error:
                told.append(f"{at} no expression: {error}")
                continue
            built[entry.id] = entry, each
            told += [f"{at} {fault}" for fault in (*_words(entry, shelf, causes), *_samples(entry, each), *_slow(each))]
    return told + [f"{one}: {fault}" for one, fault in _disagreeing(built)]


def _strangers(shelves: Mapping[str, Shelf], probes: Collection[str]) -> Iterator[tuple[str, str]]:
    for name, shelf in shelves.items():
        yield from ((name, one) for one in shelf.asked if one not in probes)


def _words(entry: Entry, shelf: Shelf, causes: Collection[str]) -> Iterator[str]:
    """Yield what an entry fails to say."""
    if entry.cause and entry.cause not in causes:
        yield f"no cause is called {entry.cause}"
    if not entry.means.en or not entry.proves_not:
        yield "it must say what it means and what it does not prove"
    if not entry.source or not all(one.project and one.place for one in entry.source):
        yield "it has no source"
    if not entry.positive or not entry.negative:
        yield "it needs a positive and a negative sample"
    if ASKED_FOR_ALL in shelf.asked:
        if not entry.means.zh:
            yield "it has no words in Chinese"
        if (entry.role is Role.ROOT) != bool(entry.cause):
            yield "a root names a cause, and nothing else here does"


def _samples(entry: Entry, each: Signature) -> Iterator[str]:
    """Yield the samples that an entry does not treat as it must, by its expression and by its literals."""
    for text in entry.positive:
        raw = text.encode()
        if not each.pattern.search(raw):
            yield f"its expression does not match its sample {text!r}"
        elif not any(literal in raw for literal in each.literals):
            yield f"none of its literals is in its sample {text!r}"
    for text in entry.negative:
        raw = text.encode()
        if each.pattern.search(raw) and any(literal in raw for literal in each.literals):
            yield f"it matches what it must not: {text!r}"
    if entry.negative and not any(_near(each, text.encode()) for text in entry.negative):
        yield "no negative sample is a near miss: it holds a literal, or most words of one that is a match by itself"
    if any(len(literal) < _LEAST_LITERAL for literal in each.literals):
        yield f"a literal is shorter than {_LEAST_LITERAL} bytes"


def _near(each: Signature, raw: bytes) -> bool:
    """Whether a negative sample tries the pattern; literals that are a match by themselves cannot stand in one."""
    open_ones = [literal for literal in each.literals if not each.pattern.search(literal)]
    if open_ones:
        return any(literal in raw for literal in open_ones)
    words = set(_WORD.findall(raw))
    return any(2 * len(own & words) > len(own) for literal in each.literals if (own := set(_WORD.findall(literal))))


def _disagreeing(built: Mapping[str, tuple[Entry, Signature]]) -> Iterator[tuple[str, str]]:
    """Yield samples of one cause that an entry of another cause matches too, where `over` does not order them."""
    for name, (entry, _) in built.items():
        yield from ((name, f"it stands over {one}, which is no entry") for one in entry.over if one not in built)
        if not entry.cause:
            continue
        for other, (rival, each) in built.items():
            if not rival.cause or rival.cause == entry.cause or other in entry.over or name in rival.over:
                continue
            for text in entry.positive:
                if each.pattern.search(text.encode()):
                    yield name, f"its sample {text!r} is matched by {other} of another cause, and none stands over"


def _slow(each: Signature) -> Iterator[str]:
    """Yield how an expression may take long."""
    # the parser of `re` has no public name; it was a module of its own before Python 3.11
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    parsed = parser.parse(each.expression)
    most, nested = _wide(parsed, inside=False)
    if _opens(parsed):
        yield "it begins with a wide repeat"
    if nested:
        yield "a wide repeat stands inside a wide repeat"
    if most > WIDE_IN_A_ROW:
        yield f"{most} wide repeats stand in a row"


def _opens(parsed: Any) -> bool:
    """Whether a wide repeat stands before anything that is written out: each place of a long run tries all of it."""
    for operation, argument in parsed:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, body = argument
            found, ended = int(most) > WIDE or _opens(body), bool(least)
        elif name in ("BRANCH", "SUBPATTERN"):
            bodies = argument[1] if name == "BRANCH" else [argument[-1]]
            found, ended = any(_opens(body) for body in bodies), True
        else:
            found = name == "ASSERT" and argument[0] > 0 and _opens(argument[1])
            ended = name == "LITERAL" or (name == "AT" and "BEGINNING" in str(argument))
        if found or ended:
            return found
    return False


def _wide(parsed: Any, *, inside: bool) -> tuple[int, bool]:
    """Return how many wide repeats follow each other in the worst alternative, and whether one is inside another."""
    count, nested = 0, False
    for operation, argument in parsed:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = argument
            wide = int(most) > WIDE and "CATEGORY_DIGIT" not in str(body)
            below, deeper = _wide(body, inside=inside or wide)
            count += below + wide
            nested = nested or deeper or (wide and inside)
        elif name == "BRANCH":
            branches = [_wide(body, inside=inside) for body in argument[1]]
            count += max(number for number, _ in branches)
            nested = nested or any(deeper for _, deeper in branches)
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT", "ATOMIC_GROUP"):
            body = argument if name == "ATOMIC_GROUP" else argument[-1]
            below, deeper = _wide(body, inside=inside)
            count, nested = count + below, nested or deeper
    return count, nested

"""Prints the library as a page for people: every signature with its cause, meaning, limits, source and a sample.

Invariant: "counts only" is said where a probe that asks the entry looks at that limit (`_CHECKED`). Limits of other
entries are there for the reader and are printed as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from probes.known.model import Entry, Shelf, Source

_HEAD = """# Known failures

Generated from `probes/known/*.yaml` by `make docs`; how an entry is written is told in
[decisions/0110-signatures.md](decisions/0110-signatures.md). A *root* is a fault itself, a *cascade* is printed after
others, too, a *confirmation* counts only beside something else, and a *benign* line alarms people and is harmless.

"""


_CHECKED = {
    "where": ("known.in_log",),
    "flags": ("known.in_log", "debug_mode.in_log"),
    "without": ("known.in_log",),
}
"""Which probes hold an entry to a limit; to its phase none does."""


def document(shelves: Mapping[str, Shelf]) -> str:
    """Return the page, in Markdown."""
    return _HEAD + "\n".join(line for name, shelf in shelves.items() for line in _shelf(name, shelf))


def _shelf(name: str, shelf: Shelf) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{shelf.about} Asked by {', '.join(f'`{one}`' for one in shelf.asked)}.\n"
    for entry in shelf.signatures:
        yield from _entry(entry, shelf.asked)


def _entry(entry: Entry, asked: Sequence[str]) -> Iterator[str]:
    speaks = f"{entry.role.value}, `{entry.cause}`" if entry.cause else entry.role.value
    means = entry.means.en.rstrip(".")
    yield f"### {entry.id}\n"
    yield f"*{speaks}.* {means}.\n"
    yield f"- Does not prove: {entry.proves_not}"
    limits = [*_limits(entry)]
    checked = [words for field, words in limits if not {*_CHECKED.get(field, ())}.isdisjoint(asked)]
    if checked:
        yield f"- Counts only {'; '.join(checked)}."
    if told := [words for _, words in limits if words not in checked]:
        yield f"- As a rule, which no probe checks: {'; '.join(told)}."
    if entry.over:
        yield f"- Says more than {', '.join(f'`{one}`' for one in entry.over)}, where both match."
    yield f"- Source: {'; '.join(_source(one) for one in entry.source)}"
    yield f"- Sample: {_code(entry.positive[0])}"
    yield f"- Not: {_code(entry.negative[0])}\n"


def _limits(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield each limit as the field that holds it, and words."""
    if entry.where:
        yield "where", f"in: {', '.join(one.value for one in entry.where)}, or where the log does not name the process"
    if entry.phase:
        yield "phase", f"in the phase: {entry.phase}"
    if entry.flags:
        yield "flags", f"with {' or '.join(f'`--{one}`' for one in entry.flags)}"
    if entry.without:
        yield "without", f"without {', '.join(f'`--{one}`' for one in entry.without)}"


def _source(source: Source) -> str:
    versions = f" ({source.versions})" if source.versions else ""
    return f"{source.project}, {source.place}{versions}"


def _code(text: str) -> str:
    """Return a text as code; the fence is longer than any run of backticks in it."""
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"

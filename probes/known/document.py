"""Prints the library as a page for people: every signature with its cause, meaning, limits, source and a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from probes.known.model import Entry, Shelf, Source

_HEAD = """# Known failures

Generated from `probes/known/*.yaml` by `make docs`; how an entry is written is told in
[decisions/0110-signatures.md](decisions/0110-signatures.md). A *root* is a fault itself, a *cascade* is printed after
others, too, a *confirmation* counts only beside something else, and a *benign* line alarms people and is harmless.

"""


def document(shelves: Mapping[str, Shelf]) -> str:
    """Return the page, in Markdown."""
    return _HEAD + "\n".join(line for name, shelf in shelves.items() for line in _shelf(name, shelf))


def _shelf(name: str, shelf: Shelf) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{shelf.about} Asked by {', '.join(f'`{one}`' for one in shelf.asked)}.\n"
    for entry in shelf.signatures:
        yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[str]:
    speaks = f"{entry.role.value}, `{entry.cause}`" if entry.cause else entry.role.value
    means = entry.means.en.rstrip(".")
    yield f"### {entry.id}\n"
    yield f"*{speaks}.* {means}.\n"
    yield f"- Does not prove: {entry.proves_not}"
    limits = [*_limits(entry)]
    if limits:
        yield f"- Counts only {'; '.join(limits)}."
    yield f"- Source: {'; '.join(_source(one) for one in entry.source)}"
    yield f"- Sample: {_code(entry.positive[0])}"
    yield f"- Not: {_code(entry.negative[0])}\n"


def _limits(entry: Entry) -> Iterator[str]:
    if entry.where:
        yield f"in: {', '.join(one.value for one in entry.where)}"
    if entry.phase:
        yield f"in the phase: {entry.phase}"
    if entry.flags:
        yield f"with {' or '.join(f'`--{one}`' for one in entry.flags)}"
    if entry.without:
        yield f"without {', '.join(f'`--{one}`' for one in entry.without)}"
    if entry.over:
        yield f"before {', '.join(f'`{one}`' for one in entry.over)}"


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

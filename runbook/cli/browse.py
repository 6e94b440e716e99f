"""`slime-runbook browse RUN`: the pages of a browser as text or JSON, the same as on the screen."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import msgspec

from runbook.browse import Ask, Browser, Page, Reading, Sheet, open_page
from runbook.browse_rows import Filter, chosen, read_filter
from runbook.catalog import load_browsers
from runbook.cli import desks, options
from runbook.errors import EvidenceError, RunbookError, UsageError
from runbook.evidence import Evidence
from runbook.exits import ExitCode
from runbook.runner import Runner
from runbook.session.desk import Desk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: one option for each level of each browser."""
    options.add_evidence(parser)
    options.add_language(parser)
    options.add_signs(parser)
    parser.add_argument("--browser", metavar="ID", help="which browser, where the evidence suits several")
    parser.add_argument("--filter", default="", metavar="WORDS", help="only rows for which this holds: 'reward>0 foo'")
    parser.add_argument(
        "--sort", default="", metavar="COLUMN", help="order of the rows; --sort=-COLUMN: the largest first"
    )
    parser.add_argument("--part", type=int, default=0, metavar="N", help="which part of a long text, from 0")
    parser.add_argument("--json", action="store_true", help="print the page as JSON")
    group = parser.add_argument_group("which page, by its id on the page before")
    words = dict.fromkeys(depth.word for browser in load_browsers().values() for depth in browser.depths)
    for word in words:
        group.add_argument(f"--{word}", dest=f"place_{word}", metavar="ID")


def run(parsed: argparse.Namespace) -> int:
    """Open the page and print it."""
    pairs = options.given(parsed)
    if not parsed.run and not pairs:
        parsed.run = "."
    desk = Desk(options.probe_catalog(parsed.lang), language=parsed.lang)
    try:
        desks.collect(desk, options.run_root(parsed), pairs)
        evidence = desk.state.evidence()
        browser = _browser(desk.catalog.browsers, evidence, parsed.browser)
        with _opener(browser, evidence) as opener:
            place = _place(parsed, browser, opener)
            page = opener.page(Ask(place, part=parsed.part))
            filter, found = Filter(), None
            if isinstance(page, Sheet):
                filter = read_filter(parsed.filter, page)
                if parsed.sort and page.column(parsed.sort.lstrip("-")) < 0:
                    known = ", ".join(column.id for column in page.columns)
                    raise UsageError(f"--sort {parsed.sort}: there is no such column", f"columns: {known}")
                if filter.words and page.finds:
                    matching = opener.page(Ask(place, find=filter.find))
                    found = frozenset(line.id for line in matching.lines) if isinstance(matching, Sheet) else None
    finally:
        desk.close()
    order = parsed.sort or (page.order if isinstance(page, Sheet) else "")
    if parsed.json:
        _print_json(browser, place, page, filter, order, found)
    else:
        from runbook.browse_plain import write_page
        from runbook.plain import Plain

        write_page(Plain(parsed.lang, ascii_only=parsed.ascii), page, filter, order, found)
    return ExitCode.CLEAR


def _browser(browsers: dict[str, Browser], evidence: Evidence, wanted: str | None) -> Browser:
    """Return the browser that was asked for, else the first whose evidence is there."""
    if wanted is not None and wanted not in browsers:
        raise UsageError(f"unknown browser {wanted!r}", f"browsers: {', '.join(browsers) or '-'}")
    able = [browser for browser in browsers.values() if not browser.lacks(evidence)]
    if wanted is not None:
        able = [browser for browser in able if browser.id == wanted]
    if not able:
        asked = [browsers[wanted]] if wanted is not None else list(browsers.values())
        needs = dict.fromkeys(need for browser in asked for need in browser.needs)
        flags = ", ".join(" or ".join(f"--{slot.replace('_', '-')} PATH" for slot in need.split("|")) for need in needs)
        raise EvidenceError("nothing to browse in this evidence", f"give {flags}" if flags else "")
    return able[0]


def _place(parsed: argparse.Namespace, browser: Browser, opener: _Opener) -> tuple[str, ...]:
    """Return the place that the options name; a level that was left out is taken where there is only one row."""
    named = [getattr(parsed, f"place_{depth.word}") for depth in browser.depths]
    while named and named[-1] is None:
        named.pop()
    place: tuple[str, ...] = ()
    for depth, id in zip(browser.depths, named, strict=False):
        if id is None:
            page = opener.page(Ask(place))
            if not isinstance(page, Sheet) or len(page.lines) != 1:
                raise UsageError(
                    f"--{depth.word} is missing", f"give --{depth.word} ID; without it, its ids are listed"
                )
            id = page.lines[0].id  # noqa: PLW2901  # the only one there is
        place = (*place, id)
    return place


class _Opener:
    """Opens pages in worker processes and waits until they are whole."""

    def __init__(self, browser: Browser, evidence: Evidence, runner: Runner, keep: str) -> None:
        self._browser, self._evidence, self._runner, self._keep = browser, evidence, runner, keep

    def page(self, ask: Ask) -> Page:
        """Return a page; raises what kept it from being made."""
        page = self._once(msgspec.structs.replace(ask, keep=self._keep))
        done = -1.0
        while isinstance(page, Sheet) and done < page.done < 1:
            done = page.done
            page = self._once(msgspec.structs.replace(ask, keep=self._keep, again=True))
        return page

    def _once(self, ask: Ask) -> Page:
        over, answers = threading.Event(), list[Any]()

        def heard(answer: Any) -> None:
            answers.append(answer)
            over.set()

        arguments = (self._browser.open.__module__, self._browser.id, self._evidence, ask)
        self._runner.call(open_page, arguments, heard, self._browser.deadline)
        over.wait()
        answer = answers[0]
        if isinstance(answer, Sheet | Reading):
            return answer
        if isinstance(answer, RunbookError):
            raise answer
        raise EvidenceError(f"the page could not be made: {type(answer).__name__}: {answer}", "try another page")


@contextlib.contextmanager
def _opener(browser: Browser, evidence: Evidence) -> Iterator[_Opener]:
    keep = tempfile.mkdtemp(prefix="runbook-browse-")
    try:
        with Runner(("runbook.preload",)) as runner:
            yield _Opener(browser, evidence, runner, keep)
    finally:
        shutil.rmtree(keep, ignore_errors=True)


def _print_json(
    browser: Browser, place: tuple[str, ...], page: Page, filter: Filter, order: str, found: frozenset[str] | None
) -> None:
    if isinstance(page, Sheet):
        lines = tuple(page.lines[at] for at in chosen(page, filter, order, found))
        page = msgspec.structs.replace(page, lines=lines)
    encoded = msgspec.json.encode({"schema": 1, "browser": browser.id, "place": place, "page": page})
    sys.stdout.buffer.write(msgspec.json.format(encoded, indent=1) + b"\n")

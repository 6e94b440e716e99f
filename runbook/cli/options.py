"""Options that several commands share, and how they open a desk."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

from runbook.catalog import Catalog, load_catalog, load_slots
from runbook.errors import RunbookError
from runbook.exits import ExitCode
from runbook.session.desk import DISCOVERY_DEADLINE, Desk
from runbook.session.journal import Journal
from runbook.session.store import sessions_dir
from runbook.text import Text, sanitise
from runbook.triage import Report


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads flows or draws words."""
    parser.add_argument("--flows", action="append", default=[], metavar="DIR", help="a folder with further flows")
    parser.add_argument("--lang", choices=("en", "zh"), default=default_language(), help="language of the words")
    parser.add_argument("--ascii", action="store_true", help="no character outside ASCII in signs and rules")


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where sessions are kept."""
    parser.add_argument("--sessions", metavar="DIR", help="where sessions are kept (default: the XDG state folder)")


def add_evidence(parser: argparse.ArgumentParser, *, run_required: bool = True) -> None:
    """Add RUN and one repeatable option for each slot."""
    nargs = None if run_required else "?"
    parser.add_argument("run", nargs=nargs, metavar="RUN", help="folder or file of the run")
    add_slots(parser)


def add_slots(parser: argparse.ArgumentParser) -> None:
    """Add one repeatable option for each slot."""
    group = parser.add_argument_group("evidence by slot, repeatable")
    for name, slot in load_slots()[0].items():
        group.add_argument(
            f"--{name.replace('_', '-')}",
            dest=f"slot_{name}",
            action="append",
            default=[],
            metavar="URL" if slot.holds == "url" else "PATH",
            help=slot.title.en,
        )


def given(parsed: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """Return the evidence given by slot, as pairs of slot and absolute path or URL."""
    pairs = []
    for key, values in vars(parsed).items():
        if key.startswith("slot_"):
            pairs += [(key.removeprefix("slot_"), v if "://" in v else os.path.abspath(v)) for v in values]
    return tuple(pairs)


def default_language() -> str:
    """Return "zh" when the locale asks for Chinese, else "en"."""
    chosen = next((os.environ[v] for v in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(v)), "")
    return "zh" if chosen.startswith("zh") else "en"


def catalog(parsed: argparse.Namespace) -> Catalog:
    """Return the catalog with the flow folders of the command line; broken probe modules are told on stderr."""
    loaded = load_catalog(parsed.flows)
    for module, reason in loaded.broken:
        warn(Text(f"probes of {module} are missing: {reason}", f"模块 {module} 的探针缺失：{reason}"), parsed.lang)
    return loaded


def new_session(loaded: Catalog, sessions: str | None, language: str, now: float) -> Desk:
    """Return a desk over a new session on disk."""
    journal = Journal.create(sessions_dir(sessions), now)
    return Desk(loaded, journal, session_id=journal.id, language=language)


def run_root(parsed: argparse.Namespace) -> str:
    """Return RUN as an absolute path, "" when evidence is given by slot only."""
    return os.path.abspath(parsed.run) if parsed.run else ""


def collect(desk: Desk, root: str, pairs: tuple[tuple[str, str], ...], run: str = "") -> None:
    """Take the evidence and wait for it. Raises the RunbookError of the discovery; notes go to stderr."""
    over = threading.Event()
    heard: list[Any] = []

    def listen(kind: str, payload: Any) -> None:
        if kind in ("discovered", "error"):
            heard.append(payload)
            over.set()

    desk.listen(listen)
    desk.discover(root, pairs, run)
    if not over.wait(DISCOVERY_DEADLINE + 5):
        raise RunbookError(f"{root}: looking for evidence took too long", "give files by slot")
    if isinstance(heard[0], RunbookError):
        raise heard[0]
    for note in heard[0]:
        warn(note, desk.language)


def ask_all(desk: Desk, probes: Iterable[str], run: str = "") -> None:
    """Ask every probe and wait until all have answered. Raises the error that kept a finding from being written."""
    waiting = set(probes)
    over = threading.Condition()
    errors: list[RunbookError] = []

    def listen(kind: str, payload: Any) -> None:
        finding = getattr(getattr(payload, "event", None), "finding", None)
        with over:
            if kind == "error":
                errors.append(payload)
            elif kind == "record" and finding is not None:
                waiting.discard(finding.probe)
            over.notify_all()

    desk.listen(listen)
    for probe in tuple(waiting):
        desk.ask(probe, run)
    with over:
        while waiting and not errors:
            over.wait(1.0)
    if errors:
        raise errors[0]


def exit_code(report: Report) -> ExitCode:
    """Return the exit code of a triage.

    The main questions are the start questions of the flows that evidence could answer: all is clear when at least
    one was answered, nothing is confirmed, and every flow that was asked ended in a clear leaf by evidence alone.
    """
    if report.confirmed:
        return ExitCode.CONFIRMED
    ended = {flow for flow, _ in report.clear}
    return ExitCode.CLEAR if report.asked and all(flow in ended for flow in report.asked) else ExitCode.OPEN


def warn(words: Text, language: str) -> None:
    """Say something on stderr."""
    print(f"slime-runbook: {sanitise(words.say(language))}", file=sys.stderr)

"""Options that several commands share. Imports no more than the catalog, so that listing and linting start quickly.

A command declares only the options that it reads (a test holds every command to that).
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from runbook.catalog import Catalog, load_catalog, load_probes, load_slots
from runbook.errors import EvidenceError, FlowError, UsageError
from runbook.evidence import placed
from runbook.session.people import WHO, named
from runbook.text import Text, sanitise


def add_flows(parser: argparse.ArgumentParser) -> None:
    """Add the option of a command that reads flows."""
    parser.add_argument("--flows", action="append", default=[], metavar="DIR", help="a folder with further flows")


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add the option of a command that writes words."""
    parser.add_argument("--lang", choices=("en", "zh"), default=default_language(), help="language of the words")


def add_signs(parser: argparse.ArgumentParser) -> None:
    """Add the option of a command that draws signs and rules."""
    parser.add_argument("--ascii", action="store_true", help="no character outside ASCII in signs and rules")


def add_drawn_flows(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that reads flows and draws them in words."""
    add_flows(parser)
    add_language(parser)
    add_signs(parser)


def add_sessions(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where sessions are kept."""
    parser.add_argument(
        "--sessions",
        metavar="DIR",
        help="where sessions are kept (default: SLIME_RUNBOOK_SESSIONS, else the XDG state folder)",
    )


def add_who(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the person, for accounts that several people share."""
    parser.add_argument(
        "--who", metavar="NAME", help="who is at work, where the account is shared (default: SLIME_RUNBOOK_WHO, login)"
    )


def take_who(parsed: argparse.Namespace) -> None:
    """Record what is done under the name that was given. Raises UsageError when nothing of it can be drawn."""
    if parsed.who is None:
        return
    name = named(parsed.who)
    if not name:
        raise UsageError("--who: this is no name", "give letters")
    os.environ[WHO] = name


def check_node(loaded: Catalog, flow: str, node: str) -> None:
    """Raise UsageError unless `node` is one of `flow`; both may be "" for the whole session."""
    if node and not flow:
        raise UsageError(f"--node {node}: of which flow?", "give --flow as well")
    if flow and flow not in loaded.flows:
        raise UsageError(f"unknown flow {flow!r}", f"flows: {', '.join(loaded.flows)}")
    if node and node not in loaded.flows[flow].nodes:
        raise UsageError(f"flow {flow}: there is no node {node!r}", f"nodes: {', '.join(loaded.flows[flow].nodes)}")


def add_heavy(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks the probes that read bulk data as well."""
    parser.add_argument("--heavy", action="store_true", help="ask also the probes that read whole checkpoints")


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """Add RUN, which may be left out, and one repeatable option for each slot."""
    parser.add_argument("run", nargs="?", metavar="RUN", help="folder or file of the run")
    add_slots(parser)


def add_slots(parser: argparse.ArgumentParser) -> None:
    """Add one repeatable option for each slot."""
    group = parser.add_argument_group("evidence by slot, repeatable")
    for name, slot in load_slots()[0].items():
        group.add_argument(
            slot.flag,
            dest=f"slot_{name}",
            action="append",
            default=[],
            metavar="ADDRESS" if slot.holds == "url" else "PATH",
            help=slot.title.en,
        )


def given(parsed: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """Return the evidence given by slot, as pairs of slot and absolute path or address. Raises EvidenceError."""
    slots = load_slots()[0]
    return tuple(
        (name, placed(slot, words)) for name, slot in slots.items() for words in getattr(parsed, f"slot_{name}", ())
    )


def default_language() -> str:
    """Return "zh" when the locale asks for Chinese, else "en"."""
    chosen = next((os.environ[v] for v in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(v)), "")
    return "zh" if chosen.startswith("zh") else "en"


def catalog(flows: list[str], language: str) -> Catalog:
    """Return the catalog with the flow folders of the command line; what had to be left out is told on stderr.

    Raises FlowError when it is of one of those folders, for those were asked for by name.
    """
    return _told(load_catalog(flows), language)


def probe_catalog(language: str) -> Catalog:
    """Return the catalog without flows, for commands that need none; what had to be left out is told on stderr."""
    return _told(load_probes(), language)


def _told(loaded: Catalog, language: str) -> Catalog:
    reasons: dict[str, list[str]] = {}
    for one in loaded.broken:
        if one.given:
            raise FlowError(one.reason, "correct it, or leave out the folder given with --flows")
        reasons.setdefault(one.reason, []).append(one.source)
    for reason, sources in reasons.items():
        what = reason if reason.startswith(sources[0]) else f"{', '.join(sources)}: {reason}"
        warn(Text(f"left out: {what}", f"已略去：{what}"), language)
    return loaded


def run_root(parsed: argparse.Namespace) -> str:
    """Return RUN as an absolute path, "" when evidence is given by slot only. Raises EvidenceError for a bundle."""
    return run_at(parsed.run) if parsed.run else ""


def run_at(path: str) -> str:
    """Return a path that was given as RUN as an absolute one. Raises EvidenceError for a bundle, which is no run."""
    from runbook.bundle.archive import is_bundle

    if is_bundle(path):
        hint = f"open it with slime-runbook open {shlex.quote(path)}"
        raise EvidenceError(f"{path}: this is a bundle: what was cited of a run, without its bulk data", hint)
    return os.path.abspath(path)


def warn(words: Text, language: str) -> None:
    """Say something on stderr."""
    print(f"slime-runbook: {sanitise(words.say(language))}", file=sys.stderr)

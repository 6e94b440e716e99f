"""Options that several commands share. Imports no more than the catalog, so that listing and linting start quickly."""

from __future__ import annotations

import argparse
import os
import sys

from runbook.catalog import Catalog, load_catalog, load_slots
from runbook.text import Text, sanitise


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
    reasons: dict[str, list[str]] = {}
    for module, reason in loaded.broken:
        reasons.setdefault(reason, []).append(module)
    for reason, modules in reasons.items():
        names = ", ".join(modules)
        warn(Text(f"probes of {names} are missing: {reason}", f"模块 {names} 的探针缺失：{reason}"), parsed.lang)
    return loaded


def run_root(parsed: argparse.Namespace) -> str:
    """Return RUN as an absolute path, "" when evidence is given by slot only."""
    return os.path.abspath(parsed.run) if parsed.run else ""


def warn(words: Text, language: str) -> None:
    """Say something on stderr."""
    print(f"slime-runbook: {sanitise(words.say(language))}", file=sys.stderr)

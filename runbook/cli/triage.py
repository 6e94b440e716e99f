"""`slime-runbook triage RUN`: every check at once, ranked causes, an exit code. Leaves nothing behind.

With `--follow` it first tells what is seen at once, then goes on after the triage: what grew is asked again and what
changed is told, until Ctrl-C. The exit code is then that of what is known last; before the triage is done Ctrl-C gives
130, as everywhere.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time

from runbook.cli import desks, options
from runbook.cli import seen as ledger
from runbook.errors import UsageError
from runbook.experiments import next_experiment
from runbook.plain import Plain
from runbook.plain_experiments import following
from runbook.session.desk import Desk
from runbook.session.store import sessions_dir
from runbook.triage import exit_code
from runbook.watch import Change


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_evidence(parser)
    options.add_drawn_flows(parser)
    options.add_heavy(parser)
    options.add_sessions(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the answer as JSON (docs/triage.schema.json); with --follow one a line",
    )
    parser.add_argument("--follow", action="store_true", help="go on watching, and tell what changes, until Ctrl-C")
    parser.add_argument(
        "--until-end",
        action="store_true",
        help="with --follow: leave when the run says that it ended and nothing grows",
    )


def run(parsed: argparse.Namespace) -> int:
    """Triage and print; return the exit code."""
    if parsed.until_end and not parsed.follow:
        raise UsageError("--until-end goes with --follow", "give both, or neither")
    pairs = options.given(parsed)
    if not parsed.run and not pairs:
        parsed.run = "."
    desk = Desk(options.catalog(parsed.flows, parsed.lang), language=parsed.lang)
    try:
        root = options.run_root(parsed)
        desk.begin(root)
        desks.collect(desk, root, pairs)
        if parsed.follow:
            _follow(desk, parsed, root, pairs)
        else:
            desks.ask_all(desk, desk.triage_probes(heavy=parsed.heavy))
            _write(desk, parsed)
        return exit_code(desk.report())
    finally:
        desk.close()


def _write(desk: Desk, parsed: argparse.Namespace) -> None:
    """Print the whole triage, with what kept sessions know of its causes."""
    report = desk.report()
    seen = ledger.sightings(desk, report, sessions_dir(parsed.sessions))
    if not parsed.json:
        plain = Plain(parsed.lang, ascii_only=parsed.ascii)
        plain.triage(desk, report, ledger.words(seen, parsed.lang))
        if (chosen := next_experiment(desk.state, desk.catalog.flows, report)) is not None:
            following(plain, *chosen, desks.walk_command(desk, chosen[0].flow))
        sys.stdout.flush()
        return
    import msgspec

    from runbook.answer_json import answer_json

    titles = {name: cause.title.say(parsed.lang) for name, cause in desk.catalog.vocabulary.items()}
    encoded = msgspec.json.encode(answer_json(desk.state, report, titles, parsed.lang, seen))
    sys.stdout.buffer.write((encoded if parsed.follow else msgspec.json.format(encoded, indent=1)) + b"\n")
    sys.stdout.buffer.flush()


def _first_look(desk: Desk, parsed: argparse.Namespace) -> None:
    """Tell what is seen at once; it decides nothing, so it is no part of the JSON."""
    from runbook.cli import follow

    findings = [] if parsed.json else follow.first_look(desk)
    plain = Plain(parsed.lang, ascii_only=parsed.ascii)
    if findings:
        plain.heading(plain.say("First look, before anything is checked", "初步查看（尚未检查）"))
    for finding in findings:
        plain.finding(finding, 2)
    sys.stdout.flush()


def _follow(desk: Desk, parsed: argparse.Namespace, root: str, pairs: tuple[tuple[str, str], ...]) -> None:
    """Tell what is seen at once, triage, then watch until Ctrl-C or the end."""
    from runbook.cli import follow

    plain = Plain(parsed.lang, ascii_only=parsed.ascii)
    probes = desk.triage_probes(heavy=parsed.heavy)
    _first_look(desk, parsed)
    seen = follow.look(desk, root) or {}
    desks.ask_all(desk, probes)
    _write(desk, parsed)

    def tell(changes: tuple[Change, ...]) -> None:
        if parsed.json:
            _write(desk, parsed)
            return
        clock = time.strftime("%H:%M:%S")
        for words in follow.lines(changes, clock, parsed.lang):
            plain.line(words)
        sys.stdout.flush()

    if not parsed.json:
        plain.line(plain.say("watching; Ctrl-C ends", "持续监视中，Ctrl-C 结束"), style="dim")
        sys.stdout.flush()
    with contextlib.suppress(KeyboardInterrupt):
        follow.follow(desk, root, pairs, probes, seen, tell, until_end=parsed.until_end)

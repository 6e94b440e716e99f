"""`slime-runbook triage RUN`: every check at once, ranked causes, an exit code. Leaves nothing behind."""

from __future__ import annotations

import argparse
import sys

from runbook.cli import desks, options
from runbook.session.desk import Desk
from runbook.triage import exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    options.add_evidence(parser)
    options.add_drawn_flows(parser)
    options.add_heavy(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON (docs/triage.schema.json)")


def run(parsed: argparse.Namespace) -> int:
    """Triage and print; return the exit code."""
    pairs = options.given(parsed)
    if not parsed.run and not pairs:
        parsed.run = "."
    desk = Desk(options.catalog(parsed.flows, parsed.lang), language=parsed.lang)
    try:
        desk.begin(options.run_root(parsed))
        desks.collect(desk, options.run_root(parsed), pairs)
        desks.ask_all(desk, desk.triage_probes(heavy=parsed.heavy))
        report = desk.report()
        if parsed.json:
            import msgspec

            from runbook.answer_json import answer_json

            titles = {name: cause.title.say(parsed.lang) for name, cause in desk.catalog.vocabulary.items()}
            encoded = msgspec.json.encode(answer_json(desk.state, report, titles, parsed.lang))
            sys.stdout.buffer.write(msgspec.json.format(encoded, indent=1) + b"\n")
        else:
            from runbook.plain import Plain

            Plain(parsed.lang, ascii_only=parsed.ascii).triage(desk, report)
        return exit_code(report)
    finally:
        desk.close()

"""`slime-runbook probes list|run`: the probes, and one of them asked of a run."""

from __future__ import annotations

import argparse
import sys

from runbook.cli import desks, options
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.finding import Verdict
from runbook.session.desk import Desk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="every probe with its question, needs and answers")
    options.add_language(listing)
    one = actions.add_parser("run", help="ask one probe")
    one.add_argument("probe", metavar="PROBE")
    options.add_evidence(one)
    options.add_language(one)
    options.add_signs(one)
    one.add_argument("--json", action="store_true", help="print the finding as JSON")


def run(parsed: argparse.Namespace) -> int:
    """List the probes, or run one."""
    return _list(parsed) if parsed.action == "list" else _run(parsed)


def _list(parsed: argparse.Namespace) -> int:
    for probe in options.probe_catalog(parsed.lang).probes.values():
        print(f"{probe.id}  {probe.title.say(parsed.lang)}")
        print(f"    needs {', '.join(probe.needs)}; answers {', '.join(probe.answers)}")
    return ExitCode.CLEAR


def _run(parsed: argparse.Namespace) -> int:
    catalog = options.probe_catalog(parsed.lang)
    if parsed.probe not in catalog.probes:
        raise UsageError(f"unknown probe {parsed.probe!r}", "see slime-runbook probes list")
    pairs = options.given(parsed)
    if not parsed.run and not pairs:
        parsed.run = "."
    desk = Desk(catalog, language=parsed.lang)
    try:
        desks.collect(desk, options.run_root(parsed), pairs)
        desks.ask_all(desk, [parsed.probe])
        finding = desk.state.findings_of()[parsed.probe]
    finally:
        desk.close()
    if parsed.json:
        import msgspec

        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(finding), indent=1) + b"\n")
    else:
        from runbook.plain import Plain

        Plain(parsed.lang, ascii_only=parsed.ascii).finding(finding)
    if finding.verdict is Verdict.PROBLEM:
        return ExitCode.CONFIRMED
    return ExitCode.CLEAR if finding.verdict.decides else ExitCode.OPEN

"""`slime-runbook open BUNDLE`: a session that somebody exported, read-only, with nothing else present.

The exit code is that of its triage. Nothing is written anywhere, and nothing of this machine's runs is looked at.
"""

from __future__ import annotations

import argparse
import sys
import time

from runbook.bundle.read import Bundle, open_bundle, read_bundle
from runbook.cli import desks, options
from runbook.cli.terminal import interactive
from runbook.plain import Plain
from runbook.session.desk import Desk
from runbook.text import sanitise
from runbook.ticket.words import say
from runbook.triage import exit_code


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the .zip that an export with --format bundle wrote")
    parser.add_argument("--plain", action="store_true", help="print it even on a terminal")
    parser.add_argument("--json", action="store_true", help="print its triage as JSON (docs/triage.schema.json)")
    options.add_language(parser)
    options.add_signs(parser)


def run(parsed: argparse.Namespace) -> int:
    """Show the session; return the exit code of its triage."""
    bundle = read_bundle(parsed.bundle)
    desk = open_bundle(bundle, parsed.lang)
    try:
        if parsed.json:
            _print_json(desk, parsed.lang)
        elif parsed.plain or not interactive():
            desks.tell(desk)
            _print(bundle, desk, Plain(parsed.lang, ascii_only=parsed.ascii))
        else:
            return desks.show(parsed, desk, None, bundle.excerpts)
        return int(exit_code(desk.report()))
    finally:
        desk.close()


def _print(bundle: Bundle, desk: Desk, plain: Plain) -> None:
    """Write what the bundle is, then the session as `sessions show` does."""
    manifest = bundle.manifest
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(manifest.written))
    session, version = sanitise(manifest.session, 80), sanitise(manifest.version, 40)
    plain.line(
        plain.say(
            f"session {session}, exported {when} UTC by version {version}; nothing here is kept",
            f"会话 {session}，由版本 {version} 于 {when} UTC 导出；此处的改动不会保存",
        ),
        style="dim",
    )
    if manifest.hidden:
        kinds = ", ".join(f"{say(f'hidden.{one.kind}', plain.language)} ({one.values})" for one in manifest.hidden)
        plain.line(plain.say(f"hidden: {kinds}", f"已隐藏：{kinds}"), style="dim")
    draw(desk, plain)
    sys.stdout.flush()


def draw(desk: Desk, plain: Plain) -> None:
    """Write a session: its walks, its notes and its triage."""
    for name, walk in desk.state.walks.items():
        plain.path(desk.catalog.flows.get(name), walk)
    for note in desk.state.notes:
        plain.line(f"{note.who}: {note.words}" if note.who else note.words, 2)
    plain.triage(desk, desk.report())


def _print_json(desk: Desk, language: str) -> None:
    import msgspec

    from runbook.answer_json import answer_json

    titles = {name: cause.title.say(language) for name, cause in desk.catalog.vocabulary.items()}
    encoded = msgspec.json.encode(answer_json(desk.state, desk.report(), titles, language))
    sys.stdout.buffer.write(msgspec.json.format(encoded, indent=1) + b"\n")
    sys.stdout.buffer.flush()

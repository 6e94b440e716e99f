"""`slime-runbook backtest [DIR]`: reads kept sessions again under the flows at hand, and lists every leaf that moved.

For whoever changes a flow: what would the incidents that we had say now? No probe is asked, nothing is written. Exit
code: 0 when nothing moved, 3 when something moved or a session could not be read again, 2 when a
folder that was given holds no session.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable

import msgspec

from runbook.backtest import GONE, Moved, Outcome, backtest
from runbook.cli import options
from runbook.errors import UsageError
from runbook.exits import ExitCode
from runbook.plain import Plain
from runbook.session.store import sessions_dir
from runbook.text import counted, sanitise

SHOWN = 12
"""Sessions that are named of those that no record of a judgement is in."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", help="a folder with sessions (default: where they are kept)"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    options.add_drawn_flows(parser)


def run(parsed: argparse.Namespace) -> int:
    """Read the sessions again and print what moved."""
    root = parsed.folder or str(sessions_dir())
    if parsed.folder and not os.path.isdir(root):
        raise UsageError(f"{root}: there is no such folder", "give a folder that holds sessions")
    catalog = options.catalog(parsed.flows, parsed.lang)
    began = time.monotonic()
    outcome = backtest(root, catalog)
    if parsed.folder and not outcome.sessions:
        raise UsageError(f"{root}: there is no session in it", "give the folder in which sessions are kept")
    if parsed.json:
        _print_json(outcome, parsed.lang)
    else:
        _write(outcome, Plain(parsed.lang, ascii_only=parsed.ascii))
    print(f"{counted(outcome.sessions, 'session')} in {time.monotonic() - began:.1f} s", file=sys.stderr)
    return ExitCode.OPEN if outcome.moved or outcome.unread else ExitCode.CLEAR


def _print_json(outcome: Outcome, language: str) -> None:
    answer = {
        "schema": 1,
        "sessions": outcome.sessions,
        "moved": [{**_plain(one), "why": one.why.say(language)} for one in outcome.moved],
        "not_read": [{"session": one.session, "why": one.why.say(language)} for one in outcome.unread],
        "by_walks_only": outcome.unjudged,
    }
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(answer), indent=1) + b"\n")
    sys.stdout.buffer.flush()


def _plain(one: Moved) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


def _write(outcome: Outcome, plain: Plain) -> None:
    """Write what moved, session by session, then what could not be read, then the sum."""
    arrow = "->" if plain.ascii else "→"
    session = ""
    for alike in _alike(outcome.moved):
        one = alike[0]
        if one.session != session:
            session = one.session
            plain.line(session, style="bold")
        kind = "" if one.kind == "cause" else plain.say("walk ", "走查 ")
        names = ", ".join(moved.id for moved in alike)
        plain.line(f"{kind}{names}: {_words(plain, one.before)} {arrow} {_words(plain, one.after)}", 2)
        place = f"{one.flow}/{one.node}: " if one.node else ""
        plain.line(f"{place}{one.why.say(plain.language)}", 4, "dim")
    for lost in outcome.unread:
        plain.line(f"{lost.session}  {plain.say('NOT READ AGAIN', '未能重新判读')}", style="bold")
        plain.line(lost.why.say(plain.language), 2)
    if not outcome.sessions:
        plain.line(plain.say("no session is kept yet", "尚未保存任何会话"))
        return
    if outcome.unjudged:
        plain.line(_unjudged(outcome, plain), style="dim")
    plain.line(_sum(outcome, plain))


def _alike(every: Iterable[Moved]) -> Iterable[list[Moved]]:
    """Return what moved in the same way by the same node of one session, together."""
    groups: dict[Moved, list[Moved]] = {}
    for one in every:
        groups.setdefault(msgspec.structs.replace(one, id=""), []).append(one)
    return groups.values()


def _words(plain: Plain, word: str) -> str:
    """Return a standing in words; a node as it is."""
    words = {
        "confirmed": plain.say("confirmed", "已确认"),
        "possible": plain.say("possible", "可能"),
        "ruled_out": plain.say("ruled out", "已排除"),
        GONE: plain.say("not in the flows", "流程中没有"),
    }
    return words.get(word, word)


def _unjudged(outcome: Outcome, plain: Plain) -> str:
    names = ", ".join(map(sanitise, outcome.unjudged[:SHOWN]))
    more = f" (+{len(outcome.unjudged) - SHOWN})" if len(outcome.unjudged) > SHOWN else ""
    return plain.say(
        f"compared by their walks only, for they do not say how their causes stood: {names}{more}",
        f"仅按走查比较（未记录当时的原因状态）：{names}{more}",
    )


def _sum(outcome: Outcome, plain: Plain) -> str:
    every, moved, unread = outcome.sessions, outcome.moved_sessions, len(outcome.unread)
    return plain.say(
        f"{counted(every, 'session')}, {moved} moved, {unread} could not be read again",
        f"{every} 个会话，{moved} 个有变化，{unread} 个未能重新判读",
    )

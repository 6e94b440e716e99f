"""`slime-runbook export (SESSION | RUN)`: the ticket. Of a run, triage is done first, in a new session."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from runbook import clipboard
from runbook.bundle.form import FORMAT
from runbook.cli import desks, kept, options, preview, seen
from runbook.errors import SessionError, UsageError
from runbook.exits import ExitCode
from runbook.glyphs import wants_ascii
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import read_session
from runbook.text import Text, counted
from runbook.ticket.choices import Choices, choices, remember
from runbook.ticket.draft import Draft
from runbook.ticket.export import draft_of, formats, write_ticket


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_target(parser, "SESSION|RUN", "id of a session, or folder or file of a run")
    options.add_slots(parser)
    options.add_heavy(parser)


def add_target(parser: argparse.ArgumentParser, metavar: str, words: str) -> None:
    """Declare what is exported, as what and where to."""
    parser.add_argument("session", metavar=metavar, help=words)
    parser.add_argument("--format", choices=(*formats(), FORMAT), default="markdown", help="default: %(default)s")
    parser.add_argument("--output", metavar="PATH", help="file to write (default: in the session; - for stdout)")
    parser.add_argument("--hide", action="append", default=[], metavar="WORD", help="a further word to hide")
    parser.add_argument("--unhide", action="append", default=[], metavar="WORD", help="hide such a word no longer")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--into-run", action="store_true", help="allow a file inside RUN")
    parser.add_argument("--preview", action="store_true", help="print every line that would leave, and write nothing")
    parser.add_argument("--json", action="store_true", help="with --preview: as JSON")
    for name, does in (("--drop", "leave lines of the preview out"), ("--keep", "take such a drop back")):
        parser.add_argument(name, action="append", default=[], type=preview.numbers, metavar="N[,N-M]", help=does)
    parser.add_argument("--copy", action="store_true", help="offer the ticket to the terminal's clipboard as well")
    options.add_flows(parser)
    options.add_language(parser)
    options.add_sessions(parser)


def run(parsed: argparse.Namespace) -> int:
    """Write the ticket and print its path, or print the preview."""
    if parsed.json and not parsed.preview:
        raise UsageError("--json: this is for --preview", "a ticket as JSON is --format json")
    if parsed.copy and parsed.output == "-":
        raise UsageError("--copy: what is offered to the clipboard must be in a file as well", "give --output a path")
    if parsed.copy and parsed.format == FORMAT:
        raise UsageError("--copy: a bundle is no text", "choose another format for the clipboard")
    session = kept.session_or_run(parsed.sessions, parsed.session)
    if session is None:
        return _of_run(parsed)
    catalog = options.catalog(parsed.flows, parsed.lang)
    desk = read_session(catalog, str(session), parsed.lang)
    desks.tell(desk)
    path = _write(parsed, desk, session)
    if path is not None:
        print(path)
    return ExitCode.CLEAR


def _of_run(parsed: argparse.Namespace) -> int:
    if parsed.drop or parsed.keep:
        said = (
            f"{parsed.session}: --drop and --keep take numbers of a session's preview, and this would be a new session"
        )
        hint = f"slime-runbook export {shlex.quote(parsed.session)} --preview names a session; export that one then"
        raise UsageError(said, hint)
    with desks.triaged(parsed, parsed.session) as desk:
        if not parsed.preview:
            seen.remember(desk)
        path = _write(parsed, desk, desk.folder)
        if path is not None:
            desk.append(ev.Exported(parsed.format, str(path)))
            print(path)
        if parsed.preview:
            options.warn(_go_on(desk.session_id, parsed.format), desk.language)
        else:
            print(f"session {desk.session_id}", file=sys.stderr)
        return ExitCode.CLEAR


def _go_on(session: str, format: str) -> Text:
    """Return what leaves lines of a run's preview out."""
    command = f"slime-runbook export {session} --format {format} --drop N"
    return Text(f"session {session}; leave lines out with {command}", f"会话 {session}；略去若干行：{command}")


def _write(parsed: argparse.Namespace, desk: Desk, folder: str | Path) -> Path | None:
    """Write the ticket and return its path, None when it went to stdout or only the preview was wanted.

    What was chosen is kept once the ticket is written, for a refused choice would refuse every later ticket; what is
    hidden no longer is kept at once.
    """
    before = choices(folder)
    chosen = before.showing(*parsed.unhide)
    if parsed.drop or parsed.keep:  # the numbers are of a preview in which nothing of this call was hidden yet
        draft = _draft(parsed, desk, folder, before)
        dropped = draft.texts(preview.picked(draft.lines, parsed.drop))
        chosen = chosen.keeping(draft.texts(preview.picked(draft.lines, parsed.keep))).dropping(dropped)
    chosen = chosen.hiding(*parsed.hide)
    if parsed.unhide:
        before = before.showing(*parsed.unhide)
        _keep(folder, before, desk.language)
    if parsed.preview:
        draft = _draft(parsed, desk, folder, chosen)
        _show(parsed, desk, draft, draft.dropped(chosen.drop))
        return None
    path = _written(parsed, desk, folder, chosen)
    if chosen != before:
        _keep(folder, chosen, desk.language)
    if parsed.copy and path is not None:
        _offer(path, desk.language)
    return path


def _draft(parsed: argparse.Namespace, desk: Desk, folder: str | Path, chosen: Choices) -> Draft:
    """Return what would leave in the format that was asked for: a bundle is more than its ticket."""
    if parsed.format == FORMAT:
        from runbook.bundle.write import bundle_draft

        return bundle_draft(desk, folder, hide=chosen.hide, kept=False)
    return draft_of(desk, folder, hide=chosen.hide, kept=False)


def _written(parsed: argparse.Namespace, desk: Desk, folder: str | Path, chosen: Choices) -> Path | None:
    """Write the ticket or the bundle and return its path, None when it went to stdout."""
    options_of_both = {
        "hide": chosen.hide,
        "drop": chosen.drop,
        "overwrite": parsed.overwrite,
        "into_run": parsed.into_run,
    }
    if parsed.format == FORMAT:
        from runbook.bundle.write import write_bundle

        return write_bundle(desk, parsed.output, folder, **options_of_both)
    return write_ticket(
        desk,
        parsed.format,
        parsed.output,
        folder,
        **options_of_both,
        also=lambda beside: _tell_whole(beside, desk.language),
    )


def _tell_whole(path: Path, language: str) -> None:
    """Say where the whole ticket is when the one that was asked for had to be shortened."""
    options.warn(Text(f"the ticket was shortened; the whole is in {path}", f"工单已缩短；完整内容在 {path}"), language)


def _show(parsed: argparse.Namespace, desk: Desk, draft: Draft, dropped: frozenset[str]) -> None:
    """Print the preview; what is said about it goes to stderr."""
    if parsed.json:
        print(preview.as_json(draft.lines, dropped, session=desk.session_id, language=desk.language))
        return
    ascii_only = wants_ascii()
    for line in preview.as_text(draft.lines, dropped, language=desk.language, ascii_only=ascii_only):
        print(line)
    left, right = preview.HIDDEN_SIGNS[ascii_only]
    count, out = len(draft.lines), sum(line.text in dropped for line in draft.lines)
    said = Text(
        f"{counted(count, 'line')}, {out} left out; {left} {right} stand around what is hidden; nothing was written",
        f"{count} 行，略去 {out} 行；{left} {right} 标出已隐藏的内容；没有写入任何文件",
    )
    options.warn(said, desk.language)


def _keep(folder: str | Path, chosen: Choices, language: str) -> None:
    """Keep what was chosen for every later ticket; where that is not possible, say that it holds for this one."""
    try:
        remember(folder, chosen)
    except SessionError as error:
        said = f"{error.message}; what is hidden and left out holds for this ticket only"
        options.warn(Text(said, f"{error.message}；隐藏与略去仅对本工单有效"), language)


def _offer(path: Path, language: str) -> None:
    """Offer a written ticket to the clipboard, and say so without claiming that it was taken."""
    text = path.read_text(encoding="utf-8")
    if clipboard.offer(text):
        said = Text(
            f"offered to the terminal's clipboard; the ticket is in {path}",
            f"已提供给终端剪贴板；工单在 {path}",
        )
    elif 0 < clipboard.limit() < len(text.encode()):
        said = Text(f"too long for the clipboard; only {path} has all", f"超出剪贴板容量；仅 {path} 含全部内容")
    else:
        said = Text(
            f"no terminal with a clipboard here; the ticket is in {path}", f"此处没有带剪贴板的终端；工单在 {path}"
        )
    options.warn(said, language)

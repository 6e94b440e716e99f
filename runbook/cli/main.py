"""The command line: finds the command, loads only what it needs, turns errors into words and exit codes.

stdout carries data only; everything said about the run of the tool goes to stderr. `--version` and the parsing of a
wrong command line load nothing of the engine.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from runbook import __version__
from runbook.cli.terminal import first_frame
from runbook.errors import RunbookError, UsageError
from runbook.exits import ExitCode

if TYPE_CHECKING:
    from runbook.command import Command

COMMANDS: dict[str, str] = {
    "ui": "the terminal UI (also: no command at all)",
    "triage": "every check at once: ranked causes, exit code",
    "run": "walk one flow in plain text",
    "resume": "go on with a session, also with a new run of an experiment",
    "browse": "look into bulk data of a run, page by page",
    "evidence": "show what was taken as evidence, and why",
    "flows": "list, lint, show and draw the flows",
    "probes": "list the probes, run one",
    "sessions": "list, show, note, fixed, diff, resume and export sessions",
    "export": "write the ticket of a session or a run",
    "open": "open a bundle that somebody exported, with nothing else present",
    "send": "send the ticket of a session or a run to a tracker",
    "outbox": "list, send and drop tickets that were not sent",
    "backtest": "read kept sessions again under other flows",
    "demo": "the bundled incident",
    "where": "print where sessions, flows and probes are",
}

SHOW_UI = ("ui", "open", "demo")
"""Commands that open the terminal UI at once."""

USAGE = "usage: slime-runbook [COMMAND] [RUN] [options]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with contextlib.suppress(AttributeError, ValueError):  # not on every system, not off the main thread
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if words in (["--version"], ["-V"]):
        print(f"slime-runbook {__version__}")
        return ExitCode.CLEAR
    if words and words[0] in ("-h", "--help", "help"):
        print(overview())
        return ExitCode.CLEAR
    name = words.pop(0) if words and words[0] in COMMANDS else "ui"
    added = None
    if name == "ui" and words and not words[0].startswith("-") and not os.path.exists(words[0]):
        further = _further()
        added = further.get(words[0])
        if added is None:
            known = ", ".join((*COMMANDS, *further))
            return _complain(RunbookError(f"{words[0]}: neither a command nor a file or folder", f"commands: {known}"))
        name = words.pop(0)
    for stream in (sys.stdin, sys.stdout, sys.stderr):  # a character that cannot be read or shown must not end a walk
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
    return _guarded(name, words, added)


def overview() -> str:
    """Return the help that names every command."""
    every = {**COMMANDS, **{name: command.help for name, command in _further().items()}}
    width = max(map(len, every))
    rows = "\n".join(f"  {name:<{width}}  {words}" for name, words in every.items())
    codes = "\n".join(f"  {code.value:>{width}}  {EXIT_WORDS[code]}" for code in ExitCode)
    return (
        f"{USAGE}\n\nWalks decision trees over the evidence of a run, with probes that cite what they found.\n\n"
        f"commands\n{rows}\n\nexit codes\n{codes}\n\nslime-runbook COMMAND --help says more."
    )


EXIT_WORDS: dict[ExitCode, str] = {
    ExitCode.CLEAR: "nothing wrong found, the main questions were answered",
    ExitCode.CONFIRMED: "evidence confirms at least one cause",
    ExitCode.USAGE: "bad usage or unusable evidence",
    ExitCode.OPEN: "nothing confirmed, but something is unknown or possible",
    ExitCode.INTERRUPTED: "interrupted",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are errors like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise the complaint instead of printing it."""
        raise UsageError(message, f"see {self.prog} --help")


def _further() -> dict[str, Command]:
    """Return the commands that probe packages add."""
    from runbook.catalog import load_commands

    return load_commands()


def _run(name: str, words: list[str], added: Command | None) -> int:
    helping = bool({"-h", "--help"} & set(words))
    shows_ui = name in SHOW_UI and not {"--plain", "--json"} & set(words)
    with first_frame(wanted=shows_ui and not helping) as frame:
        module = added or importlib.import_module(f"runbook.cli.{name}")
        about = added.help if added else COMMANDS[name]
        parser = Parser(prog=f"slime-runbook {name}", description=about, allow_abbrev=False)
        module.add_arguments(parser)
        try:
            parsed = parser.parse_args(words)
        except SystemExit:  # --help has been printed
            return ExitCode.CLEAR
        parsed.frame = frame
        code: int = module.run(parsed)
        return code


def _guarded(name: str, words: list[str], added: Command | None) -> int:
    """Run a command and return its exit code, or the one of what ended it."""
    try:
        code = _run(name, words, added)
        if sys.stdout is not None:  # what is still held must be out before the code says that it was told
            sys.stdout.flush()
    except RunbookError as error:
        return _complain(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except Exception as error:  # Python would exit with 1, which says that a cause is confirmed
        return _unforeseen(error)
    return code


def _unforeseen(error: Exception) -> int:
    """Tell that the answer could not be written, or show the traceback of a bug."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        import traceback

        traceback.print_exception(error)
        return ExitCode.USAGE
    with contextlib.suppress(OSError):  # what Python still holds would fail again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    said = f"the answer could not be written: {error.strerror}"
    return _complain(RunbookError(said, "make room, or write elsewhere"))


def _complain(error: RunbookError) -> int:
    from runbook.text import sanitise

    print(f"slime-runbook: {sanitise(error.message)}", file=sys.stderr)
    if error.hint:
        print(f"  {sanitise(error.hint)}", file=sys.stderr)
    return ExitCode.USAGE


if __name__ == "__main__":
    sys.exit(main())

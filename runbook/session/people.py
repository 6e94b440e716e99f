"""Who works on a session, and what a note may be.

On clusters one account is often shared by many, so a person may give a name (`--who`, SLIME_RUNBOOK_WHO); it is what
events record. Invariant: a name is one line that is safe to draw, and short.
"""

from __future__ import annotations

import getpass
import os

from runbook.errors import UsageError
from runbook.text import sanitise

WHO = "SLIME_RUNBOOK_WHO"
"""Environment variable with the name of the person, where the login name says too little."""

NAME_LIMIT = 64
"""Characters of a name."""
NOTE_LIMIT = 10_000
"""Characters of a note: more than anybody types, less than a log that was pasted by mistake."""


def login_name() -> str:
    """Return the name of the account at the terminal, "" where the system does not know it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""


def named(words: str) -> str:
    """Return a name as events record it: one line, safe to draw, at most NAME_LIMIT characters; "" for none."""
    return " ".join(sanitise(words, NAME_LIMIT * 2).split())[:NAME_LIMIT].strip()


def author() -> str:
    """Return who is at work here: the name that was given, else the login name."""
    return named(os.environ.get(WHO, "")) or login_name()


def note_words(words: str, command: str = 'sessions note SESSION "words"') -> str:
    """Return the words of a note, line by line safe to draw. command: how they are given, for the hint.

    Raises UsageError when there are none, or more than NOTE_LIMIT characters.
    """
    kept = "\n".join(sanitise(line).rstrip() for line in words.splitlines()).strip("\n")
    if not kept.strip():
        raise UsageError("this needs words", f"give them in quotes: slime-runbook {command}")
    if len(kept) > NOTE_LIMIT:
        raise UsageError(
            f"the note has {len(kept):,} characters, {NOTE_LIMIT:,} are allowed", "keep the file, and note its path"
        )
    return kept

"""One exception model: every error the user can cause or mend is a RunbookError.

Invariant: `message` names the file and place, `hint` names the remedy; the CLI prints both and exits with 2. Anything
else that escapes is a bug of this project.
"""

from __future__ import annotations


class RunbookError(Exception):
    """An error with a place and a remedy.

    message: what is wrong, naming file and line where there is one.
    hint: what the user can do about it; empty when nothing can be done.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RunbookError):
    """The command line asks for something that does not exist."""


class EvidenceError(RunbookError):
    """RUN or a named evidence path cannot be used at all."""


class FlowError(RunbookError):
    """A flow file cannot be loaded."""


class SessionError(RunbookError):
    """A session is locked, damaged beyond its last line, or cannot be written."""


class HeldError(SessionError):
    """Somebody else has the session open for writing."""


class LostError(SessionError):
    """Somebody else took the session over; what was to be written was not acknowledged.

    what: that, in words that are safe to draw, "" where it can be had again.
    """

    def __init__(self, message: str, hint: str = "", *, what: str = "") -> None:
        super().__init__(message, hint)
        self.what = what


class RedactionError(RunbookError):
    """A finished export still holds something that must not leave; nothing was written.

    word: the whole of what was found, for hiding it by name; it stands in no message. shown: what names it without it.
    line: the whole of a text that was to be left out and is still there, "" when it is not that.
    """

    def __init__(self, message: str, hint: str = "", *, word: str = "", shown: str = "", line: str = "") -> None:
        super().__init__(message, hint)
        self.word = word
        self.shown = shown
        self.line = line

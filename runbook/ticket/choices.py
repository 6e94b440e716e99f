"""What a person chose to keep out of every ticket of a session: words that are hidden, texts that are dropped.

It is kept beside the journal, under the same rule of who may read it, and like the key to the pseudonyms it never
leaves: the texts stand there as the journal has them. Invariant: choices that are there and cannot be read are an
error, never taken for none, for what a person dropped would leave.
"""

from __future__ import annotations

import os

import msgspec

from runbook.errors import SessionError
from runbook.private import write_below

CHOICES_FILE = "choices.json"
"""Name of the file in the session folder."""


class Choices(msgspec.Struct, frozen=True):
    """hide: words. drop: texts of the transcript before redaction, line by line."""

    hide: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    def hiding(self, *words: str) -> Choices:
        """Return the choices with further words hidden."""
        return Choices(tuple(dict.fromkeys((*self.hide, *filter(None, words)))), self.drop)

    def hides(self, word: str) -> bool:
        """Return whether a word is hidden; upper and lower case are the same, as where it is sought."""
        return word.casefold() in map(str.casefold, self.hide)

    def showing(self, *words: str) -> Choices:
        """Return the choices with words hidden no longer."""
        shown = set(map(str.casefold, words))
        return Choices(tuple(word for word in self.hide if word.casefold() not in shown), self.drop)

    def dropping(self, texts: set[str]) -> Choices:
        """Return the choices with further texts dropped."""
        return Choices(self.hide, tuple(dict.fromkeys((*self.drop, *sorted(texts)))))

    def keeping(self, texts: set[str]) -> Choices:
        """Return the choices with texts taken back that were dropped."""
        return Choices(self.hide, tuple(text for text in self.drop if text not in texts))


def choices(session: str | os.PathLike[str]) -> Choices:
    """Return what was chosen in a session, given its folder. Raises SessionError when that cannot be read."""
    path = os.path.join(session, CHOICES_FILE)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Choices)
    except FileNotFoundError:
        return Choices()
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is damaged"
        raise SessionError(
            f"{path}: what was to be left out of tickets cannot be read: {why}",
            "mend it, or remove it: then look at the preview before anything leaves",
        ) from error


def remember(session: str | os.PathLike[str], chosen: Choices) -> None:
    """Keep what was chosen in a session. Raises SessionError when it cannot be kept."""
    try:
        write_below(os.fspath(session), (CHOICES_FILE,), msgspec.json.format(msgspec.json.encode(chosen), indent=2))
    except OSError as error:
        path = os.path.join(session, CHOICES_FILE)
        raise SessionError(f"{path}: cannot be written: {error.strerror}", "make room, or write elsewhere") from error

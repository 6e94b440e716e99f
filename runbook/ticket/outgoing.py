"""What leaves: a ticket that is finished, with the files that go along.

Every way out (file, tracker, bundle, clipboard) takes an `Outgoing` and nothing else, so that what leaves is what was
redacted and scanned.
"""

from __future__ import annotations

import msgspec

WHOLE_FORMAT = "text"
"""Layout of the whole ticket that goes along when the body had to leave something out."""

WHOLE_NAME = "ticket-whole.txt"
"""Its name; the body speaks of the file by the end of its name."""


class Attachment(msgspec.Struct, frozen=True):
    """A file that goes along. media: its media type."""

    name: str
    media: str
    content: bytes


class Outgoing(msgspec.Struct, frozen=True):
    """A finished ticket.

    title: in one line, redacted. format: name of its layout. suffix: of a file with it, with its dot. attachments:
    what goes along; the whole ticket, when the body had to leave something out.
    """

    title: str
    format: str
    suffix: str
    body: bytes
    attachments: tuple[Attachment, ...] = ()

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode("utf-8")

"""The whole ticket as plain text of 80 columns: for mail, for `less`, and beside a ticket that had to be shortened."""

from __future__ import annotations

from runbook.ticket.layout import lay_out
from runbook.ticket.plain_page import PICTURE, Plain
from runbook.ticket.renderers import Renderer
from runbook.ticket.transcript import Transcript


def render(transcript: Transcript) -> bytes:
    """Return the ticket."""
    return lay_out(transcript, Plain(), None, PICTURE).content


RENDERER = Renderer(".txt", render, wraps=True)

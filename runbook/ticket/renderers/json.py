"""The ticket as JSON: the whole transcript under its field names, for scripts and for keeping."""

from __future__ import annotations

import msgspec

from runbook.ticket.renderers import Renderer
from runbook.ticket.transcript import Transcript


def render(transcript: Transcript) -> bytes:
    """Return the transcript as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(transcript), indent=2) + b"\n"


RENDERER = Renderer(".json", render)

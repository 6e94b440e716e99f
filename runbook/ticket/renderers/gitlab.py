"""The ticket as GitLab-flavoured Markdown, for an issue or a comment on GitLab.

It is laid out as for GitHub; what GitLab would take for a quick action, a label or a reference is broken as well
(`runbook.ticket.gfm`).
"""

from __future__ import annotations

from runbook.ticket.gfm import GITLAB
from runbook.ticket.gfm_page import Markdown
from runbook.ticket.layout import lay_out
from runbook.ticket.renderers import SENDER_ROOM, Laid, limited
from runbook.ticket.transcript import Transcript

LIMIT = 1_000_000
"""Characters that GitLab takes in a description or a comment (its documentation of instance limits)."""


def lay(transcript: Transcript) -> Laid:
    """Return the ticket; at most LIMIT characters, and room for what a sender adds."""
    return lay_out(transcript, Markdown(GITLAB), LIMIT - SENDER_ROOM)


RENDERER = limited(".gitlab.md", lay, LIMIT)

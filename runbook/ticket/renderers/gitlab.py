"""The ticket as GitLab-flavoured Markdown, for an issue or a comment on GitLab.

It is laid out as for GitHub; what GitLab would take for a quick action, a label or a reference is broken as well
(`runbook.ticket.gfm`).
"""

from __future__ import annotations

from runbook.ticket.gfm import GITLAB
from runbook.ticket.gfm_page import Markdown
from runbook.ticket.layout import lay_out
from runbook.ticket.renderers import Laid, limited
from runbook.ticket.transcript import Transcript

LIMIT = 1_048_576
"""Characters that GitLab takes in a description or a comment."""


def lay(transcript: Transcript) -> Laid:
    """Return the ticket; at most LIMIT characters."""
    return lay_out(transcript, Markdown(GITLAB), LIMIT)


RENDERER = limited(".gitlab.md", lay, LIMIT)

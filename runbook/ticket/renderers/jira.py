"""The ticket as Jira wiki markup, for the description or a comment of an issue on Jira Server or Data Center.

Jira Cloud takes `adf`. A ticket that Jira would refuse for its length loses its least telling rows, and says which.
"""

from __future__ import annotations

from runbook.ticket.jira_page import Jira
from runbook.ticket.layout import lay_out
from runbook.ticket.renderers import SENDER_ROOM, Laid, limited
from runbook.ticket.transcript import Transcript

LIMIT = 32_767
"""Characters that Jira takes in a text field unless its administrator allows more (jira.text.field.character.limit)."""


def lay(transcript: Transcript) -> Laid:
    """Return the ticket; at most LIMIT characters, and room for what a sender adds."""
    return lay_out(transcript, Jira(), LIMIT - SENDER_ROOM)


RENDERER = limited(".jira", lay, LIMIT)

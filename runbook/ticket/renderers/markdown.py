"""The ticket as GitHub-flavoured Markdown, for an issue or a comment on GitHub.

Everything that came from evidence stands in code spans, fences or escaped prose (`runbook.ticket.gfm`). A ticket that
GitHub would refuse for its length loses its least telling rows, and says which.
"""

from __future__ import annotations

from runbook.ticket.gfm import GITHUB
from runbook.ticket.gfm_page import Markdown
from runbook.ticket.layout import lay_out
from runbook.ticket.renderers import SENDER_ROOM, Laid, limited
from runbook.ticket.transcript import Transcript

LIMIT = 65_536
"""Characters that GitHub takes in the body of an issue or a comment."""


def lay(transcript: Transcript) -> Laid:
    """Return the ticket; at most LIMIT characters, and room for what a sender adds."""
    return lay_out(transcript, Markdown(GITHUB), LIMIT - SENDER_ROOM)


RENDERER = limited(".md", lay, LIMIT)

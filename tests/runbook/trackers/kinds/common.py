"""What the tests of every tracker share: a small ticket, and sending it without waiting."""

from __future__ import annotations

import time
from pathlib import Path

from runbook.ticket.outgoing import Attachment, Outgoing
from runbook.trackers.outbox import Entry
from runbook.trackers.ready import Ready
from runbook.trackers.registry import place_of
from runbook.trackers.send import Plan, plan, post

PAGE = Attachment("ticket.html", "text/html", b"<p>\x00\xff whole ticket</p>" * 50)
NOTES = Attachment("notes.txt", "text/plain", "中文 notes\n".encode())
TOKEN = "planted-Tok3n/with+odd=ch%rs"
"""What no file and no output may hold, in no form."""


def planned(
    address: str, *files: Attachment, item: str = "", body: str = "It hangs.\n", labels: tuple[str, ...] = ()
) -> Plan:
    """Return the plan of a small ticket, in the first layout of the tracker."""
    kind, place = place_of(address, item)
    outgoing = Outgoing("A hang in rank 3", kind.formats[0], ".txt", body.encode(), files)
    return plan(Ready(outgoing, (), labels, "s1", "en"), kind, place, now=time.time())


def send(one: Plan, folder: Path, environment: dict[str, str], pauses: list[float] | None = None) -> Entry:
    """Send a plan, noting the pauses instead of making them."""
    return post(one, folder, environment=environment, outbox=folder, wait=(pauses if pauses is not None else []).append)


def kept(folder: Path) -> bytes:
    """Return all that lies in the files of a folder."""
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())

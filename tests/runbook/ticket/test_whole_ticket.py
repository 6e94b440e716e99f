"""A ticket that had to be shortened brings the whole along: as an attachment, and as a file beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runbook.catalog import Catalog
from runbook.errors import UsageError
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.journal import Journal
from runbook.ticket.export import prepare, write_ticket

SECRET = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"


def _desk(folder: Path, notes: int) -> tuple[Desk, Path]:
    journal = Journal.create(folder / "sessions", 1795977000.0)
    desk = Desk(Catalog(loaded={}), journal, session_id=journal.id)
    desk.begin(str(folder / "run"))
    for number in range(notes):
        desk.append(ev.Noted(f"note {number} of lihua, {SECRET} " + "long words " * 300, "lihua"))
    return desk, journal.folder


def test_a_short_ticket_brings_nothing_along(tmp_path: Path) -> None:
    """A body that is whole has no attachment, and the folder no second file."""
    desk, folder = _desk(tmp_path, 2)
    assert prepare(desk, "jira", folder).attachments == ()
    told: list[Path] = []
    write_ticket(desk, "jira", None, folder, also=told.append)
    desk.close()
    assert told == []
    assert not list(folder.glob("*whole*"))


@pytest.mark.parametrize("format", ["adf", "jira", "markdown"])
def test_a_shortened_ticket_brings_the_whole_as_text(tmp_path: Path, format: str) -> None:
    """The attachment has every note under the pseudonyms of the body and nothing private; the body speaks of it."""
    desk, folder = _desk(tmp_path, 60)
    leaving = prepare(desk, format, folder)
    desk.close()
    (whole,) = leaving.attachments
    assert (whole.name, whole.media) == ("ticket-whole.txt", "text/plain; charset=utf-8")
    text = whole.content.decode()
    assert all(f"note {number} of user-1, secret-1" in " ".join(text.split()) for number in range(60))
    assert "lihua" not in text
    assert SECRET not in text
    assert "user-1" in leaving.text
    assert "whole.txt" in leaving.text


def test_the_whole_is_written_beside_the_ticket_and_announced(tmp_path: Path) -> None:
    """It has the ticket's name before its own, is private, and its path is told; stdout leaves it in the session."""
    desk, folder = _desk(tmp_path, 60)
    told: list[Path] = []
    assert write_ticket(desk, "jira", None, folder, also=told.append) == folder / "ticket-1.jira"
    assert write_ticket(desk, "adf", str(tmp_path / "t.json"), folder, also=told.append) == tmp_path / "t.json"
    assert write_ticket(desk, "jira", "-", folder, also=told.append) is None
    desk.close()
    assert told == [
        folder / "ticket-1.jira-whole.txt",
        tmp_path / "t.json-whole.txt",
        folder / "ticket-1-stdout-whole.txt",
    ]
    assert all(one.stat().st_mode & 0o077 == 0 for one in told)
    assert all("note 59 of user-1" in " ".join(one.read_text().split()) for one in told)


def test_a_file_that_is_in_the_way_stops_both(tmp_path: Path) -> None:
    """When the whole would replace a file nothing is written, not even the ticket; with overwrite both are."""
    desk, folder = _desk(tmp_path, 60)
    beside = tmp_path / "t.jira-whole.txt"
    beside.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_ticket(desk, "jira", str(tmp_path / "t.jira"), folder)
    assert not (tmp_path / "t.jira").exists()
    assert beside.read_text() == "mine"
    write_ticket(desk, "jira", str(tmp_path / "t.jira"), folder, overwrite=True)
    desk.close()
    assert "note 59" in beside.read_text()

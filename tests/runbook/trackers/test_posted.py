"""Tests of what a session's folder says was posted of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import SessionError, UsageError
from runbook.session.people import author
from runbook.trackers.outbox import Content, Entry, Step, new_entry, put
from runbook.trackers.posted import POSTED_FILE, check_first, keep, postings
from tests.helpers import is_safe

URL = "https://board.example/1"


def entry(to: str = "board:x", url: str = URL, session: str = "s1") -> Entry:
    """Return an entry that was posted."""
    made = new_entry(Content(to, "T", "text", session, (), (Step("create", "Body.", "m"),)), 1_700_000_000.0)
    return msgspec.structs.replace(made, url=url, item="1")


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    """A ticket is noted once, with who posted it, in a file for the owner alone as the folder is."""
    tmp_path.chmod(0o700)
    keep(tmp_path, entry())
    keep(tmp_path, entry())
    keep(tmp_path, entry("board:x#1", f"{URL}#c"))
    first, second = postings(tmp_path)
    assert (first.to, first.url, first.item, first.who) == ("board:x", URL, "1", author())
    assert (second.place, second.url) == ("board:x", f"{URL}#c")
    assert stat.S_IMODE((tmp_path / POSTED_FILE).stat().st_mode) == 0o600


def test_a_group_that_reads_the_session_reads_it(tmp_path: Path) -> None:
    """Where the folder is for a group, so is the note."""
    tmp_path.chmod(0o770)
    keep(tmp_path, entry())
    assert stat.S_IMODE((tmp_path / POSTED_FILE).stat().st_mode) == 0o660


def test_the_second_ticket_is_refused(tmp_path: Path) -> None:
    """A new ticket at the same place names the one that is there; other places, comments and `again` pass."""
    keep(tmp_path, entry())
    box = tmp_path / "outbox"
    with pytest.raises(UsageError) as caught:
        check_first(entry(), tmp_path, box)
    assert URL in caught.value.message
    assert "board:x#1" in caught.value.hint
    assert "--again" in caught.value.hint
    for other in (entry("board:y"), entry("board:x#1"), msgspec.structs.replace(entry(), again=True)):
        check_first(other, tmp_path, box)


def test_the_outbox_knows_where_the_folder_does_not(tmp_path: Path) -> None:
    """Where the session's folder holds no note, one's own outbox tells; of other sessions it tells nothing."""
    box = tmp_path / "outbox"
    with put(box, entry()):
        pass
    with pytest.raises(UsageError, match="posted there already"):
        check_first(entry(), tmp_path, box)
    check_first(entry(session="s2"), tmp_path, box)


@given(st.lists(st.binary(max_size=80), max_size=5))
def test_damaged_lines_are_passed_over(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever others wrote into the file, what is whole in it is read, and is safe to draw."""
    folder = tmp_path_factory.mktemp("session")
    bad = b'{"to":"board:x","url":"javascript:x"}\n{"to":"board:x","url":"https://x/\\u001b[2J","who":"\\u202e"}'
    (folder / POSTED_FILE).write_bytes(b"\n".join([*lines, bad]))
    keep(folder, entry())
    found = postings(folder)
    assert found[-1].url == URL
    assert not [one for one in found if one.url.startswith("javascript")]
    assert all(is_safe(one.say().en) and is_safe(one.say().zh) for one in found)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A link in its place is followed neither to read nor to write; the file is named."""
    os.symlink(tmp_path / "elsewhere", tmp_path / POSTED_FILE)
    with pytest.raises(SessionError, match=POSTED_FILE):
        postings(tmp_path)
    with pytest.raises(SessionError, match=POSTED_FILE):
        keep(tmp_path, entry())
    assert not (tmp_path / "elsewhere").exists()

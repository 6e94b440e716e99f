"""Tests of making a ticket ready: its layout, its title and labels, and that nothing private goes along."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runbook.errors import UsageError
from runbook.evidence import Item
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import Text
from runbook.trackers.address import Address
from runbook.trackers.ready import format_for, ready
from runbook.trackers.registry import kind_of
from tests.runbook import small

GITHUB, ROUNDUP, GITLAB, JIRA = (kind_of(Address(name)) for name in ("github", "roundup", "gitlab", "jira"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Return a desk over a session with a note of a person in it."""
    found = Desk(small.catalog(), session_id="s1", folder=str(tmp_path))
    found.append(ev.EvidenceAdded((Item("log", "/home/lihua/run/job.log", Text("given", "给定")),)))
    found.append(ev.Noted("ask wangwei@corp.example.com about lotus-9", "lihua"))
    yield found
    found.close()


def test_every_tracker_gets_its_own_layout() -> None:
    """Each kind has a layout among those that there are; a wished one must be one that it shows."""
    assert [format_for(kind) for kind in (GITHUB, GITLAB, JIRA, ROUNDUP)] == ["markdown", "gitlab", "jira", "text"]
    assert format_for(ROUNDUP, "markdown") == "markdown"
    for wanted in ("html", "bundle", "json", "nothing"):
        with pytest.raises(UsageError, match="GitHub does not show"):
            format_for(GITHUB, wanted)


def test_a_title_is_redacted_like_everything_else(desk: Desk, tmp_path: Path) -> None:
    """A typed title loses names, mail addresses, tokens and hidden words, in the title and in the body."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    title = f"lihua and wangwei@corp.example.com saw lotus-9 with {token}"
    found = ready(desk, tmp_path, GITHUB, title=title, hide=["lotus-9"])
    for words in ("lihua", "wangwei", "corp.example", "lotus-9", token):
        assert words not in found.outgoing.title
        assert words not in found.outgoing.text
    assert "saw" in found.outgoing.title
    assert found.outgoing.title.split(" saw ")[0] in found.outgoing.text.replace("\\", "")
    assert {one.kind for one in found.hidden} >= {"user names", "e-mail addresses", "keys and tokens"}


def test_further_layouts_go_along_as_files(desk: Desk, tmp_path: Path) -> None:
    """`attach` adds the whole ticket in other formats, redacted as well, each once."""
    found = ready(desk, tmp_path, ROUNDUP, attach=["html", "json", "html"])
    assert [file.name for file in found.outgoing.attachments] == ["ticket-html.html", "ticket-json.json"]
    assert [file.media for file in found.outgoing.attachments] == ["text/html", "application/json"]
    assert not any(b"lihua" in file.content for file in found.outgoing.attachments)


@pytest.mark.parametrize(
    "label", ["lihua", "see wangwei@corp.example.com", "lotus-9", "", "  ", "a,b", "x\x1b[2J", "10.1.2.33", "node017"]
)
def test_a_label_that_gives_something_away_is_refused(desk: Desk, tmp_path: Path, label: str) -> None:
    """A label is never changed; one that holds something private, or is none, is refused."""
    with pytest.raises(UsageError, match="label"):
        ready(desk, tmp_path, GITHUB, labels=[label], hide=["lotus-9"])


def test_good_labels_stay(desk: Desk, tmp_path: Path) -> None:
    """Ordinary labels are sent as they are."""
    assert ready(desk, tmp_path, GITHUB, labels=["bug", "type: hang", "训练"]).labels == ("bug", "type: hang", "训练")

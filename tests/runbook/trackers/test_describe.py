"""Tests of the dry run: it says everything, and does nothing."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from runbook.ticket.outgoing import Attachment, Outgoing
from runbook.ticket.transcript import Hidden
from runbook.trackers.address import Address
from runbook.trackers.describe import describe
from runbook.trackers.model import Attaches
from runbook.trackers.ready import Ready
from runbook.trackers.send import Plan, plan
from runbook.trackers.tokens import Credential
from tests.helpers import hostile_text, is_safe
from tests.runbook.trackers.board import SITE, Board, kind_of, never

FILES = (Attachment("a.txt", "text/plain", b"aaa"), Attachment("b.bin", "x/y", b"\xff" * 2000))


def planned(
    attaches: Attaches = Attaches.TO_ITEM, item: str = "", text: str = "Body.\n", title: str = "T", name: str = "b.bin"
) -> Plan:
    """Return a plan whose tracker must not be opened."""
    files = (FILES[0], Attachment(name, "x/y", FILES[1].content))
    outgoing = Outgoing(title, "text", ".txt", text.encode("utf-8", "replace"), files)
    hidden = (Hidden("user names", 2, 5, ("problem",)), Hidden("keys and tokens", 1, 1, ("problem",)))
    kind = dataclasses.replace(
        kind_of(Board(), attaches), connect=never, needs=lambda _: (Credential(("A_TOKEN", "B_TOKEN"), "a token"),)
    )
    labels = () if item else ("bug", "ops")
    return plan(Ready(outgoing, hidden, labels, "s1", "en"), kind, Address("board", SITE, "x", item), now=0.0)


def told(one: Plan, language: str = "en", **environment: str) -> str:
    """Return the dry run."""
    return "\n".join(describe(one, environment, language))


def test_everything_that_goes_is_said() -> None:
    """Place, login, title, labels, sizes, files, what was hidden and the mark are named, the body is shown whole."""
    one = planned()
    text = told(one, B_TOKEN="planted")
    for words in (
        "Nothing was sent", f"a new ticket in x (Board, {SITE})", "B_TOKEN (set)", "only the tracker knows", " T\n",
        "bug, ops", "a.txt (text/plain, 3 B): added to the ticket", "b.bin (x/y, 2.0 kB)", "user names: 2 different",
        "in 5 lines", "keys and tokens: 1 different", "\nBody.\n", f"\nslime-runbook {one.entry.content.steps[0].mark}",
    ):  # fmt: skip
        assert words in text
    assert "planted" not in text


@pytest.mark.parametrize(
    ("attaches", "words"),
    [
        (Attaches.FIRST, ["a.txt (text/plain, 3 B): uploaded first"]),
        (Attaches.NEVER, ["a.txt\n\naaa", "b.bin (2.0 kB): Board does not take it", "kept with session s1"]),
    ],
)
def test_what_becomes_of_files_is_said(attaches: Attaches, words: list[str]) -> None:
    """Files that are uploaded, that become comments and that stay are told apart."""
    text = told(planned(attaches))
    for one in words:
        assert one in text


def test_a_comment_is_called_one() -> None:
    """A comment names the ticket that it goes to; a login that is not set is said."""
    text = told(planned(item="7"))
    assert "a comment on 7 in x" in text
    assert "A_TOKEN (not set" in text
    assert "title" not in text.partition("-----")[0]


def test_it_is_said_in_chinese() -> None:
    """Every label has Chinese words; columns stay in line where a character is two cells wide."""
    text = told(planned(), "zh")
    assert "尚未发送" in text
    assert "标题        T" in text
    assert "Nothing was sent" not in text


@given(hostile_text, hostile_text)
def test_what_is_printed_is_safe(title: str, body: str) -> None:
    """Whatever stands in a ticket, every line of the dry run is safe to print."""
    assert all(is_safe(line) for line in describe(planned(title=title, text=body, name=title), {}, "en"))
    assert all(is_safe(line) for line in describe(planned(Attaches.NEVER, name=title), {}, "en"))

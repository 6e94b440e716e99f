"""Tests of finding trackers; third parties' are found in the tests of the command."""

from __future__ import annotations

import pytest

from runbook.errors import UsageError
from runbook.trackers.address import Address
from runbook.trackers.registry import kind_names, kind_of, place_of


def test_our_kinds_are_their_modules() -> None:
    """Every module of ours is a kind of its name, whose example is an address that it takes."""
    assert set(kind_names()) >= {"github", "gitlab", "jira", "roundup"}
    for name in ("github", "gitlab", "jira", "roundup"):
        kind = kind_of(Address(name))
        assert kind.name == name
        example = kind.example.replace("PROJECT", "OPS")
        assert place_of(example)[0] is kind
        assert kind.needs(place_of(example)[1])


def test_a_settled_address_stays_as_it_is() -> None:
    """The address that is kept in the outbox means the same again."""
    for words in (
        "github:o/r#1", "github+https://h/api/v3:o/r", "gitlab+https://h:1:g/p#2", "jira+https://h/x/OPS-3",
        "jira+https://h:OPS", "roundup+https://h/t#4",
    ):  # fmt: skip
        kind, address = place_of(words)
        assert place_of(str(address)) == (kind, address)


def test_a_ticket_can_be_named_apart() -> None:
    """The ticket to comment on may stand in the address or beside it, but not be two different ones."""
    assert place_of("github:o/r", "5") == place_of("github:o/r#5", "5") == place_of("github:o/r#5")
    assert place_of("jira+https://h/OPS", "5")[1].item == "OPS-5"
    with pytest.raises(UsageError, match="two tickets"):
        place_of("github:o/r#5", "6")


@pytest.mark.parametrize("words", ["nothing:a/b", "kinds:a/b", "os:a/b"])
def test_no_other_module_is_a_kind(words: str) -> None:
    """A word that is no kind is refused with the kinds that there are."""
    with pytest.raises(UsageError) as caught:
        place_of(words)
    assert "github, gitlab, jira, roundup" in caught.value.hint

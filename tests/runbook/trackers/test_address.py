"""Tests of addresses: what a person may type, and what an error may show of it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import UsageError
from runbook.trackers.address import Address, parse_address
from tests.helpers import hostile_text, is_safe

SITES = st.sampled_from(
    ["", "https://host", "https://host:8443", "https://a.b/api/v3", "https://[::1]:1/x", "http://localhost:1"]
)
NAMES = st.text("abcXYZ019_.-", min_size=1, max_size=12).filter(lambda name: name.strip("./"))


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("github:owner/repo", Address("github", "", "owner/repo")),
        ("github:owner/repo#12", Address("github", "", "owner/repo", "12")),
        ("github+https://ghe.example.com/api/v3:o/r", Address("github", "https://ghe.example.com/api/v3", "o/r")),
        ("gitlab+https://host:group/sub/project", Address("gitlab", "https://host", "group/sub/project")),
        ("gitlab+https://host:8443:group/project#7", Address("gitlab", "https://host:8443", "group/project", "7")),
        ("gitlab+https://host/git:g/p", Address("gitlab", "https://host/git", "g/p")),
        ("jira+https://host/PROJECT-12", Address("jira", "https://host/PROJECT-12")),
        ("roundup+http://127.0.0.1:8917/tracker/", Address("roundup", "http://127.0.0.1:8917/tracker")),
        ("roundup+http://[::1]:8917/t#3", Address("roundup", "http://[::1]:8917/t", "", "3")),
    ],
)  # fmt: skip
def test_addresses_are_read(words: str, address: Address) -> None:
    """Kind, site with its port, place and ticket are told apart."""
    assert parse_address(words) == address


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("", "0 characters"),
        ("x" * 2000, "2000 characters"),
        ("GitHub:a/b", "no kind"),
        ("github", "neither"),
        ("github/a/b", "neither"),
        ("github:a/b#", "names no ticket"),
        ("github:a/b#1#2", "names no ticket"),
        ("github:a b", "blank"),
        ("gitlab+host:a/b", "no web address"),
        ("gitlab+https://:a/b", "no host"),
        ("gitlab+https://host:99999999:a/b", "no port"),
        ("gitlab+ftp://host:a/b", "ftp://"),
        ("jira+http://jira.example.com/OPS", "http://"),
        ("roundup+http://127.0.0.1.evil.example/t", "http://"),
        ("roundup+http://localhost.evil.example/t", "http://"),
        ("roundup+http://10.0.0.1:8080/t", "http://"),
        ("roundup+http://[2001:db8::1]/t", "http://"),
        ("roundup+http://2130706433/t", "http://"),
        ("gitlab+https://host/x?a=1:g/p", "a query"),
        ("github:o/r?x=1", "a query"),
        ("github:o/r#1?x=1", "a query"),
        ("gitlab+https://host\\evil:g/p", "more than host and path"),
    ],
)
def test_the_wrong_part_is_named(words: str, part: str) -> None:
    """An address that is none is refused with the part that is wrong and how it is written."""
    with pytest.raises(UsageError) as caught:
        parse_address(words)
    assert part in caught.value.message
    assert caught.value.message.count("'") % 2 == 0
    assert caught.value.hint


@pytest.mark.parametrize(
    "words",
    [
        "roundup+https://me:planted-pw@host/t",
        "github+https://planted-pw@host:o/r",
        "github:planted-pw@o/r",
        "gitlab+https://host/x?private_token=planted-pw",
        "github:o/r?token=planted-pw",
        "gitlab+ftp://host/x?token=planted-pw",
    ],
)
def test_no_login_is_taken_or_repeated(words: str) -> None:
    """An address with a login, or anything after a question mark, is refused without being repeated."""
    from runbook.trackers.registry import place_of

    with pytest.raises(UsageError) as caught:
        place_of(words)
    assert (
        "planted-pw" not in f"{caught.value.message} {caught.value.hint} {caught.value.args} {caught.value.__context__}"
    )


@given(st.sampled_from(["github", "x-1"]), SITES, st.lists(NAMES, max_size=3), st.text("019aZ-", max_size=5))
def test_what_is_printed_is_read_again(kind: str, site: str, place: list[str], item: str) -> None:
    """An address in its one form reads as itself."""
    address = Address(kind, site, "/".join(place), item.strip("-"))
    if address.site or address.place:
        assert parse_address(str(address)) == address


@given(hostile_text, st.booleans())
def test_whatever_is_typed_is_read_or_refused(text: str, begun: bool) -> None:
    """Hostile text is refused as wrong usage, or is an address without control characters in it."""
    words = f"gitlab+https://{text}" if begun else text
    with contextlib.suppress(UsageError):
        assert is_safe(str(parse_address(words)))

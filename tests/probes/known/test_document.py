"""The page of known failures says everything of every entry."""

from __future__ import annotations

import msgspec
import pytest

from probes.known import entries, shelves
from probes.known.document import document
from probes.known.model import Shelf


def test_every_entry_is_on_the_page_with_source_and_limits() -> None:
    """Id, meaning, what it does not prove, sources and the first samples of each entry are there."""
    page = document(shelves())
    for entry in entries().values():
        _, _, rest = page.partition(f"### {entry.id}\n")
        own = rest.partition("\n#")[0]
        for text in (entry.means.en.rstrip(".") + ".", entry.proves_not, entry.positive[0], entry.negative[0]):
            assert text in own, entry.id
        assert all(one.project in own and one.place in own and one.versions in own for one in entry.source)
        assert all(flag in own for flag in (*entry.flags, *entry.without))


def test_backticks_in_a_sample_do_not_end_the_code() -> None:
    """A sample with backticks is fenced by more of them."""
    page = document(shelves())
    assert "``Search for `cudaErrorIllegalAddress' in" in page


@pytest.mark.parametrize(
    ("asked", "checked", "told"),
    [
        ("known.in_log", ("in: trainer", "`--a`", "`--b`"), ("phase: loading",)),
        ("debug_mode.in_log", ("`--a`",), ("in: trainer", "phase: loading", "`--b`")),
        ("resume.start", (), ("in: trainer", "phase: loading", "`--a`", "`--b`")),
    ],
)
def test_only_a_limit_that_a_probe_checks_counts(asked: str, checked: tuple[str, ...], told: tuple[str, ...]) -> None:
    """Other limits are printed as a rule that nothing checks, and an order is no limit."""
    entry = msgspec.to_builtins(entries()["fp8-scale"])
    entry |= {"where": ["trainer"], "phase": "loading", "flags": ["a"], "without": ["b"]}
    shelf = msgspec.convert({"about": "x", "asked": [asked], "signatures": [entry]}, Shelf)
    lines = document({"file": shelf}).splitlines()
    counts = next((line for line in lines if line.startswith("- Counts only")), "")
    rule = next((line for line in lines if line.startswith("- As a rule")), "")
    assert [word for word in (*checked, *told) if word in counts] == list(checked)
    assert [word for word in (*checked, *told) if word in rule] == list(told)
    assert "- Says more than `device-assert`, where both match." in lines

"""The shipped signatures keep every rule, and each rule finds an entry that breaks it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from probes.known import entries, shelves
from probes.known.lint import lint
from probes.known.model import Shelf
from runbook.catalog import load_catalog

GOOD: dict[str, Any] = {
    "id": "one",
    "role": "root",
    "cause": "port-conflict",
    "means": {"en": "An address is taken.", "zh": "地址被占用。"},
    "proves_not": "Who holds it.",
    "literals": ["in use: "],
    "pattern": [r"address in use: \d+"],
    "source": [{"project": "a/b", "place": "c.py"}],
    "positive": ["address in use: 80"],
    "negative": ["address in use: none"],
}
OTHER = {**GOOD, "id": "other", "cause": "environment-broken", "pattern": ["in use: "], "negative": ["in use by"]}
CAUSES, PROBES = {"port-conflict", "environment-broken"}, {"known.in_log"}


def told(*changed: dict[str, Any], asked: str = "known.in_log") -> list[str]:
    """Return the faults of a file with these entries."""
    shelf = msgspec.convert(
        {"about": "x", "asked": [asked], "parts": {"N": r"\d+"}, "signatures": list(changed)}, Shelf
    )
    return lint({"file": shelf}, CAUSES, PROBES)


def test_the_shipped_signatures_keep_every_rule() -> None:
    """Nothing is wrong with any file, and the library is not empty by mistake."""
    catalog = load_catalog()
    assert lint(shelves(), catalog.vocabulary, catalog.probes) == []
    assert len(entries()) >= 50


def test_a_good_entry_has_no_fault() -> None:
    """What the other tests break is whole."""
    assert told(GOOD) == []
    assert told({**GOOD, "pattern": ["address in use: <N>"]}) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"cause": "nobody-knows"}, "no cause"),
        ({"cause": ""}, "a root names a cause"),
        ({"role": "benign"}, "a root names a cause"),
        ({"means": {"en": "x"}}, "Chinese"),
        ({"proves_not": ""}, "does not prove"),
        ({"source": []}, "no source"),
        ({"source": [{"project": "a/b", "place": ""}]}, "no source"),
        ({"negative": []}, "a negative sample"),
        ({"positive": ["address in use: x"]}, "does not match"),
        ({"literals": ["elsewhere"]}, "none of its literals"),
        ({"negative": ["address in use: 443"]}, "must not"),
        ({"negative": ["address in use"]}, "near miss"),
        ({"pattern": [], "negative": ["uses of it"]}, "near miss"),
        ({"literals": ["in"]}, "shorter"),
        ({"pattern": ["(unclosed"]}, "no expression"),
        ({"pattern": ["<NOPART>"]}, "no expression"),
        ({"pattern": [r"(?:a+)+ address in use: \d+|address in use: \d+"]}, "inside a wide repeat"),
        ({"pattern": [r"(?:x.{0,900}){2,}|address in use: \d+"]}, "inside a wide repeat"),
        ({"pattern": [r".*a.*a.*a.*a.*a|address in use: \d+"]}, "in a row"),
        ({"pattern": [r"\w+ address in use: \d+|address in use: \d+"]}, "begins with"),
        ({"pattern": [r"(?=[1-9]\d* )\d{1,3} address in use|address in use: \d+"]}, "begins with"),
        ({"over": ["gone"]}, "no entry"),
    ],
)
def test_each_rule_finds_what_breaks_it(change: dict[str, Any], word: str) -> None:
    """One changed field, one kind of fault."""
    assert any(word in one for one in told({**GOOD, **change}))


def test_a_near_miss_of_a_literal_alone_shares_its_words() -> None:
    """No negative can hold a literal that is the whole pattern; one with most of its words is near enough."""
    alone = {**GOOD, "pattern": [], "literals": ["the address is in use"], "positive": ["the address is in use"]}
    assert told({**alone, "negative": ["the address is not in use"]}) == []
    assert any("near miss" in one for one in told({**alone, "negative": ["the port is free"]}))


def test_ids_are_taken_once() -> None:
    """A second entry with an id is refused."""
    assert any("taken" in one for one in told(GOOD, GOOD))


def test_a_probe_that_is_not_there_is_told() -> None:
    """A file names the probe that asks its entries."""
    assert any("no probe" in one for one in told(GOOD, asked="nobody.in_log"))


def test_two_causes_for_one_line_need_an_order() -> None:
    """A sample that an entry of another cause matches is a fault, until one stands over the other."""
    assert any("another cause" in one for one in told(GOOD, OTHER))
    assert told({**GOOD, "over": ["other"]}, {**OTHER, "positive": ["x in use: y"]}) == []

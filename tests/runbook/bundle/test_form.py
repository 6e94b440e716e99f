"""The form of a bundle: which names there are, how large each may be, and what is kept of a catalog."""

from __future__ import annotations

import msgspec
import pytest

from runbook.bundle.form import FILES, MEMBERS, NAME, KeptCatalog, catalog_of, kept_catalog, limit_of, words_of
from runbook.errors import EvidenceError
from runbook.flow.load import flow_hash
from tests.runbook.bundle.cooking import catalog


def test_every_member_has_a_limit_and_nothing_else_a_place() -> None:
    """Each name of a bundle fits the pattern and has its limit; the excerpts of all files fit beside the rest."""
    mib = 1024 * 1024
    limits = {
        "manifest.json": 1, "journal.jsonl": 64, "catalog.json": 16, "excerpts/001-job-log.jsonl": 8,
        "ticket.html": 32, "ticket.txt": 32,
    }  # fmt: skip
    assert {name: limit_of(name) for name in limits} == {name: size * mib for name, size in limits.items()}
    assert all(NAME.fullmatch(name) for name in limits)
    assert limit_of("other.txt") == 0
    assert FILES + 5 <= MEMBERS


def test_a_catalog_comes_back_as_it_was() -> None:
    """Through JSON and back: the same flows under the same hashes, the same causes, and words of probes and slots."""
    before = catalog()
    after = catalog_of(msgspec.json.decode(msgspec.json.encode(kept_catalog(before)), type=KeptCatalog))
    assert after.flows == before.flows
    assert after.hashes == before.hashes == {name: flow_hash(flow) for name, flow in after.flows.items()}
    assert after.vocabulary == before.vocabulary
    assert after.answers == before.answers
    assert [(s.name, s.title, s.holds, s.many) for s in after.slots.values()] == [
        (s.name, s.title, s.holds, s.many) for s in before.slots.values()
    ]


def test_nothing_in_it_can_be_carried_out() -> None:
    """A probe, a browser or a changer of a bundle refuses with the reason."""
    kept = msgspec.structs.replace(kept_catalog(catalog()), changers=("log",))
    there = catalog_of(kept)
    with pytest.raises(EvidenceError, match="holds no evidence"):
        there.changers["log"].change("a", None)  # type: ignore[arg-type]


def test_all_words_are_found() -> None:
    """Keys and values of plain data, at any depth."""
    assert words_of({"a": ["b", {"c": 1, "d": ("e",)}], "f": None}) == ["a", "b", "c", "d", "e", "f"]

"""A bundle that anybody may have made opens to what it says, or is refused by file, member and remedy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.bundle.archive import pack, unpack
from runbook.bundle.form import CATALOG, JOURNAL, MANIFEST, catalog_of, kept_catalog
from runbook.bundle.read import decoded, open_bundle, read_bundle
from runbook.bundle.write import prepare_bundle
from runbook.errors import EvidenceError, RunbookError
from runbook.flow.load import flow_hash
from tests.helpers import hostile_text, is_safe
from tests.runbook.bundle.cooking import catalog, reread

Members = dict[str, bytes]
NO_COLUMNS = {"title": {"en": "", "zh": ""}, "columns": [], "rows": []}


@pytest.fixture
def members(session: Path, tmp_path: Path) -> Members:
    """Return the members of a sound bundle."""
    desk = reread(session)
    (tmp_path / "sound.zip").write_bytes(prepare_bundle(desk, session).body)
    desk.close()
    return unpack(str(tmp_path / "sound.zip"))


def resealed(members: Members) -> Members:
    """Return members whose manifest names them as they are now, as whoever means harm would write it."""
    manifest = json.loads(members[MANIFEST])
    manifest["members"] = {
        name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in members.items()
        if name != MANIFEST
    }
    return {**members, MANIFEST: json.dumps(manifest).encode()}


def refusal(members: Members) -> str:
    """Return why members are refused; the message can be drawn, and a remedy goes with it."""
    with pytest.raises(EvidenceError) as raised:
        decoded("b.zip", members)
    assert raised.value.message.startswith("b.zip: ")
    assert is_safe(raised.value.message)
    assert raised.value.hint
    return raised.value.message


def line_of(members: Members, kind: str) -> tuple[int, Any]:
    """Return number from 0 and content of the first line of the journal with an event of a kind."""
    for number, line in enumerate(members[JOURNAL].splitlines()):
        plain = json.loads(line)
        if plain.get("event", {}).get("type") == kind:
            return number, plain
    raise AssertionError(kind)


def with_event(members: Members, kind: str, change: Callable[[Any], None]) -> Members:
    """Return members in whose journal one event was changed."""
    number, plain = line_of(members, kind)
    change(plain)
    lines = members[JOURNAL].splitlines()
    lines[number] = json.dumps(plain).encode()
    return resealed({**members, JOURNAL: b"\n".join(lines) + b"\n"})


def with_catalog(members: Members, change: Callable[[Any], None]) -> Members:
    """Return members whose catalog was changed."""
    plain = json.loads(members[CATALOG])
    change(plain)
    return resealed({**members, CATALOG: json.dumps(plain).encode()})


def test_it_opens_to_the_state_of_the_session(session: Path, members: Members) -> None:
    """State and report are those of the session; the flows are the same models under the same hashes."""
    desk, bundle = reread(session), decoded("b.zip", members)
    opened = open_bundle(bundle)
    assert opened.state == desk.state
    assert opened.report() == desk.report()
    assert opened.session_id == session.name
    assert opened.catalog.flows == desk.catalog.flows
    assert {name: flow_hash(flow) for name, flow in opened.catalog.flows.items()} == desk.catalog.hashes
    assert opened.catalog.vocabulary == desk.catalog.vocabulary
    assert opened.triage_probes(heavy=True) == desk.triage_probes(heavy=True)
    assert opened.warnings == []
    desk.close()
    opened.close()


def test_what_is_kept_of_a_catalog_cannot_be_asked() -> None:
    """Names, words and order stay; to run a probe of it, or to change a file, is an error that says why."""
    kept = msgspec.json.decode(msgspec.json.encode(kept_catalog(catalog())), type=type(kept_catalog(catalog())))
    there = catalog_of(kept)
    assert {p.id: (p.title, p.needs, p.answers) for p in there.probes.values()} == {
        p.id: (p.title, p.needs, p.answers) for p in catalog().probes.values()
    }
    assert list(there.slots) == list(catalog().slots)
    with pytest.raises(EvidenceError, match="holds no evidence"):
        there.probes["kitchen.oven"].run(None, None)  # type: ignore[arg-type]


def test_a_member_that_was_changed_is_named(members: Members) -> None:
    """Each member but the manifest is held to its hash; one that is missing or added is named too."""
    for name in members:
        if name != MANIFEST:
            assert name in refusal({**members, name: members[name] + b" "})
            assert f"{name} is missing" in refusal({other: members[other] for other in members if other != name})
    assert "ticket.md: manifest.json does not name" in refusal({**members, "ticket.md": b"x"})
    assert "manifest.json is missing" in refusal({})
    for name in (JOURNAL, CATALOG):
        assert f"{name} is missing" in refusal(resealed({other: members[other] for other in members if other != name}))


def test_a_newer_form_says_which_version_wrote_it(members: Members) -> None:
    """A schema that this version does not know is no damage: version and way out are named."""
    manifest = json.loads(members[MANIFEST])
    newer = {"tool": manifest["tool"], "schema": 2, "version": "9.1\x1b[2J", "whatever": [1]}
    with pytest.raises(EvidenceError) as raised:
        decoded("b.zip", {**members, MANIFEST: json.dumps(newer).encode()})
    assert raised.value.message == "b.zip: version 9.1 wrote this bundle in a form that this version cannot read"
    assert "install that version" in raised.value.hint
    other = {**manifest, "tool": "other"}
    assert "another tool" in refusal({**members, MANIFEST: json.dumps(other).encode()})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b'{"tool":"slime-runbook"}', b"[" * 100_000])
@pytest.mark.parametrize("name", [MANIFEST, JOURNAL, CATALOG, "excerpts/001-kitchen-log.jsonl"])
def test_garbage_in_a_member_names_the_member(members: Members, name: str, content: bytes) -> None:
    """What is no JSON, or JSON of another shape, is refused with the member's name, however deep it nests."""
    changed = {**members, name: content}
    message = refusal(changed if name == MANIFEST else resealed(changed))
    assert name in message


@pytest.mark.parametrize(
    ("kind", "change", "word"),
    [
        ("found", lambda e: e["event"]["finding"]["tables"][0]["rows"][0].append("x"), "a table whose rows"),
        ("found", lambda e: e["event"]["finding"].update(tables=[NO_COLUMNS]), "a table"),
        ("found", lambda e: e["event"]["finding"].update(verdict="fine"), "damaged"),
        ("found", lambda e: e["event"]["finding"]["citations"][0].update(line=-1), "before the file"),
        ("found", lambda e: e["event"]["finding"]["citations"][0].update(offset=-7), "before the file"),
        ("found", lambda e: e["event"]["finding"]["citations"][0].update(time=1e300), "no time"),
        ("answered", lambda e: e["event"].update(by="nobody"), "damaged"),
        ("flow", lambda e: e.update(t=-5.0), "its time"),
        ("flow", lambda e: e.update(t=1e300), "its time"),
        ("flow", lambda e: e.update(n=99), "damaged"),
    ],
)  # fmt: skip
def test_an_event_that_cannot_be_drawn_is_named(
    members: Members, kind: str, change: Callable[[Any], None], word: str
) -> None:
    """An event out of shape, out of order or out of time is refused with its line."""
    if kind == "found":  # the one that has a table and a citation
        lines = [line for line in members[JOURNAL].splitlines() if b'"type":"found"' not in line or b"By shelf" in line]
        plain = [json.loads(line) for line in lines]
        for number, record in enumerate(plain[1:]):
            record["n"] = number
        members = {**members, JOURNAL: b"".join(json.dumps(one).encode() + b"\n" for one in plain)}
    message = refusal(with_event(members, kind, change))
    assert word in message
    assert "line" in message


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("cells", lambda g: g["cells"].__setitem__(0, "gbb")),
        ("points", lambda g: g["points"].reverse()),
        ("points", lambda g: g["points"][0].__setitem__(0, 1e999)),
    ],
    ids=["grid", "order", "infinite"],
)
def test_a_picture_that_cannot_be_drawn_is_refused(members: Members, what: str, change: Callable[[Any], None]) -> None:
    """Pictures and plots whose shape the drawing relies on are held to it."""
    lines = [json.loads(line) for line in members[JOURNAL].splitlines()]
    (found,) = [one["event"]["finding"] for one in lines if one.get("event", {}).get("finding", {}).get("plots")]
    change(found["grids"][0] if what == "cells" else found["plots"][0]["curves"][0])
    changed = b"".join(json.dumps(one).encode() + b"\n" for one in lines)
    assert "line" in refusal(resealed({**members, JOURNAL: changed}))


def test_an_event_of_a_newer_kind_is_passed_over_and_told(members: Members) -> None:
    """A kind of event that this version does not know costs nothing but a warning."""
    changed = with_event(members, "note", lambda e: e.update(event={"type": "telepathy", "words": "x"}))
    bundle = decoded("b.zip", changed)
    assert len(bundle.warnings) == 1
    assert "does not know" in bundle.warnings[0].en


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda c: c["flows"][0]["flow"]["nodes"]["oven-hot"]["branches"].update(hot="nowhere"), "unknown node"),
        (lambda c: c["flows"][0]["flow"].update(start="nowhere"), "start names no node"),
        (lambda c: c["flows"][0]["flow"]["nodes"]["taste"]["branches"].update(yes="oven-hot"), "cycle"),
        (lambda c: c["flows"].append(c["flows"][0]), "a flow is there twice"),
        (lambda c: c["flows"][0]["flow"]["title"].update(en="x\x1b[2Jy"), "a control"),
        (lambda c: c["flows"][0]["flow"]["title"].update(zh="\u202e"), "a control"),
        (lambda c: c["probes"][0].update(id="a\x00"), "a control"),
        (lambda c: c["flows"][0].pop("flow"), "cannot be read"),
        (lambda c: c.update(flows=7), "cannot be read"),
    ],
)  # fmt: skip
def test_a_flow_that_cannot_be_walked_is_refused(members: Members, change: Callable[[Any], None], word: str) -> None:
    """A flow that leads nowhere or round and round, or holds what a terminal acts upon, is refused by name."""
    message = refusal(with_catalog(members, change))
    assert "catalog.json" in message
    assert word in message


@pytest.mark.parametrize(
    "line", [b'[-1,2,1,false,"x"]', b'[0,-1,1,false,"x"]', b'[0,1,0,false,"x"]', b"[0,1,1,false]", b"[0,1,1,false,7]"]
)  # fmt: skip
def test_an_excerpt_with_impossible_lines_is_refused(members: Members, line: bytes) -> None:
    """Lines that overlap, go back or have no text are refused with the excerpt's name."""
    name = next(name for name in members if name.startswith("excerpts/"))
    head = members[name].split(b"\n", 1)[0]
    assert name in refusal(resealed({**members, name: head + b"\n" + line + b"\n"}))


@given(st.data())
def test_hostile_words_in_events_are_taken_as_words(data: st.DataObject) -> None:
    """Whatever stands in the strings of events, it is read or refused by an error of ours; messages can be drawn."""
    words = data.draw(hostile_text)
    header = {"tool": "slime-runbook", "schema": 1, "version": "1", "id": words, "began": 0}
    note = {"n": 0, "t": 1.0, "event": {"type": "note", "words": words, "who": words, "flow": words, "node": words}}
    journal = b"".join(json.dumps(one).encode() + b"\n" for one in (header, note))
    manifest = {
        "tool": "slime-runbook",
        "schema": 1,
        "version": words,
        "written": 0,
        "session": words,
        "language": "en",
    }
    members = resealed(
        {MANIFEST: json.dumps(manifest).encode(), JOURNAL: journal, CATALOG: b'{"flows":[],"vocabulary":{}}'}
    )
    told, said = "", [words]
    try:
        said = [note.words for note in open_bundle(decoded("b.zip", members)).state.notes]
    except RunbookError as error:
        told = error.message
    assert is_safe(told)
    assert said == [words]


def test_reading_takes_the_file_as_it_is(members: Members, tmp_path: Path) -> None:
    """From the disk, the same bundle comes out; its manifest says what it is."""
    (tmp_path / "b.zip").write_bytes(pack(members))
    bundle = read_bundle(str(tmp_path / "b.zip"))
    assert bundle.manifest.language == "en"
    assert set(bundle.manifest.flows) == {"bread", "soup"}

"""Every string of every event is redacted but ids, in one go with excerpts and ticket, and the replay stays whole."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.bundle.form import Excerpt, KeptLine
from runbook.bundle.redaction import CODED, IDS, PATHS, redact_all, replaced, strings
from runbook.evidence import Item
from runbook.finding import Citation, Curve, Finding, Grid, Measurement, Plot, Proposal, Table, Verdict
from runbook.session import events as ev
from runbook.text import Text
from runbook.ticket.preview import Dropping
from runbook.ticket.redact import Identity, Key
from runbook.walk import By
from tests.helpers import hostile_text

MARK = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
SAID = Text(f"by lihua {MARK}", "由 lihua")


def nothing(_: Key) -> Dropping:
    """Drop nothing."""
    return Dropping((), "en")


def marked(text: str) -> str:
    """Return a text with what must not leave in it."""
    return f"{text} of lihua with {MARK}"


FINDING = Finding(
    Verdict.WARNING,
    "raw",
    SAID,
    (Citation("/home/lihua/a.log", 3, 40, marked("line")),),
    (Measurement(marked("heat"), 1.0, marked("C"), 2.0, marked("page 4")),),
    (Table(SAID, (marked("shelf"), "b"), ((marked("upper"), "1"),)),),
    (Grid(SAID, (marked("row"),), (marked("column"),), ("g",), (("g", SAID, "good"),)),),
    (Proposal(marked("a.patch"), "/home/lihua/a.sh", marked("+ x")),),
    (
        Plot(
            SAID, marked("step"), marked("C"), (Curve(marked("upper"), ((1.0, 2.0),)),), ((1.0, SAID),), ((2.0, SAID),)
        ),
    ),
    SAID,
    ("log",),
    "kitchen.oven",
    1.5,
)
EVENTS: tuple[ev.Event, ...] = (
    ev.Opened("0.1", {"bread": "abc"}, "/home/lihua/run", "lihua"),
    ev.EvidenceAdded((Item("log", "/home/lihua/a.log", SAID, "given", run="run-2"),)),
    ev.EvidenceDropped("log", "/home/lihua/a.log", "run-2"),
    ev.Found(FINDING, "run-2"),
    ev.FlowStarted("bread"),
    ev.Answered("bread", "oven-hot", "hot", By.PERSON, "lihua", ("kitchen.oven",)),
    ev.WentBack("bread", "oven-hot"),
    ev.RunAttached("bread", "other-flour", "run-2", "/home/lihua/again", (SAID,), (SAID,)),
    ev.CopyChanged(
        "bread", "other-flour", "/home/lihua/a.sh", "/home/lihua/b.sh", marked("+ x"), (SAID,), (SAID,), marked("sh")
    ),
    ev.Noted(marked("note"), "lihua", "bread", "oven-hot"),
    ev.Fixed("oven-off", marked("fixed"), "lihua"),
    ev.Judged(
        {"oven-off": ev.Stood("confirmed", "bread", "oven-off")},
        {"bread": {"oven-hot": ("hot", "dough")}},
        {"bread": "taste"},
    ),
    ev.Exported("html", "/home/lihua/t.html"),
    ev.Left("lihua", "oven-off", 3),
)  # fmt: skip


def redacted(*events: ev.Event, excerpts: tuple[Excerpt, ...] = (), ticket: Any = ()) -> Any:
    """Return everything redacted for an account called lihua."""
    records = [ev.Record(n, float(n), event) for n, event in enumerate(events)]
    return redact_all(records, excerpts, ticket, Identity(("lihua",)), None, dropping=nothing)


def test_every_kind_of_event_is_here() -> None:
    """The events above are of every kind there is, so a new kind must be looked at."""
    assert {type(event) for event in EVENTS} >= set(get_args(ev.Event))


def test_no_string_but_ids_stays() -> None:
    """Nothing private is in any event; every id, number and code is as it was."""
    clean = redacted(*EVENTS).records
    text = msgspec.json.encode(clean).decode()
    assert "lihua" not in text
    assert MARK not in text
    assert list(map(ids, clean)) == [ids(ev.Record(n, float(n), event)) for n, event in enumerate(EVENTS)]
    assert clean[0].event == ev.Opened("0.1", {"bread": "abc"}, "/home/user-1/run", "user-1")
    assert clean[4:7] == tuple(
        msgspec.structs.replace(one, event=event)
        for one, event in zip(
            clean[4:7], (EVENTS[4], msgspec.structs.replace(EVENTS[5], who="user-1"), EVENTS[6]), strict=True
        )
    )
    assert clean[11].event == EVENTS[11]


def ids(value: Any) -> list[Any]:
    """Return everything in a value that is no text for people: ids, codes, numbers, in order."""
    found: list[Any] = []
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            place, inner = (type(value), field), getattr(value, field)
            if place in IDS:
                found.append(inner)
            elif place in CODED:
                found.append([part for row in inner for part in row if isinstance(part, str)])
            else:
                found += ids(inner)
    elif isinstance(value, list | tuple):
        for part in value:
            found += ids(part)
    elif not isinstance(value, str) or isinstance(value, Verdict | By):
        found.append(value)
    return found


def test_only_named_fields_are_ids() -> None:
    """Each field that is kept exists; a structure without one there is redacted whole."""
    for kind, field in IDS | CODED | PATHS:
        assert field in kind.__struct_fields__  # type: ignore[attr-defined]
    assert list(strings(ev.Noted("a", "b", "c", "d"))) == ["a", "b"]
    assert list(strings(Grid(Text("t", "u"), ("r",), ("c",), ("g",), (("g", Text("x", "y"), "good"),)))) == list(
        "turcxy"
    )


def test_a_name_that_only_the_ticket_tells_is_hidden_in_events_and_excerpts() -> None:
    """All texts are redacted in one go: what one of them gives away is hidden in every other."""
    lines = (KeptLine(0, 30, 1, False, "baked by zhangwei today"),)
    ticket = {"facts": [["home", "/home/zhangwei/x"]]}
    result = redacted(ev.Noted("ask zhangwei"), excerpts=(Excerpt("a.log", "text", 30, lines=lines),), ticket=ticket)
    (name,) = result.used["user"]
    assert result.records[0].event.words == f"ask {name}"
    assert result.excerpts[0].lines[0].text == f"baked by {name} today"


def test_an_excerpt_is_called_as_its_citations_call_it() -> None:
    """The name of a file is redacted to one form in items, citations, copies and excerpts."""
    result = redacted(*EVENTS, excerpts=(Excerpt("/home/lihua/a.log", "text"), Excerpt("/home/lihua/b.sh", "text")))
    assert [one.path for one in result.excerpts] == ["/home/user-1/a.log", "/home/user-1/b.sh"]
    assert result.records[1].event.items[0].path == "/home/user-1/a.log"
    assert result.records[3].event.finding.citations[0].path == "/home/user-1/a.log"
    assert result.records[8].event.path == "/home/user-1/b.sh"


def test_two_files_never_get_one_name() -> None:
    """Where hiding would make two names equal, the second is told apart in every place."""
    paths = ("/x/GPU-node-17.example.com.log", "/x/gpu-node-17.example.com.log")
    events = (ev.EvidenceAdded(tuple(Item("log", path, Text("", "")) for path in paths)),)
    excerpts = tuple(Excerpt(path, "text") for path in paths)
    result = redacted(*events, excerpts=excerpts)
    names = [item.path for item in result.records[0].event.items]
    assert [one.path for one in result.excerpts] == names
    assert len(set(names)) == 2


@pytest.mark.parametrize("headless", [False, True])
def test_a_key_over_many_lines_is_hidden_line_by_line(headless: bool) -> None:
    """An armoured key goes also where the excerpt begins inside it; lines around it stay."""
    body = ["MIIEpAIBAAKCAQEA7bq0Zx2m3n4o5p6q", "r8s9t0uAvBwCxDyEzF1G2H3I4J5K6L7"]
    texts = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "all is well here"]
    texts = texts[1:] if headless else ["before it", *texts]
    lines, at = [], 0
    for text in texts:
        lines.append(KeptLine(at, len(text) + 1, None, False, text))
        at += len(text) + 1
    shown = [line.text for line in redacted(excerpts=(Excerpt("a", "text", at, lines=tuple(lines)),)).excerpts[0].lines]
    assert not any(part in text for text in shown for part in body)
    assert shown[-1] == "all is well here"
    assert headless or shown[0] == "before it"
    assert len(shown) == len(texts)


def test_what_was_dropped_is_in_no_event() -> None:
    """A dropped text goes from excerpts, notes and findings, and from paths: evidence and excerpt still have one."""
    records = [ev.Record(0, 0.0, ev.Noted("switch it off at noon")), ev.Record(1, 0.0, EVENTS[1])]
    excerpts = (Excerpt("/home/lihua/a.log", "text", 22, lines=(KeptLine(0, 22, 1, False, "switch it off at noon"),)),)
    out = redact_all(records, excerpts, (), Identity(("lihua",)), None,
                     dropping=lambda _: Dropping(("switch it off at noon", "/home/user-1/a.log"), "en"))  # fmt: skip
    assert "noon" not in str(out)
    taken = out.records[1].event
    assert isinstance(taken, ev.EvidenceAdded)
    assert out.excerpts[0].path == taken.items[0].path == "[left out by the sender]"


@given(st.lists(hostile_text, min_size=2, max_size=6))
def test_hostile_texts_are_replaced_in_their_places(texts: list[str]) -> None:
    """Whatever the texts, as many come out as went in, and redacting what came out changes nothing more."""
    first = redacted(*(ev.Noted(text, text) for text in texts))
    again = redacted(*(record.event for record in first.records))
    assert [record.event for record in again.records] == [record.event for record in first.records]
    assert len(first.records) == len(texts)
    event = ev.Noted(*texts[:2])
    assert replaced(event, lambda text: text) == event

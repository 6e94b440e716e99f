"""Whatever is private, wherever it stands and in whatever format the ticket is written: none of it survives."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.evidence import Item
from runbook.finding import Citation, Curve, Finding, Grid, Plot, Proposal, Table, Verdict
from runbook.session import events as ev
from runbook.session.state import SessionState, fold
from runbook.text import sanitise
from runbook.ticket.export import finish
from runbook.ticket.redact import Identity, redact
from runbook.ticket.renderers import formats, renderer
from runbook.ticket.scan import scan
from tests.runbook.ticket.corpus import Plant, everything
from tests.runbook.ticket.sample import FLOWS, STACKED, drawn_state, sample, text, triage_state

PLANTS = everything()


def _found(**changes: object) -> Finding:
    """Return a finding that says that something is wrong, with these fields."""
    return msgspec.structs.replace(STACKED, probe="planted", **changes)


def _quoted(lines: list[str]) -> SessionState:
    return drawn_state(_found(citations=tuple(Citation("job.log", n, n, line) for n, line in enumerate(lines, 1))))


def _summed_up(lines: list[str]) -> SessionState:
    findings = [_found(summary=text(line), settle_with=text(line)) for line in lines]
    findings = [msgspec.structs.replace(one, probe=f"planted.{n}") for n, one in enumerate(findings)]
    unknown = [
        msgspec.structs.replace(one, probe=f"open.{n}", verdict=Verdict.UNKNOWN, answer=None)
        for n, one in enumerate(findings[:20])
    ]
    return drawn_state(*findings, *unknown)


def _files(lines: list[str]) -> SessionState:
    return drawn_state(_found(citations=tuple(Citation(f"/run/{line}", 1, 1, "x") for line in lines)))


def _evidence(lines: list[str]) -> SessionState:
    items = tuple(Item("log", f"/run/{line}", text(line), "found") for line in lines)
    return fold(triage_state(), ev.Record(90, 1795978000.0, ev.EvidenceAdded(items)), FLOWS)


def _cells(lines: list[str]) -> SessionState:
    table = Table(text("Arguments"), ("name", "value"), tuple((f"line {n}", line) for n, line in enumerate(lines)))
    return drawn_state(_found(tables=(table,)))


def _diff(lines: list[str]) -> SessionState:
    findings = []
    for start in range(0, len(lines), 8):
        diff = "\n".join(f"{'+-'[n % 2]} {line}" for n, line in enumerate(lines[start : start + 8]))
        finding = _found(proposals=(Proposal("run.sh.patch", "/run/run.sh", diff),))
        findings.append(msgspec.structs.replace(finding, probe=f"planted.{start}"))
    return drawn_state(*findings)


def _drawn(lines: list[str]) -> SessionState:
    curves = tuple(Curve(line, ((0.0, 1.0), (1.0, 2.0))) for line in lines)
    plots = tuple(
        Plot(text(line), "step", line, (curve,), ((0.5, text(line)),), ((1.5, text(line)),))
        for line, curve in zip(lines, curves, strict=True)
    )
    grid = Grid(text(lines[0]), tuple(lines), ("a", "b"), ("=x",) * len(lines), (("=", text(lines[1]), "good"),))
    return drawn_state(_found(plots=plots, grids=(grid,)))


def _noted(lines: list[str]) -> SessionState:
    noted = ev.Noted("\n".join(lines), "someone")
    return fold(triage_state(), ev.Record(90, 1795978000.0, noted), FLOWS)


CHANNELS: dict[str, Callable[[list[str]], SessionState]] = {
    "quoted lines": _quoted,
    "summaries": _summed_up,
    "names of cited files": _files,
    "names of evidence": _evidence,
    "cells of tables": _cells,
    "lines of a diff": _diff,
    "words of pictures": _drawn,
    "a note in the journal": _noted,
}


def readings(content: str) -> Iterable[str]:
    """Return how a receiver may read a text: as written, without HTML or JSON escapes, and with its breaks undone."""
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), html.unescape(content))
    return content, plain, re.sub(r"\\(.)", r"\1", plain), re.sub(r"[\u200b\u00ad]", "", plain)


def survivors(content: str, plants: Iterable[Plant]) -> list[tuple[str, str]]:
    """Return the names of the plants that can still be read, with what is left of each."""
    views = list(dict.fromkeys(readings(content)))
    return [(p.name, piece) for p in plants for piece in p.private if any(piece in view for view in views)]


@pytest.mark.parametrize("channel", list(CHANNELS))
def test_nothing_private_survives_in_any_format(channel: str) -> None:
    """Planted through one channel only, every secret, name and address is gone from each format that exists."""
    raw = sample(CHANNELS[channel]([plant.line for plant in PLANTS]))
    before = msgspec.json.encode(raw).decode()
    assert len(survivors(before, PLANTS)) > len(PLANTS) * 0.9, "the plants stand in the transcript"
    for format in formats():
        chosen = renderer(format)
        content, _ = finish(raw, chosen, Identity())
        for _, part in chosen.read(content):
            assert survivors(part, PLANTS) == []


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_each_is_hidden_by_itself(plant: Plant) -> None:
    """One line alone is enough: nothing was learnt elsewhere; redacting again changes nothing; the scan agrees."""
    once = redact([plant.line])
    assert survivors(once.texts[0], [plant]) == []
    assert redact(once.texts).texts == once.texts
    assert scan(once.texts[0], once.key.words) == []


NEIGHBOURS = st.sampled_from(
    ["", " ", "  ", ": ", ", ", "; ", " | ", "\t", "(", "[", '"', "'", " - ", "+ ", " -> ", "，", "……", "\x1b[36m"]
) | st.text(alphabet=" ,;:!?()[]{}<>|~#+*'\"中文\n", max_size=8)
CLOSED = st.sampled_from(["", " ", ", ", "; ", " | ", ")", "]", " and so on", " #", "，", " \x1b[0m", "\n", " ."])


@given(st.sampled_from(PLANTS), NEIGHBOURS, CLOSED, st.integers(0, 3), st.sampled_from(["", "x y z ", "step 3: ok "]))
@settings(max_examples=300, deadline=None)
def test_neighbours_and_place_make_no_difference(plant: Plant, before: str, after: str, copies: int, head: str) -> None:
    """At any place of a line, between any punctuation, once or several times, what is private is gone."""
    whole = plant.name in WHOLE_LINES
    line = plant.line if whole else f"{head}{before}{plant.line}{after}"
    once = redact([sanitise(line) if whole else sanitise(f"{line}{(' ' + plant.line) * copies}")])
    assert survivors(once.texts[0], [plant]) == []
    assert scan(once.texts[0], once.key.words) == []


@pytest.mark.parametrize(("before", "after"), [("请看", "，谢谢"), ("用", "。"), ("报错：", "（重试）")])
def test_chinese_around_makes_no_difference(before: str, after: str) -> None:
    """Chinese is written without blanks: what stands right in it is hidden, too."""
    for plant in PLANTS:
        if plant.name not in WHOLE_LINES:
            once = redact([f"{before}{plant.line}{after}"])
            assert survivors(once.texts[0], [plant]) == []
            assert scan(once.texts[0], once.key.words) == []


WHOLE_LINES = {
    "people: ls", "people: ps", "machines: mpi", "machines: etc hosts", "people: identity card", "machines: syslog",
}  # fmt: skip
"""What is known by its place in the line only."""


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_other_values_of_the_same_formats(seed: int) -> None:
    """Whatever the generator makes up, what a name or a prefix announces is hidden."""
    plants = [plant for plant in everything(seed) if "bare" not in plant.name]
    for plant, hidden in zip(plants, redact([plant.line for plant in plants]).texts, strict=True):
        assert survivors(hidden, [plant]) == []


def test_the_report_says_what_was_hidden_how_often_and_where() -> None:
    """Every kind that was planted in a note is counted, under the part of the ticket in which notes are read."""
    raw = sample(_noted([plant.line for plant in PLANTS]))
    content, key = finish(raw, renderer("json"), Identity())
    report = msgspec.json.decode(content)["redaction"]
    counts = {line["kind"]: line["values"] for line in report}
    assert {"keys and tokens", "e-mail addresses", "phone numbers", "IP addresses", "host names", "user names"} == set(
        counts
    )
    assert all("Problem" in line["where"] for line in report)
    assert all(line["count"] >= 1 for line in report)
    assert counts["phone numbers"] == len([name for kind, name in key.names if kind == "phone"])


def test_pseudonyms_are_the_same_in_every_format() -> None:
    """user-1 of the Markdown ticket is user-1 of the HTML ticket."""
    raw = sample(_quoted([plant.line for plant in PLANTS]))
    keys = [finish(raw, renderer(format), Identity())[1].names for format in formats()]
    assert all(key == keys[0] for key in keys)

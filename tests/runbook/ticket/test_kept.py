"""What only looks private stays as it is, and what is tried only where a word stands is found as without that."""

from __future__ import annotations

import re
import string
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.ticket import contacts, credentials, names, tokens
from runbook.ticket.redact import redact
from runbook.ticket.scan import scan
from runbook.ticket.span import Gate
from tests.runbook.ticket.corpus import everything

DATA = Path(__file__).parents[2] / "data"
KEPT = (DATA / "redaction" / "kept.txt").read_text().splitlines()


@pytest.mark.parametrize("line", KEPT)
def test_a_line_without_anything_private_stays(line: str) -> None:
    """Tensor names, hashes, ids, versions, numbers, settings, paths of nobody: untouched, and let through."""
    assert redact([line]).texts == (line,)
    assert scan(line, {}) == []


def test_they_stay_beside_everything_that_is_hidden() -> None:
    """What was learnt from other lines tears nothing out of them."""
    texts = [plant.line for plant in everything()] + KEPT
    hidden = redact(texts).texts[-len(KEPT) :]
    assert hidden == tuple(KEPT)


def test_a_healthy_log_loses_no_number() -> None:
    """In the logs of this repository every number, tensor and metric is still there once addresses are hidden."""
    for path in sorted((DATA / "logs").glob("*.log")):
        lines = path.read_text(errors="replace").splitlines()
        for before, after in zip(lines, redact(lines).texts, strict=True):
            quads = re.compile(r"\d+\.\d+\.\d+\.\d+")
            numbers = re.compile(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?(?![\w.])")
            assert numbers.findall(quads.sub("", before)) == numbers.findall(after), path.name


@given(st.lists(st.sampled_from(["model", "layers", "mlp", "gate_proj", "weight", "0", "17", "experts"]), min_size=2))
def test_dotted_names_stay(parts: list[str]) -> None:
    """Any name of a tensor stays, however it is put together."""
    name = ".".join(["model", *parts, "weight"])
    assert redact([f"missing key {name} in shard"]).texts == (f"missing key {name} in shard",)


@given(st.text("0123456789abcdef", min_size=40, max_size=40), st.uuids())
def test_commits_and_ids_stay(commit: str, id: object) -> None:
    """Forty hexadecimal digits and a UUID are no secret unless something says so."""
    line = f"at commit {commit} rollout {id} done"
    assert redact([line]).texts == (line,)


@given(st.integers(0, 2**63), st.floats(allow_nan=False, width=32), st.lists(st.integers(0, 300), max_size=4))
def test_numbers_stay(number: int, value: float, shape: list[int]) -> None:
    """Numbers of bytes, metrics and shapes are no telephones and no addresses."""
    line = f"allocated {number} bytes, loss {value!r}, shape {shape}"
    assert redact([line]).texts == (line,)


GATES = [
    (f"{module.__name__.rpartition('.')[2]}.{name}.{number}", gate)
    for module in (tokens, credentials, names, contacts)
    for name, value in vars(module).items()
    for number, gate in enumerate(value if isinstance(value, tuple) else (value,))
    if isinstance(gate, Gate)
]
LINES = [plant.line for seed in (1, 2) for plant in everything(seed)] + KEPT


@pytest.mark.parametrize(("name", "gate"), GATES, ids=[name for name, _ in GATES])
def test_a_gate_finds_what_its_pattern_finds(name: str, gate: Gate) -> None:
    """The words by which most lines are passed over cost no hit, on all plants and in either case of letters."""
    for line in (*LINES, *map(str.upper, LINES), *map(str.lower, LINES)):
        plain = [match.span() for match in gate.pattern.finditer(line)]
        assert [match.span() for match in gate.finditer(line)] == plain


@given(st.sampled_from(GATES), st.text(string.printable + "手机电话", max_size=60))
def test_a_gate_finds_what_its_pattern_finds_in_any_text(named: tuple[str, Gate], text: str) -> None:
    """Also in text that nobody planted."""
    gate = named[1]
    assert [m.span() for m in gate.finditer(text)] == [m.span() for m in gate.pattern.finditer(text)]


def test_there_are_gates() -> None:
    """The list above is not empty by an accident of how modules are laid out."""
    assert len(GATES) > 25
    assert isinstance(tokens, ModuleType)

"""A secret that shows only beside the strings around it is hidden, and nothing beside an ordinary name is."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.finding import Table
from runbook.session import events as ev
from runbook.session.state import fold
from runbook.ticket import near
from runbook.ticket.export import finish
from runbook.ticket.redact import Identity, redact_transcript
from runbook.ticket.renderers import formats, renderer
from runbook.ticket.transcript import Transcript
from tests.runbook.ticket.corpus import MIXED, Maker
from tests.runbook.ticket.sample import FLOWS, STACKED, drawn_state, sample, text, triage_state

MAKE = Maker(7)
KEY = MAKE.hex(40)
WORD = "x8tn8e9uvs"


def _table(columns: tuple[str, ...], *rows: tuple[str, ...]) -> Transcript:
    table = Table(text("Arguments"), columns, rows)
    return sample(drawn_state(msgspec.structs.replace(STACKED, probe="args.table", tables=(table,))))


def _note(*lines: str) -> Transcript:
    return sample(fold(triage_state(), ev.Record(90, 1795978000.0, ev.Noted("\n".join(lines), "someone")), FLOWS))


TORN = [
    ("row of a table", _table(("name", "value"), ("wandb_key", KEY), ("lr", "1e-6")), KEY),
    ("row, dashes", _table(("flag", "value"), ("--wandb-key", WORD)), WORD),
    ("row with a password", _table(("name", "value", "default"), ("db.password", WORD, "None")), WORD),
    ("under a column", _table(("host", "api_key"), ("a", WORD)), WORD),
    ("a quoted cell", _table(("name", "value"), ("'hf_token'", f"'{WORD}'")), WORD),
    ("split command", _note("python train.py \\", "  --wandb-key \\", f"  {WORD} \\", "  --lr 1e-6"), WORD),
    ("split in a diff", _note("+ --wandb-key \\", f"+   {WORD}"), WORD),
    ("yaml over two lines", _note("password:", f"  {WORD}"), WORD),
    ("list of a command", _note("- --wandb-key", f"- {WORD}"), WORD),
    ("wrapped token", _note("it uses ghp_" + KEY[:9], KEY[9:] + " here"), KEY[9:36]),
    (
        "key over many lines",
        _note("-----BEGIN OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1r", "c2hvcnQ=", "-----END OPENSSH PRIVATE KEY-----"),
        "c2hvcnQ",
    ),
    (
        "key in a diff",
        _note("+-----BEGIN CERTIFICATE-----", "+b3BlbnNzaC1rZXk", "+-----END CERTIFICATE-----"),
        "b3BlbnNz",
    ),
]


@pytest.mark.parametrize(("raw", "private"), [case[1:] for case in TORN], ids=[case[0] for case in TORN])
def test_a_name_and_its_value_may_be_apart(raw: Transcript, private: str) -> None:
    """In two cells, under the name of a column, on two lines: hidden in every format, and stable."""
    assert private in msgspec.json.encode(raw).decode()
    hidden, key = redact_transcript(raw, Identity())
    again, _ = redact_transcript(hidden, Identity(), key)
    assert msgspec.structs.replace(again, redaction=()) == msgspec.structs.replace(hidden, redaction=())
    for format in formats():
        content, _ = finish(raw, renderer(format), Identity())
        assert private.encode() not in content


def test_a_key_over_many_lines_ends_where_it_ends() -> None:
    """What follows the last line of an armoured key is read as ever."""
    lines = ["x", "-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----", "loss 0.1"]
    assert [number for number, _ in near.between(lines)] == [2, 3]


@pytest.mark.parametrize(
    "lines",
    [
        ["max_tokens", "4096"],
        ["wandb_key", "None"],
        ["token", "Qwen3"],
        ["the password", "is required"],
        ["eos_token:", "'<|im_end|>'"],
        ["model.layers.0.mlp.gate.weight", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"],
        ["api_key", "secret-1"],
        ["a sentence that says api_key", "and goes on"],
        ["key", "value"],
    ],
)
def test_ordinary_neighbours_stay(lines: list[str]) -> None:
    """Numbers, placeholders, words, hashes beside tensors, and pseudonyms are no secrets."""
    kept = [span for number, span in near.between(lines) if not lines[number].startswith("secret-")]
    assert kept == []


@given(st.lists(st.text(max_size=30) | st.sampled_from(["password", "--wandb-key", "-----BEGIN KEY-----", "ghp_"])))
@settings(max_examples=200, deadline=None)
def test_a_span_is_within_its_string(lines: list[str]) -> None:
    """Whatever the strings are, what is reported lies in one of them."""
    for strings, found in ((lines, near.between(lines)), (lines[1:], near.of_columns(lines, lines[1:]))):
        for number, span in found:
            assert 0 <= span.start < span.end <= len(strings[number])


@given(st.text(MIXED, min_size=36, max_size=36), st.integers(4, 32))
def test_a_wrapped_token_is_found_at_any_break(random: str, at: int) -> None:
    """A terminal may break a token anywhere after its first letters; both pieces are found."""
    token = "ghp_" + random
    lines = [f"said {token[: at + 4]}", f"{token[at + 4 :]} and"]
    spans = {number: lines[number][span.start : span.end] for number, span in near.between(lines)}
    assert spans == {0: token[: at + 4], 1: token[at + 4 :]}


@pytest.mark.parametrize(
    ("lines", "secret"),
    [
        (
            ("- name: WANDB_API_KEY", "  value: 9f3a1c77d2e04b5586aa90c1d4e2f7b83c5d6e7f"),
            "9f3a1c77d2e04b5586aa90c1d4e2f7b83c5d6e7f",
        ),
        (('  "name": "HF_TOKEN",', '  "value": "Hb7xq0Zr91LmWv3c",'), "Hb7xq0Zr91LmWv3c"),
        (("password: |", "  hunter2x"), "hunter2x"),
        (("- name: token_embedding", "  value: 12"), ""),
    ],
)
def test_a_variable_in_a_list_is_named_in_one_line_and_given_in_the_next(lines: tuple[str, ...], secret: str) -> None:
    """As Kubernetes and Ray write environments, and as YAML writes a block; the value alone is private."""
    assert [lines[number][span.start : span.end] for number, span in near.between(lines)] == (
        [secret] if secret else []
    )

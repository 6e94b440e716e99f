"""Tests of runbook.flow.load: true places for every kind of fault, and hostile files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import FlowError
from runbook.flow.load import NODE_LIMIT, Place, flow_files, flow_hash, load_flow, load_vocabulary
from runbook.text import Text
from tests.helpers import hostile_bytes

SMALL = Path(__file__).parents[2] / "data" / "flows" / "small.yaml"

HEAD = """\
flow: x
title: {en: T, zh: 题}
symptom: {en: S, zh: 症}
start: a
nodes:
  a:
    question: {en: Q, zh: 问}
"""
"""Seven lines of a sound flow, to which a test adds a fault."""


def load(text: str | bytes, tmp_path: Path) -> str:
    """Return the error of loading `text`, as ":line:column: words"."""
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FlowError) as raised:
        load_flow(path)
    assert raised.value.hint
    assert raised.value.message.startswith(str(path))
    return raised.value.message.removeprefix(str(path))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (HEAD + "    branchs: {yes: b}\n", ":8:5: nodes.a: "),
        (HEAD + "    branches: {yes: b}\n    branches: {no: b}\n", ":9:5: "),
        (HEAD + "    branches: {yes: b, yes: c}\n", ":8:24: "),
        (HEAD + "    branches:\n      yes: b\n      no: [b]\n", ":10:7: nodes.a: "),
        (HEAD + "    branches:\n      yes: b\n      no:\n", ":10:7: nodes.a: "),
        (HEAD + "    probes: [ok, {a: b}]\n", ":8:18: nodes.a: "),
        (HEAD + "    probes: ok\n", ":8:5: nodes.a: "),
        (HEAD + "    note: {en: only}\n", ":8:5: nodes.a: "),
        (HEAD + "    answers: {ok: {en: a, zh: 甲}, no: {en: only}}\n", ":8:35: nodes.a: "),
        (HEAD + "    actions:\n      - {command: ls}\n      - {comand: ls}\n", ":10:10: nodes.a: "),
        (HEAD + "    change: {set: {--lr: [1]}}\n", ":8:20: nodes.a: "),
        (HEAD + "    ? [a, b]\n    : c\n", ":8:7: "),
        (HEAD + "    <<: {cause: b}\n", ":8:5: "),
        (HEAD + "   odd: 1\n", ":8:4: "),
        (HEAD + "    note: 'open\n", ":"),
        (HEAD + "    note: *nowhere\n", ":8:11: "),
        (HEAD + "  b: text\n", ":8:3: nodes.b: "),
        (HEAD.replace("start: a\n", ""), ":1:1: "),
        (HEAD.replace("zh: 题", "zh2: 题"), ":2:1: "),
        (HEAD.replace("symptom: {en: S, zh: 症}", "symptom: {en: S}"), ":3:1: "),
        (HEAD.replace("start: a", "start: [a]"), ":4:1: "),
        (HEAD.replace("start: a", "start: a\norder: first"), ":5:1: "),
        (HEAD + "unknown: 1\n", ":8:1: "),
        (HEAD + '    note: {en: "a\\e[2J", zh: 甲}\n', ":8:16: "),
        (HEAD + '    branches: {"a\\u202eb": b}\n', ":8:16: "),
        (HEAD + "    note: {en: a\u200bb, zh: 甲}\n", ":8:16: "),
        ("flow: x\nnodes: [1]\n", ":2:1: "),
        ("- a\n", ":1:1: "),
        ("just words", ":1:1: "),
        ("", ":1:1: "),
        ("# a comment\n", ":1:1: "),
        ("a: 1\n---\nb: 2\n", ":2:1: "),
    ],
)
def test_faults_have_their_true_place(text: str, start: str, tmp_path: Path) -> None:
    """Whatever is wrong, the error names the line and column of the very key, both counted from 1."""
    assert load(text, tmp_path).startswith(start)


def test_a_missing_chinese_text_is_named(tmp_path: Path) -> None:
    """Words need both languages; the error says which is missing."""
    assert "`zh`" in load(HEAD + "    note: {en: only}\n", tmp_path)


def test_words_stay_words(tmp_path: Path) -> None:
    """`yes`, `no`, `on`, `null`-like answers, numbers and dates are the words that stand there, as keys and values."""
    path = tmp_path / "x.yaml"
    branches = "{yes: no, no: yes, on: off, 1: 0x10, 1.50: 2020-01-01, true: ~x}"
    path.write_text(HEAD + f"    branches: {branches}\n    probes: [on, 1_000]\n")
    node = load_flow(path).flow.nodes["a"]
    assert node.branches == {"yes": "no", "no": "yes", "on": "off", "1": "0x10", "1.50": "2020-01-01", "true": "~x"}
    assert node.probes == ("on", "1_000")


def test_the_small_flow_is_what_stands_in_the_file() -> None:
    """Every field arrives, and the places of keys are those of the file."""
    flow, source, _ = load_flow(SMALL)
    assert (flow.flow, flow.start, len(flow.nodes)) == ("small", "coherent", 9)
    released = flow.nodes["released"]
    assert released.change is not None
    assert (released.change.add, released.change.set, released.change.env) == (
        ("--no-offload",),
        {"--steps": "1"},
        {"DEBUG": "1"},
    )
    assert [node.kind for node in flow.nodes.values()] == [
        "check", "clear", "check", "experiment", "cause", "cause", "check", "cause", "clear",
    ]  # fmt: skip
    assert flow.nodes["load"].guide_ids == ("1 a", "1 b")
    assert flow.nodes["coherent"].answers == {"yes": Text("coherent", "通顺")}
    lines = SMALL.read_text().splitlines()
    for keys in (("nodes", "load"), ("nodes", "load", "branches"), ("nodes", "load", "branches", "not-loaded")):
        place = source.place(*keys)
        assert lines[place.line - 1][place.column - 1 :].startswith(keys[-1])
    assert source.place("nodes", "load", "verify", "7") == source.place("nodes", "load")


def test_the_hash_is_of_the_content_alone(tmp_path: Path) -> None:
    """Comments and layout do not change the hash of a flow, every other change does."""
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(SMALL.read_text())
    second.write_text(
        yaml.safe_dump(yaml.load(SMALL.read_text(), yaml.CBaseLoader), allow_unicode=True, sort_keys=False)
    )
    assert load_flow(first).hash == load_flow(second).hash == flow_hash(load_flow(SMALL).flow)
    second.write_text(second.read_text().replace("Keep it", "Keep that"))
    assert load_flow(first).hash != load_flow(second).hash


BOMB = (
    "flow: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"k{i}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9))
).encode()


@pytest.mark.parametrize(
    "content",
    [
        BOMB,
        b"flow: &a [*a]\n",
        b"flow: &a {x: *a}\n",
        b"[" * 1_000_000,
        b"{a: " * 100_000,
        b"- " * 100_000,
        b"a:\n" + b"".join(b" " * i + b"a:\n" for i in range(1, 1400)),
        b"x" * 1_000_000,
        b"\x00" * 1000,
        b"\xff\xfe\xfa",
        b"\xef\xbb\xbf\x1b[2J: 1",
        b"flow: !!python/object/apply:os.system [echo]\n",
        b"%YAML 9.9\n---\na: 1\n",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_hostile_files_end_at_once(content: bytes, tmp_path: Path) -> None:
    """An alias bomb, a loop of aliases, endless nesting, garbage, NUL and tags are FlowErrors with a place."""
    assert load(content, tmp_path).startswith(":")


def test_an_alias_bomb_is_named_as_such(tmp_path: Path) -> None:
    """The error of a file that unfolds without end says so."""
    assert str(NODE_LIMIT) in load(BOMB, tmp_path)


def test_nothing_in_a_flow_is_executed(tmp_path: Path) -> None:
    """A Python tag is only a tag: the command in it is not run."""
    mark = tmp_path / "mark"
    load(f"flow: !!python/object/apply:os.system ['touch {mark}']\n", tmp_path)
    assert not mark.exists()


@given(hostile_bytes, st.integers(0, 1000))
def test_garbage_never_escapes(tmp_path_factory: pytest.TempPathFactory, garbage: bytes, at: int) -> None:
    """A sound file with garbage anywhere in it either loads or is a FlowError with a line inside the file."""
    sound = SMALL.read_bytes()
    path = tmp_path_factory.mktemp("flow") / "x.yaml"
    path.write_bytes(sound[:at] + garbage + sound[at:])
    message = f"{path}:1:1:"
    try:
        load_flow(path)
    except FlowError as error:
        message = error.message
    assert message.startswith(f"{path}:")
    assert 1 <= int(message.removeprefix(str(path)).split(":")[1]) <= path.read_bytes().count(b"\n") + 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder in its place are FlowErrors that name it."""
    with pytest.raises(FlowError, match=r"gone\.yaml"):
        load_flow(tmp_path / "gone.yaml")
    with pytest.raises(FlowError, match=str(tmp_path)):
        load_flow(tmp_path)
    with pytest.raises(FlowError, match="gone"):
        flow_files(tmp_path / "gone")


def test_flow_files_are_the_yaml_files_without_the_vocabulary(tmp_path: Path) -> None:
    """A folder's flows are its .yaml files in name order; causes.yaml and other files are not flows."""
    for name in ("b.yaml", "a.yaml", "causes.yaml", "x.yml", "notes.txt", ".a.yaml.swp"):
        (tmp_path / name).touch()
    assert [path.name for path in flow_files(tmp_path)] == ["a.yaml", "b.yaml"]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("causes:\n  a: {guide: '1', title: {en: A, zh: 甲}, cascade: perhaps}\n", ":2:42: causes.a: "),
        ("causes:\n  a: {guide: '1', title: {en: A}}\n", ":2:19: causes.a: "),
        ("causes:\n  a: {guide: '1', title: {en: A, zh: 甲}, severe: 1}\n", ":2:42: causes.a: "),
        ("causes: {}\nother: 1\n", ":2:1: "),
        ("causes: []\n", ":1:1: "),
        ("flow: x\n", ":1:1: "),
    ],
)
def test_faults_of_a_vocabulary_have_their_place(text: str, start: str, tmp_path: Path) -> None:
    """The vocabulary of causes is checked like a flow."""
    path = tmp_path / "causes.yaml"
    path.write_text(text)
    with pytest.raises(FlowError) as raised:
        load_vocabulary(path)
    assert raised.value.message.removeprefix(str(path)).startswith(start)


def test_a_vocabulary_is_read_with_its_meaning() -> None:
    """Cascade and severity are read as truth value and number; a cause that says neither is severe and no cascade."""
    causes, source, guide = load_vocabulary(SMALL.parent / "causes.yaml")
    assert (causes["died"].cascade, causes["base"].severity) == (True, 2)
    assert (causes["buffer"].cascade, causes["buffer"].severity) == (False, 0)
    assert guide == ()
    assert source.place("causes", "died") == Place(str(SMALL.parent / "causes.yaml"), 5, 3)

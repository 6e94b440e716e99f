"""The ADF ticket is valid by Atlassian's schema, whatever it is made of, and its second look sees every word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from runbook.ticket.renderers import renderer
from runbook.ticket.renderers.adf import LIMIT
from tests.runbook.ticket.crowd import COSTLY, crowded
from tests.runbook.ticket.hostile import HOSTILE_WORDS, hostile_state
from tests.runbook.ticket.sample import drawn_finding, drawn_state, open_state, sample, triage_state, walked_state


@lru_cache(maxsize=1)
def _schema() -> Draft4Validator:
    path = Path(__file__).parent / "data" / "adf-schema.json"
    return Draft4Validator(json.loads(path.read_text()))


BLOCKS = {"paragraph", "codeBlock", "bulletList", "orderedList", "table", "heading", "blockquote", "panel", "expand"}
CHILDREN = {
    "doc": BLOCKS,
    "expand": BLOCKS - {"expand"},
    "paragraph": {"text", "hardBreak"},
    "heading": {"text", "hardBreak"},
    "codeBlock": {"text"},
    "table": {"tableRow"},
    "tableRow": {"tableHeader", "tableCell"},
    "tableHeader": {"paragraph"},
    "tableCell": {"paragraph"},
    "bulletList": {"listItem"},
    "orderedList": {"listItem"},
    "listItem": {"paragraph"},
    "blockquote": {"paragraph"},
    "panel": {"paragraph"},
}
"""What may stand in what: of the schema's the part that a ticket uses."""
MAY_BE_EMPTY = {"paragraph", "heading", "codeBlock"}
ATTRIBUTES = {"heading": {"level"}, "codeBlock": {"language"}, "expand": {"title"}, "panel": {"panelType"}}
MARKS: tuple[list[str], ...] = ([], ["strong"], ["code"], ["strike"], ["link"])


def _wrong(content: bytes) -> list[str]:
    """Return where a document breaks the rules; as the schema does, but in time that is linear in the document."""
    document = json.loads(content)
    found = [] if list(document)[:2] == ["version", "type"] and document["version"] == 1 else ["version"]
    for above, node in _nodes(document):
        kind = node["type"]
        if above and kind not in CHILDREN.get(above, ()):
            found.append(f"{kind} in {above}")
        if kind in CHILDREN and kind not in MAY_BE_EMPTY and not node["content"]:
            found.append(f"empty {kind}")
        if kind == "text" and not node["text"]:
            found.append("empty text")
        if set(node.get("attrs", ())) - ATTRIBUTES.get(kind, set()):
            found.append(f"attributes of {kind}")
        marks = [mark["type"] for mark in node.get("marks", ())]
        if marks not in MARKS or (marks and above == "codeBlock"):
            found.append(f"marks {marks}")
    return found


def _valid(*content: dict[str, Any]) -> bool:
    """Return whether nodes are valid by the schema."""
    return bool(_schema().is_valid({"version": 1, "type": "doc", "content": list(content)}))


def _shape(node: dict[str, Any], seen: set[str]) -> dict[str, Any] | None:
    """Return a node with short texts and of its children only those of a shape that is new, or the first."""
    if node["type"] == "text":
        node = {**node, "text": node["text"][:1]}
    if node.get("content"):
        children = [kept for one in node["content"] if (kept := _shape(one, seen)) is not None]
        first = _shape(node["content"][0], set())
        node = {**node, "content": children or ([first] if first is not None else [])}
    told = json.dumps({**node, "text": ""}, sort_keys=True)
    if told in seen:
        return None
    seen.add(told)
    return node


def _nodes(node: dict[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield above, node
    for child in node.get("content", ()):
        yield from _nodes(child, node["type"])


def test_the_schema_refuses_what_is_wrong() -> None:
    """An empty text, a table in a cell and code that is bold as well are refused, here and by the schema."""
    text = {"type": "text", "text": "a"}
    good = {"type": "paragraph", "content": [text]}
    cell = {"type": "tableCell", "content": [good]}
    table = {"type": "table", "content": [{"type": "tableRow", "content": [cell]}]}
    nested = {"type": "table", "content": [{"type": "tableRow", "content": [{**cell, "content": [table]}]}]}
    bold = {"type": "paragraph", "content": [{**text, "marks": [{"type": "code"}, {"type": "strong"}]}]}
    empty = {"type": "paragraph", "content": [{"type": "text", "text": ""}]}
    for node in (good, table, bold, empty, nested):
        content = json.dumps({"version": 1, "type": "doc", "content": [node]}).encode()
        assert _valid(node) is (node in (good, table)) is (_wrong(content) == [])


@pytest.mark.timeout(300)
def test_the_documents_are_valid_by_the_schema() -> None:
    """Every shape of node that a ticket writes, whole or shortened, is one that Atlassian's schema knows."""
    seen: set[str] = set()
    for of in (sample(drawn_state(drawn_finding(lines=3))), sample(walked_state()), crowded("x ", lines=80, causes=4)):
        for node in json.loads(renderer("adf").render(of))["content"]:
            shape = _shape(node, seen)
            assert shape is None or _valid(shape), shape


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("state", [triage_state, walked_state, open_state], ids=["triage", "walked", "open"])
def test_every_session_is_a_valid_document(state: object, language: str) -> None:
    """Whatever kind of session it was, the document is valid, with pictures and edits as well."""
    assert callable(state)
    assert _wrong(renderer("adf").render(sample(state(), language))) == []
    assert _wrong(renderer("adf").render(sample(drawn_state(drawn_finding(lines=9)), language))) == []


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=range(len(HOSTILE_WORDS)))
def test_hostile_text_is_only_text(words: str) -> None:
    """The document stays valid; no mention, emoji, card or picture is in it, and one link: the flow's."""
    content = renderer("adf").render(sample(hostile_state(words)))
    assert _wrong(content) == []
    nodes = list(_nodes(json.loads(content)))
    assert {node["type"] for _, node in nodes} <= {
        "doc", "heading", "paragraph", "text", "hardBreak", "codeBlock", "table", "tableRow", "tableHeader",
        "tableCell", "bulletList", "orderedList", "listItem", "expand", "rule", "panel", "blockquote",
    }  # fmt: skip
    links = [mark["attrs"]["href"] for _, n in nodes for mark in n.get("marks", ()) if mark["type"] == "link"]
    assert links == ["https://github.com/deepseek-ai/DeepEP/issues/1"]


@given(st.text(max_size=60))
@settings(max_examples=30, deadline=None)
def test_any_text_gives_a_valid_document(words: str) -> None:
    """Any Unicode text in every place of evidence gives a valid document."""
    assert _wrong(renderer("adf").render(sample(hostile_state(words)))) == []


@pytest.mark.parametrize("kind", list(COSTLY))
def test_a_shortened_document_is_valid_and_says_so(kind: str) -> None:
    """What is left of a crowded session is valid, within the limit in texts alone too, and ends in a panel."""
    content = renderer("adf").render(crowded(COSTLY[kind], lines=2000, causes=40))
    assert _wrong(content) == []
    document = json.loads(content)
    texts = [node["text"] for _, node in _nodes(document) if node["type"] == "text"]
    assert sum(len(text.encode("utf-16-le")) // 2 for text in texts) <= LIMIT
    assert document["content"][-1]["type"] == "panel"
    assert "whole.txt" in json.dumps(document["content"][-1])


def test_the_second_look_reads_texts_titles_and_addresses() -> None:
    """Every text node, title of a fold and address is read; words of the format are not."""
    of = sample(drawn_state(drawn_finding(lines=3)))
    content = renderer("adf").render(of)
    ((_, read),) = renderer("adf").read(content)
    for _, node in _nodes(json.loads(content)):
        if node["type"] == "text":
            assert node["text"] in read
        assert node.get("attrs", {}).get("title", "") in read
    assert "https://github.com/deepseek-ai/DeepEP/issues/1" in read
    for ours in ("tableCell", "codeBlock", "expand", "strong"):
        assert ours not in read


def test_a_link_that_is_no_web_address_is_text() -> None:
    """A flow's link of another scheme can be read but not followed."""
    of = sample(triage_state())
    evil = msgspec.structs.replace(of.next.actions[-1], link="javascript:alert(1)//https://a")
    of = msgspec.structs.replace(of, next=msgspec.structs.replace(of.next, actions=(evil,)))
    content = renderer("adf").render(of)
    assert _wrong(content) == []
    assert '"link"' not in content.decode()
    assert "javascript:alert(1)" in content.decode()

"""Hostile text in Markdown means nothing but itself: checked with a CommonMark parser."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from runbook.text import sanitise
from runbook.ticket.gfm import GITHUB, GITLAB, Flavour, cell, code, fence, link, plain, row, summary, table_head

FLAVOURS = pytest.mark.parametrize("flavour", [GITHUB, GITLAB], ids=["github", "gitlab"])
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

HOSTILE = st.lists(
    st.sampled_from([*"`*_[]()<>#@!|~&$:\\/-+=.1a \n", "http://x", "```", "~~~", "<b>", "![a](b)", "---|---", "&amp;"]),
    max_size=60,
).map("".join)


def _flat(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *_flat(token.children or []))]


def _words(tokens: list[Token]) -> str:
    return "".join(
        t.content if t.type in ("text", "text_special") else "\n" if t.type == "hardbreak" else ""
        for t in _flat(tokens)
    )


@FLAVOURS
@given(HOSTILE)
@settings(max_examples=300, deadline=None)
def test_prose_reads_as_itself(flavour: Flavour, text: str) -> None:
    """Any text parses as paragraphs of plain words, which are the text."""
    text = "\n".join(sanitise(line) for line in text.splitlines())
    tokens = PARSER.parse(f"x {plain(text, flavour)}")
    kinds = {token.type for token in _flat(tokens)}
    assert kinds <= {"paragraph_open", "inline", "text", "hardbreak", "paragraph_close", "text_special"}
    assert "".join(_words(tokens).replace("\u200b", "").split()) == "".join(f"x {text}".split())


@FLAVOURS
@given(HOSTILE)
@settings(max_examples=300, deadline=None)
def test_prose_at_the_start_of_a_line_is_no_block(flavour: Flavour, text: str) -> None:
    """Not even at the start of a line does text become a heading, list, quote, rule, table, fence or HTML."""
    said = "\n".join(line for line in map(sanitise, text.splitlines()) if line.strip())
    tokens = PARSER.parse(plain(said, flavour).strip())
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}


@given(HOSTILE, st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_code_span_holds_its_text(text: str, in_table: bool) -> None:
    """A code span is one token with the text in it, in a sentence and in a table cell."""
    text = sanitise(" ".join(text.splitlines()))
    span = code(text, in_table=in_table)
    if not text.strip():
        assert span == "–"
        return
    lines = "\n".join([*table_head(["a", "b"]), row([span, "z"])]) if in_table else f"x {span} y"
    found = [token.content for token in _flat(PARSER.parse(lines)) if token.type == "code_inline"]
    assert [" ".join(content.split()) for content in found] == [" ".join(text.split())]


@given(st.lists(HOSTILE, min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_a_table_row_keeps_its_cells(texts: list[str]) -> None:
    """Any texts as cells give one row with just so many cells."""
    lines = [*table_head([f"c{n}" for n in range(len(texts))]), row(cell(sanitise(text)) for text in texts)]
    tokens = PARSER.parse("\n".join(lines))
    assert sum(token.type == "td_open" for token in tokens) == len(texts)
    assert not [
        token
        for token in _flat(tokens)
        if token.type in ("image", "link_open", "html_inline", "em_open", "strong_open")
    ]


@FLAVOURS
@given(HOSTILE)
@settings(max_examples=300, deadline=None)
def test_a_fence_is_longer_than_any_inside(flavour: Flavour, text: str) -> None:
    """Any text in a fence is one code block with that text, blanks at the starts of its lines included."""
    tokens = PARSER.parse(fence(text.splitlines(), "text", flavour))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content.rstrip("\n") == "\n".join(text.splitlines()).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("ping @octocat", r"@o"),
        ("fixes #123 and GH-7", r"#1|GH-7"),
        ("foo.py:100: bad :tada:", r":100:|:tada:"),
        ("see https://evil.example and www.evil.example", r"https:|www\."),
        ("cost $x$", r"(?<!\\)\$"),
    ],
)
@FLAVOURS
def test_mentions_references_emoji_and_links_are_broken(flavour: Flavour, text: str, never: str) -> None:
    """What a host turns into a mention, a reference, an emoji, a link or a formula has something in between."""
    assert not re.search(never, plain(text, flavour))
    assert html.unescape(plain(text, flavour)).replace("\u200b", "").replace("\\", "") == text


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("reverts 9c1d4e7 and 9c1d4e7f8a2b3c4d5e6f708192a3b4c5d6e7f809", r"\b[0-9a-f]{7,40}\b"),
        ("closes octo/repo#12, fixes octo/repo@9c1d4e7f", r"#1|@9"),
        ("mail a.b@corp.example", r"b@c"),
    ],
)
@FLAVOURS
def test_commits_and_closing_words_refer_to_nothing(flavour: Flavour, text: str, never: str) -> None:
    """Ids of commits, "fixes #12" of another repository and addresses of mail are no references."""
    assert not re.search(never, html.unescape(plain(text, flavour)))
    assert html.unescape(plain(text, flavour)).replace("\u200b", "") == text


def test_numbers_are_not_taken_for_commits() -> None:
    """Offsets and hashes of files stay as they are: no host makes a reference of them."""
    for words in ("offset 97712041", "a" * 12, "9c1d" * 16, "0x9c1d4e7f8a", "facade"):
        assert plain(words) == words


def test_the_name_of_a_fold_shows_no_escapes() -> None:
    """HTML knows no backslash: what stands in a summary is entities, and no mention either."""
    assert summary("a_b [x] <b> & @octocat #1") == ("a_b [x] &lt;b&gt; &amp; @&#8203;octocat #&#8203;1")


def test_ordinary_words_stay_readable() -> None:
    """A sentence as probes write it is not littered with escapes."""
    words = "train/grad_norm is 3.2 (threshold 1.0): see actor.py:511, rank 3; 50% of 8,192 - fine"
    assert plain(words) == words
    assert plain(words, GITLAB) == words


def test_links() -> None:
    """An ordinary address is clickable, anything else is code."""
    assert link("https://github.com/a/b/issues/1?x=y#z") == "<https://github.com/a/b/issues/1?x=y#z>"
    assert link("javascript:alert(1)") == "`javascript:alert(1)`"
    assert link("https://x/ <b>") == "`https://x/ <b>`"


def test_lines_stay_lines() -> None:
    """A line break is one on both hosts; a blank line ends the paragraph."""
    assert plain("a\n  b\n\nc") == "a\\\nb\n\nc"

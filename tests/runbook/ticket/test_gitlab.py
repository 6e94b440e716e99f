"""The GitLab ticket executes nothing, refers to nothing and hides nothing: held against GitLab's own patterns."""

from __future__ import annotations

import html
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runbook.text import sanitise
from runbook.ticket.gfm import GITLAB, fence, plain
from runbook.ticket.renderers import renderer
from tests.runbook.ticket.hostile import HOSTILE_WORDS, hostile_state
from tests.runbook.ticket.sample import sample, walked_state

ACTION = re.compile(r"^\s*/[A-Za-z]", re.MULTILINE)
"""A line that GitLab may take for a quick action (lib/gitlab/quick_actions/extractor.rb), read generously."""

REFERENCES = {
    "mention": r"@[A-Za-z0-9_]",
    "issue": r"#[0-9]|\bG[HL]-[0-9]",
    "merge request": r"![0-9]",
    "label": r"~(?:[A-Za-z0-9_]|\")",
    "milestone": r"%(?:[A-Za-z0-9_]|\")",
    "snippet": r"\$[0-9]",
    "epic": r"&[0-9]",
    "iteration": r"\*iteration:",
    "alert": r"\^alert#",
    "bracketed": r"\[(?:epic|issue|work_item|vulnerability|feature_flag|contact):",
    "contents": r"\[\[|\[TOC\]",
    "placeholder": r"%\{",
    "difference": r"\{\+|\+\}|\[-|-\]",
    "include": r"::include",
    "address": r"\w://",
}
"""What GitLab's filters look for in the words of a page after Markdown was read."""

PIECES = st.lists(
    st.sampled_from(
        [*"@#!~%$&*^[]{}+-:/` \n1a", "/close", "/assign @all", "[epic:1]", "[[_TOC_]]", "::include{file=x}",
         "*iteration:1", "^alert#1", "```", "%{x}", "http://x", "GL-1", '~"a b"', "<div>"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(PIECES)
@settings(max_examples=400, deadline=None)
def test_prose_refers_to_nothing_and_does_nothing(text: str) -> None:
    """No text gives a reference once Markdown was read, nor a line that begins as a quick action."""
    text = "\n".join(sanitise(line).strip() for line in text.splitlines())
    told = plain(text, GITLAB)
    assert not ACTION.search(told)
    tokens = [child for token in MarkdownIt("commonmark").parse(f"x {told}") for child in token.children or []]
    words = "".join(one.content if one.type in ("text", "text_special") else "\n" for one in tokens)
    assert [name for name, pattern in REFERENCES.items() if re.search(pattern, words)] == []
    assert re.sub(r"[\s\u200b]", "", words) == re.sub(r"[\s\u200b]", "", f"x{text}")


@pytest.mark.parametrize(
    "text", ["/close", "a\n/assign @all", "[epic:1]", "%{project_path}", "~bug", "$12", "x {+ y +}", "tcp://a"]
)
def test_the_patterns_know_what_they_look_for(text: str) -> None:
    """Each is found as it is written, and not in what leaves."""
    found = [pattern for pattern in (ACTION.pattern, *REFERENCES.values()) if re.search(pattern, text, re.MULTILINE)]
    assert found
    told = html.unescape(plain(text, GITLAB))
    assert not [pattern for pattern in found if re.search(pattern, told.replace("\\", ""), re.MULTILINE)]


@given(st.lists(st.sampled_from(["```", "/close", "````", " /reopen", "x", "", "~~~", "   a"]), max_size=12))
@settings(max_examples=200, deadline=None)
def test_a_fence_hides_no_quick_action_behind_a_shorter_fence(lines: list[str]) -> None:
    """No line of a block begins with a slash or a fence at its first character; the block reads as its lines."""
    block = fence(lines, "text", GITLAB)
    assert not re.search(r"^(?:/|```)", block, re.MULTILINE)
    (token,) = MarkdownIt("commonmark").parse(block)
    assert token.content == "".join(f"{line}\n" for line in "\n".join(lines).splitlines())


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=range(len(HOSTILE_WORDS)))
def test_no_line_of_a_ticket_is_a_quick_action(words: str) -> None:
    """No line of the whole body begins with a slash, whatever stands in evidence."""
    body = renderer("gitlab").render(sample(hostile_state(words))).decode()
    assert not re.search("^/", body, re.MULTILINE)
    assert not re.search("^(?:---|\\+\\+\\+|;;;)", body)


def test_a_command_that_begins_with_a_slash_is_no_quick_action() -> None:
    """A flow's own command and a path that is quoted stand one blank off, and are copied without it."""
    of = sample(walked_state())
    step = msgspec.structs.replace(of.next.actions[0], command="/close the door\n/usr/bin/true")
    of = msgspec.structs.replace(of, root="/", next=msgspec.structs.replace(of.next, actions=(step,)))
    body = renderer("gitlab").render(of).decode()
    assert not re.search("^/", body, re.MULTILINE)
    fences = [token.content for token in MarkdownIt("commonmark").parse(body) if token.type == "fence"]
    assert "/close the door\n/usr/bin/true\n" in fences


def test_it_is_the_markdown_ticket_otherwise() -> None:
    """Without words that only GitLab knows it differs from the one for GitHub in the blanks before fences alone."""
    of = msgspec.structs.replace(sample(walked_state()), where=())
    one, other = (renderer(name).render(of).decode() for name in ("markdown", "gitlab"))
    strip = re.compile(r"^ ", re.MULTILINE)
    assert strip.sub("", one) == strip.sub("", other)

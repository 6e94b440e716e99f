"""Jira markup means nothing but what the ticket means by it: held against the patterns of Atlassian's wiki renderer."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.text import sanitise
from runbook.ticket import jira_markup as jira
from runbook.ticket.renderers import renderer
from tests.runbook.ticket.hostile import HOSTILE_WORDS, hostile_state
from tests.runbook.ticket.sample import sample, walked_state

HOSTILE = st.lists(
    st.sampled_from(
        [*"{}[]|*_-+^~!?\\:;()#@&.a1Z \n", "{noformat}", "{code:java}", "h1. ", "bq. ", "----", "http://x", "??",
         "[~u]", "(x)", ":)", "ABC-1", "&#42;", "mailto:a@b", "www.x", "{{", "}}"]
    ),
    max_size=40,
).map("".join)  # fmt: skip

PHRASE = r"(?:^|(?<![^\W_\\])(?<!\\))(?:{0})(?![\s{1}])[^\n]*?[^\s{1}](?:{0})(?![^\W_])"
"""com.atlassian.renderer.v2.components.phrase.PhraseRendererComponent: no letter or digit before, none after."""

SIGNS = {"bold": "*", "emphasis": "_", "deleted": "-", "inserted": "+", "above": "^", "below": "~"}
ACTIVE = {
    "macro": r"\{[A-Za-z]",
    "link": r"\[",
    "cell": r"\|",
    "escape": r"\\",
    "image": r"(?<![^\W_])!\S[^\n]*!",
    "list or rule": r"^\s*(?:[*#-]+\s|-{4,})",
    "heading": r"^\s*(?:h[1-6]|bq)\.",
    "dash": r"(?:^|\s)--",
    "citation": r"\?\?",
    "emoticon": r":-?[()PpD]|;-?\)|\((?:[ynix/!+?-]|on|off|\*)\)",
    "address": r"\w://|mailto:|file:|www\.|\w@\w",
    "issue": r"\b[A-Z][A-Z0-9_]+-[0-9]",
    **{name: PHRASE.format(re.escape(sign), re.escape(sign)) for name, sign in SIGNS.items()},
}  # fmt: skip
"""What the renderer would act on, by name."""


def acts(text: str) -> list[str]:
    """Return what the renderer would make of prose, besides prose."""
    return [name for name, pattern in ACTIVE.items() if re.search(pattern, text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("text", "does"),
    [("{code}x", "macro"), ("[~ann]", "link"), ("a|b", "cell"), ("h1. x", "heading"), ("a *b* c", "bold"),
     ("x -y- z", "deleted"), ("see ABC-12", "issue"), ("!a.png!", "image"), ("ok :)", "emoticon"),
     ("http://x", "address"), ("- x", "list or rule"), ("a -- b", "dash"), ("_i_", "emphasis")],
)  # fmt: skip
def test_the_patterns_know_the_markup(text: str, does: str) -> None:
    """Each construct is found when it is written plainly, and is gone from the escaped text."""
    assert does in acts(text)
    assert acts(jira.plain(text)) == []


@given(HOSTILE)
@settings(max_examples=500, deadline=None)
def test_prose_reads_as_itself(text: str) -> None:
    """Any text has nothing active left in it, and its entities read as the text."""
    text = "\n".join(line.strip() for line in map(sanitise, text.splitlines())).strip("\n")
    told = jira.plain(text)
    assert acts(told) == []
    assert html.unescape(told) == text


@given(HOSTILE)
@settings(max_examples=200, deadline=None)
def test_marked_text_ends_where_it_should(text: str) -> None:
    """No bold, struck or monospaced text is ended by what stands in it."""
    text = sanitise(text).strip()
    if text:
        assert re.findall(r"\*", jira.strong(text)) == ["*", "*"]
        assert re.fullmatch(r"\{\{[^{}]+\}\}", jira.code(text))
        assert re.findall("-", jira.struck(text)) == ["-", "-"]


@given(st.lists(HOSTILE, max_size=6))
@settings(max_examples=200, deadline=None)
def test_a_block_is_ended_by_nothing_inside(lines: list[str]) -> None:
    """Whatever lines are quoted, the block ends at its own end, and its lines are the lines."""
    lines = [sanitise(line) for line in lines]
    block = jira.block(lines)
    assert len(re.findall(r"\{noformat", block, re.IGNORECASE)) == 2
    inner = block.removeprefix("{noformat}\n").removesuffix("{noformat}")
    assert inner.replace("\u200b", "") == "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("words", HOSTILE_WORDS, ids=range(len(HOSTILE_WORDS)))
def test_a_ticket_holds_only_its_own_markup(words: str) -> None:
    """Outside of quoted lines stand only headings, lists, tables, links and marks that the layout wrote."""
    text = renderer("jira").render(sample(hostile_state(words))).decode()
    blocks = re.findall(r"^\{noformat\}$", text, re.MULTILINE)
    assert len(blocks) % 2 == 0
    rest = re.sub(r"\{noformat\}\n.*?\n\{noformat\}", "", text, flags=re.DOTALL)
    assert not re.findall(r"\{noformat|\{code", rest)
    assert set(re.findall(r"\{[a-z]+[:}]", rest.replace("{{", "").replace("}}", ""))) <= {"{quote}"}
    assert re.findall(r"\[[^\]]*\]", rest) == ["[https://github.com/deepseek-ai/DeepEP/issues/1]"]
    for row in re.findall(r"^\|(?!\|).*$", rest, re.MULTILINE):
        assert row.endswith("|")
        assert "||" not in row
    columns = [len(re.findall(r"\|\|", head)) - 1 for head in re.findall(r"^\|\|.*$", rest, re.MULTILINE)]
    assert set(columns) <= {2, 3, 4, 5}


def test_tables_keep_their_columns() -> None:
    """Every row has as many cells as its table's head, whatever stands in them."""
    for words in HOSTILE_WORDS:
        text = renderer("jira").render(sample(hostile_state(words))).decode()
        wanted = 0
        for line in re.sub(r"\{noformat\}\n.*?\n\{noformat\}", "", text, flags=re.DOTALL).splitlines():
            if line.startswith("||"):
                wanted = line.count("||") - 1
            elif line.startswith("|"):
                assert line.count("|") - 1 == wanted


def test_a_ticket_as_it_is_pasted() -> None:
    """The beginning reads as an issue: title, cause, the very lines, fix, chain."""
    text = renderer("jira").render(sample(walked_state())).decode()
    assert text.startswith("h1. Illegal memory access or crash tied to DeepEP\n")
    assert "\n✗ *confirmed* {{ima-deepep}}: The stack of rank 3 ends in DeepEP's low_latency_dispatch.\n" in text
    assert '{noformat}\njob.log:48219: (Worker pid=19388, ip=10.12.0.7)   File "/home/lihua' in text
    assert "# Is DeepEP on the stack? → *deepep* (evidence {{cuda.stack}}, {{job.log:48219}})\n" in text
    assert "|-none- (stale)|" in text
    assert "|5|a&#124;b|" in text


def test_links() -> None:
    """An ordinary address is a link, anything else monospaced text."""
    assert jira.link("https://a.example/b-c_d?e=f#g") == "[https://a.example/b-c_d?e=f#g]"
    assert jira.link("https://a.example/]x|y") == "{{https&#58;//a.example/&#93;x&#124;y}}"
    assert jira.link("javascript:alert(1)").startswith("{{")

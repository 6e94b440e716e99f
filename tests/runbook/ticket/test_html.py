"""The HTML ticket is one well-formed file that says what the Markdown ticket says and obeys nothing from evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.session.state import SessionState
from runbook.ticket import html_style
from runbook.ticket.export import finish
from runbook.ticket.markup import readable
from runbook.ticket.redact import Identity, redact_transcript
from runbook.ticket.renderers import renderer
from tests.helpers import HOSTILE, is_safe
from tests.runbook.ticket.hostile import hostile_state
from tests.runbook.ticket.sample import (
    drawn_finding,
    drawn_state,
    open_state,
    sample,
    triage_state,
    walked_state,
)
from tests.runbook.ticket.test_markdown import HEADINGS


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


VOID = {"meta", "br"}
TAGS = _set(
    """
    html head meta title style body main header section h1 h2 h3 p b s ul ol li a code pre span
    blockquote details summary div table thead tbody tr th td br figure figcaption svg desc path line
    circle text
    """
)
"""Every element that the renderer may write."""
ATTRIBUTES = _set(
    """
    lang charset http-equiv content name class id href rel scope role viewbox aria-labelledby d x y x1
    x2 y1 y2 cx cy r text-anchor
    """
)
LINK = "https://github.com/deepseek-ai/DeepEP/issues/1"


@dataclass
class Seen(HTMLParser):
    """What a parser makes of a ticket; it fails where an element is not closed as it was opened."""

    open: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    words: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Know the element and its attributes."""
        assert tag in TAGS
        for name, value in attrs:
            assert name in ATTRIBUTES
            if name == "href":
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the words."""
        if self.open[-1:] == ["h2"]:
            self.headings.append(data)
        if self.open[-1:] != ["style"]:
            self.words += data

    def handle_comment(self, data: str) -> None:
        """There is none."""
        pytest.fail(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        """There is none."""
        pytest.fail(f"an instruction: {data}")


def _html(state: SessionState, language: str = "en") -> str:
    hidden, _ = redact_transcript(sample(state, language), Identity(("lihua", "wang.fang")))
    return renderer("html").render(hidden).decode()


def _seen(html: str) -> Seen:
    assert html.startswith("<!DOCTYPE html>\n<html lang=")
    seen = Seen()
    seen.feed(html)
    seen.close()
    assert seen.open == []
    assert len(set(seen.ids)) == len(seen.ids)
    return seen


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("state", [triage_state, walked_state, open_state], ids=["triage", "walked", "open"])
def test_the_order_is_that_of_the_design(state: object, language: str) -> None:
    """Every section is there, in the order of the Markdown ticket, in both languages."""
    assert callable(state)
    seen = _seen(_html(state(), language))
    markdown = renderer("markdown").render(sample(state(), language)).decode()
    assert seen.headings == re.findall(r"^## (.*)$", markdown, re.MULTILINE)
    assert len(seen.headings) in (len(HEADINGS), len(HEADINGS) - 1)


def test_it_says_what_the_markdown_ticket_says() -> None:
    """Cause, the very lines, fix, chain, notes, answers and the redaction report are in it, readable as text."""
    seen = _seen(_html(walked_state()))
    for words in (
        "✗ confirmed ima-deepep: The stack of rank 3 ends in DeepEP's low_latency_dispatch.",
        'job.log:48219: (Worker pid=19388, ip=ip-1)   File "/home/user-1/deep_ep/buffer.py", line 511',
        "Fix: Turn DeepEP off, then update it; 1.1.0 fixes the buffer size for hidden_size > 7168.",
        "Does it go away without CUDA graphs? → ima (person user-2)",
        "It explains: NCCL failure",
        "user-1@host-1 saw it twice; ask mail-1",
        "pip show deep_ep | head -n 3\nnvidia-smi --query-gpu=driver_version --format=csv",
        "- --enable-deepep-moe\n+ --moe-a2a-backend none",
        "rank 3 ends",
        "buffer.py:511 `low_latency_dispatch`",
        "Hidden under pseudonyms",
    ):
        assert words in seen.words
    assert seen.links == [LINK]


def test_nothing_is_fetched_and_nothing_runs() -> None:
    """No script, no address but the flow's own link, no import or url in the style sheet, and a policy that says so."""
    html = _html(drawn_state(drawn_finding()))
    _seen(html)
    assert "<script" not in html
    assert re.findall(r"https?://[^\"<\s]+", html.replace(LINK, "")) == []
    assert not re.search(r"url\(|@import|expression", html_style.STYLE)
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
    for query in ("prefers-color-scheme:dark", "@media print"):
        assert query in html_style.STYLE


def test_plots_and_grids_are_pictures_with_words() -> None:
    """A plot is an SVG with title and description, a grid a table with a cell for each code, both with a legend."""
    html = _html(drawn_state(drawn_finding(lines=3)))
    seen = _seen(html)
    assert html.count('<svg class="plot"') == 1
    assert '<title id="plot1-t">Loss on host-1</title>' in html
    description = html[html.index('<desc id="plot1-d">') : html.index("</desc>")]
    assert "loss of user-1: 3 values, from 1 to 4, 1 to 4." in description
    assert "Limit 3: limit of /home/user-1/limits.yaml." in description
    assert "At step 1: user-1 changed host-1." in description
    assert html.count('<td class="good">=</td>') == 3
    assert html.count('<td class="bad">x</td>') == 3
    assert "× printed, but not finite: 1" in seen.words
    assert '<span class="add">+++ b/config.json' in html


EVIL = (
    "<script>alert(1)</script>",
    '"onload="alert(1)',
    "' onerror='x",
    "</style></title></svg></desc><img src=x onerror=alert(1)>",
    "<!-- --><?php ?>]]><![CDATA[",
    "&lt;b&gt;&#60;script&#62;&quot;",
    "javascript:alert(1)",
    "".join(HOSTILE),
    "\u202eabc\u2066 \x1b[2J\x00\x07\x9b2J",
    "\udcff\ud800",
    "汉字 العربية עברית",
    "",
)


@pytest.mark.parametrize("words", EVIL, ids=range(len(EVIL)))
def test_hostile_text_changes_nothing_but_the_words(words: str) -> None:
    """Markup, quotes, comments, control and bidi characters in every place leave only text behind."""
    html = _html(hostile_state(words))
    seen = _seen(html)
    assert seen.headings == HEADINGS
    assert seen.links == [LINK]
    assert all(is_safe(line) for line in html.splitlines())
    if words.startswith(("<script", '"onload')):
        assert words in seen.words


@given(st.text(max_size=60))
@settings(max_examples=30, deadline=None)
def test_any_text_keeps_the_structure(words: str) -> None:
    """Any Unicode text in every place leaves headings, links, elements and attributes as they are."""
    seen = _seen(renderer("html").render(sample(hostile_state(words))).decode())
    assert seen.headings == HEADINGS
    assert seen.links == [LINK]


def test_a_link_that_is_no_web_address_is_text() -> None:
    """A flow's link of another scheme can be read but not followed."""
    transcript = sample(triage_state())
    step = transcript.next
    evil = msgspec.structs.replace(step.actions[-1], link="javascript:alert(1)//https://a")
    hidden = msgspec.structs.replace(transcript, next=msgspec.structs.replace(step, actions=(evil,)))
    seen = _seen(renderer("html").render(hidden).decode())
    assert seen.links == []
    assert "javascript:alert(1)" in seen.words


def test_the_second_look_reads_words_and_not_the_layout() -> None:
    """The scan gets every text and every address, and no name of an element or of a colour."""
    html = renderer("html").render(sample(drawn_state(drawn_finding(lines=3))))
    ((_, text),) = readable(html)
    for words in ("Loss on gpu-node-17", "lihua changed gpu-node-17", "loss of lihua", LINK, "/home/lihua/dump"):
        assert words in text
    for ours in ("max-width", "viewBox", "figcaption", "prefers-color-scheme", "text-anchor"):
        assert ours not in text
    ((_, odd),) = readable(
        b'<p title="at gpu-1">a &lt;<b>li</b>hua</p><!-- hidden --><img alt="lihua"><style>x</style>'
    )
    assert odd.split("\n") == ["", "at gpu-1", "a <lihua", "", " hidden ", "", "lihua", "", ""]


def test_people_may_be_called_like_an_element() -> None:
    """Somebody called max, main or table can export: the words of the layout are nobody's name."""
    content, _ = finish(sample(triage_state()), renderer("html"), Identity(("lihua", "max", "main", "table", "svg")))
    assert b"</html>" in content


@pytest.mark.parametrize("colours", [html_style.LIGHT, html_style.DARK], ids=["light", "dark"])
def test_every_ink_can_be_read(colours: dict[str, str]) -> None:
    """Inks reach a contrast of 4.5:1 on the page and on quoted lines, by the formula of WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for ground in ("back", "panel"):
        for ink in set(colours) - {"back", "panel", "line"}:
            low, high = sorted((luminance(colours[ground]), luminance(colours[ink])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, ink)

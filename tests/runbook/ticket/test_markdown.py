"""The Markdown ticket reads top down, stays whole under hostile text, and fits into an issue."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runbook.finding import Citation, Finding, Table, Verdict
from runbook.session import events as ev
from runbook.session.state import SessionState, fold
from runbook.text import Text
from runbook.ticket.redact import Identity, redact_transcript
from runbook.ticket.renderers import renderer
from runbook.ticket.renderers.markdown import LIMIT
from tests.runbook.ticket.sample import (
    FLOWS,
    drawn_finding,
    drawn_state,
    open_state,
    sample,
    text,
    triage_state,
    walked_state,
)

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HEADINGS = [
    "Problem",
    "Standing",
    "Evidence lines",
    "What was checked",
    "Ruled out",
    "Unknown, and what would settle it",
    "Next action",
    "Environment",
    "Timeline",
    "Who answered what",
    "Redaction report",
]


def _markdown(state: SessionState, language: str = "en") -> str:
    bare = msgspec.structs.replace(sample(state, language), where=(), seen=())
    hidden, _ = redact_transcript(bare, Identity(("lihua", "wang.fang")))
    return renderer("markdown").render(hidden).decode()


@pytest.mark.parametrize("state", [triage_state, walked_state, open_state], ids=["triage", "walked", "open"])
def test_the_order_is_that_of_the_design(state: object) -> None:
    """Every section is there, in order, whatever kind of session it was."""
    assert callable(state)
    text = _markdown(state())
    expected = [name for name in HEADINGS if f"\n## {name}\n" in text]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == expected
    assert set(HEADINGS) - set(expected) <= {"Timeline"}


def test_a_full_session_reads_as_a_story() -> None:
    """The beginning of the ticket: the cause, the very line, the fix, the chain, what it explains, the notes."""
    assert _markdown(walked_state()).startswith(
        """\
# Illegal memory access or crash tied to DeepEP

**Run:** `/mnt/nfs/user-1/runs/grpo-235b` · **Session:** `20261129-183000-a1b2c3` (2026-11-29 18:30:00 UTC)

## Problem

✗ **confirmed** `ima-deepep`: The stack of rank 3 ends in DeepEP's low_latency_dispatch.

```text
job.log:48219: (Worker pid=19388, ip=ip-1)   File "/home/user-1/deep_ep/buffer.py", line 511, in low_latency_dispatch
job.log:48230: (Worker pid=19388, ip=ip-1)   File "/home/user-1/deep_ep/buffer.py", line 604, in low_latency_dispatch
```

**Fix:** Turn DeepEP off, then update it; 1.1.0 fixes the buffer size for hidden_size &gt; 7168.

**How the evidence leads there**

1. Which CUDA fault came first in the log? → **an illegal memory access** (evidence `cuda.fault`, `job.log:48211`)
2. Does it go away without CUDA graphs? → **ima** (person `user-2`)
3. Is DeepEP on the stack? → **deepep** (evidence `cuda.stack`, `job.log:48219`)

**It explains:** NCCL failure

**Symptom:** The job dies with “an illegal memory access was encountered”.

**Symptom:** The rollout is not coherent.

> Paged by alert #&#8203;4711.\\
> user-1@&#8203;host-1 saw it twice; ask mail-1\\
> — user-1 · 2026-11-29 18:47:00 UTC

## Standing
"""
    )


def test_the_fix_is_in_code_blocks() -> None:
    """Commands and changes of the next action are fenced, its link is clickable."""
    text = _markdown(triage_state())
    action = text[text.index("## Next action") : text.index("## Environment")]
    assert "```bash\npip show deep_ep | head -n 3\nnvidia-smi --query-gpu=driver_version --format=csv\n```" in action
    assert "```diff\n- --enable-deepep-moe\n+ --moe-a2a-backend none\n```" in action
    assert "<https://github.com/deepseek-ai/DeepEP/issues/1>" in action


def test_a_triage_says_that_nobody_walked() -> None:
    """Without a walk the ticket says so, and the open step of the chain is called open."""
    text = _markdown(triage_state())
    assert "Nobody walked a flow" in text
    assert "→ **not known; the way goes on with: ima** (nobody answered this)" in text


def test_chinese_headings() -> None:
    """In Chinese every heading and column is Chinese."""
    headings = re.findall(r"^## (.*)$", _markdown(walked_state(), "zh"), re.MULTILINE)
    assert headings[:3] == ["问题", "结论状态", "证据"]
    assert not any(re.search("[A-Za-z]", heading) for heading in headings)


HOSTILE_LINES = [
    "``` </details> ```` `x` ~~~",
    "| a | b | \\| `|` |",
    "<img src=x onerror=alert(1)> <!-- --> <details>",
    "![pixel](https://evil.example/p.png) [click](javascript:x)",
    "@everyone closes #1, org/repo#2 :100: $x$ &lt;",
    "[rank7] x [/rank0] \x1b[2J \u202e \x00",
    "# heading\n## What was checked\n- item\n> quote",
    "",
    "x" * 1_000_000,
]


def _hostile(words: str) -> SessionState:
    finding = Finding(
        Verdict.PROBLEM,
        "ima",
        Text(words, words),
        (Citation(f"/r/{words[:200]}", 3, 9, words[:400], 2, 1795976278.0),),
        tables=(Table(Text(words, words), (words, "b"), ((words, "`|`"), (words, words))),),
        settle_with=Text(words, words),
        probe="cuda.fault",
    )
    state = walked_state()
    for event in (ev.Found(finding), ev.Noted(words, words[:30])):
        state = fold(state, ev.Record(0, 1795978000.0, event), FLOWS)
    return state


@dataclass
class Seen:
    """What a Markdown parser makes of a ticket."""

    headings: list[str]
    images: int
    links: list[str]
    html: list[str]


def _seen(markdown: str) -> Seen:
    tokens = PARSER.parse(markdown)
    inner = [child for token in tokens for child in token.children or []]
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    html = [t.content.strip() for t in (*tokens, *inner) if t.type in ("html_block", "html_inline")]
    return Seen(
        headings[1:],
        sum(token.type == "image" for token in inner),
        [str(token.attrs["href"]) for token in inner if token.type == "link_open"],
        [re.sub(r"<summary>[^<]*</summary>", "<summary/>", piece) for piece in html],
    )


@pytest.mark.parametrize("words", HOSTILE_LINES, ids=range(len(HOSTILE_LINES)))
@pytest.mark.timeout(60)
def test_hostile_text_changes_nothing_but_the_words(words: str) -> None:
    """Fences, tables, HTML, images, mentions and headings in evidence leave the ticket's own structure as it is."""
    markdown = _markdown(_hostile(words))
    seen = _seen(markdown)
    assert seen.headings == HEADINGS
    assert seen.images == 0
    assert seen.links == ["https://github.com/deepseek-ai/DeepEP/issues/1"]
    assert set(seen.html) <= {"<details><summary/>", "</details>", "<br>"}
    assert seen.html.count("<details><summary/>") == seen.html.count("</details>")
    assert len(markdown) <= LIMIT
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", markdown)


@given(st.text(max_size=80))
@settings(max_examples=40, deadline=None)
def test_any_text_keeps_the_structure(words: str) -> None:
    """Any Unicode text in every place leaves the headings, links and HTML of the ticket as they are."""
    seen = _seen(renderer("markdown").render(sample(_hostile(words))).decode())
    assert seen.headings == HEADINGS
    assert seen.images == 0
    assert set(seen.html) <= {"<details><summary/>", "</details>", "<br>"}
    assert seen.html.count("<details><summary/>") == seen.html.count("</details>")


def test_an_endless_ticket_is_shortened_from_the_least_telling_end() -> None:
    """Thousands of findings, tables and notes still fit; the cause stays whole; what was left out is said."""
    state = walked_state()
    events: list[ev.Event] = [ev.Noted(f"note {n} " + "wide 文字 " * 50) for n in range(50)]
    for n in range(600):
        cited = tuple(Citation(f"/mnt/nfs/lihua/runs/grpo-235b/{n}.log", m, m, f"line {m} " * 40) for m in range(60))
        rows = tuple((f"row {m}", "value " * 30) for m in range(40))
        finding = Finding(
            Verdict.WARNING,
            "x",
            text(f"finding {n} " * 20),
            cited,
            tables=(Table(text("t"), ("a", "b"), rows),),
            probe=f"p.{n}",
        )
        events.append(ev.Found(finding))
    for event in events:
        state = fold(state, ev.Record(0, 1795978000.0, event), FLOWS)
    markdown = renderer("markdown").render(msgspec.structs.replace(sample(state), where=())).decode()
    assert LIMIT - 8000 < len(markdown) <= LIMIT
    seen = _seen(markdown)
    assert seen.headings == HEADINGS
    whole = renderer("markdown").render(msgspec.structs.replace(sample(walked_state()), where=())).decode()
    assert whole[: whole.index("> Paged")] == markdown[: markdown.index("> Paged")]
    last = markdown.rstrip().splitlines()[-1]
    assert last.startswith("Shortened to fit here; left out: ")
    assert "whole.txt" in last
    assert "of 604 in “Evidence lines”" in last
    assert markdown.count("<details>") == markdown.count("</details>")


def test_pictures_stand_beside_their_proof() -> None:
    """The first cause shows its pictures and edits in the problem, other proofs show theirs among the evidence."""
    other = msgspec.structs.replace(drawn_finding("p.other"), verdict=Verdict.WARNING)
    markdown = renderer("markdown").render(sample(drawn_state(drawn_finding(), other))).decode()
    problem = markdown[: markdown.index("## Standing")]
    evidence = markdown[markdown.index("## Evidence lines") : markdown.index("## What was checked")]
    for part in (problem, evidence):
        assert part.count("```text\ngpu-node-17  =x\nlayer 1      =x\n") == 1
        assert part.count("```diff\n--- a/config.json\n") == 1
        plot = part[part.index("**Loss on gpu-node-17**\n\n```text\nnats\n") :].split("```")[1].splitlines()
        assert max(map(len, plot)) <= 72
        assert "× printed, but not finite: 1" in plot
        assert plot[-1] == "loss of lihua"


def test_a_plot_keeps_its_columns_when_names_are_hidden() -> None:
    """Redaction comes before drawing: the axis of a plot stands in one column, whatever its words became."""
    markdown = _markdown(drawn_state(drawn_finding()))
    plot = markdown[markdown.index("**Loss on host-1**") :].split("```")[1].splitlines()
    assert len({line.index(sign) for line in plot for sign in "┤│└" if sign in line}) == 1
    assert "▲ 1  user-1 changed host-1" in plot


@pytest.mark.parametrize(("findings", "lines"), [(1, 5000), (60, 300), (3, 2)])
def test_long_pictures_are_shortened_within_the_limit(findings: int, lines: int) -> None:
    """However many and long they are, the ticket fits; one of the first cause stays, cut after a whole line."""
    others = [msgspec.structs.replace(drawn_finding(f"p.{n}", lines), verdict=Verdict.WARNING) for n in range(findings)]
    state = drawn_state(drawn_finding(lines=lines), *others)
    markdown = renderer("markdown").render(sample(state)).decode()
    assert len(markdown) <= LIMIT
    assert _seen(markdown).headings == HEADINGS
    assert markdown.count("```") % 2 == 0
    problem = markdown[: markdown.index("## Standing")]
    shown = re.findall(r"^(?:gpu-node-17|layer \d+) +(\S+)$", problem, re.MULTILINE)
    assert shown
    assert set(shown) == {"=x"}
    assert ("more, left out here" in problem) is (lines > 1000 or len(shown) < lines)


def test_many_pictures_of_one_proof_fit() -> None:
    """Thirty pictures of the first proof are cut down to what fits, and how many were left out is said."""
    one = drawn_finding(lines=200)
    many = msgspec.structs.replace(one, grids=one.grids * 30)
    markdown = renderer("markdown").render(sample(drawn_state(many))).decode()
    assert len(markdown) <= LIMIT
    assert "“Pictures and proposed edits”" in markdown.rstrip().splitlines()[-1]


def test_json_is_the_whole_transcript() -> None:
    """The JSON ticket decodes to the transcript it was made from, and is ended by a newline."""
    hidden, _ = redact_transcript(sample(walked_state()), Identity(("lihua",)))
    content = renderer("json").render(hidden)
    assert msgspec.json.decode(content, type=type(hidden)) == hidden
    assert content.endswith(b"}\n")
    assert list(msgspec.json.decode(content))[:4] == ["schema", "language", "session", "title"]

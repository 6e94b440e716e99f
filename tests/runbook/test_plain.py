"""Tests of runbook.plain: what a pipe or a plain terminal gets, also from hostile evidence."""

from __future__ import annotations

import io
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from runbook.evidence import Item
from runbook.finding import Citation, Curve, Finding, Grid, Measurement, Plot, Table, Verdict, found, unknown
from runbook.flow.model import Action, Change, Node
from runbook.plain import CITATIONS_SHOWN, Plain
from runbook.plot import sparkline
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.text import Text
from runbook.walk import Decision, How
from tests.helpers import hostile_text, is_safe
from tests.runbook import small
from tests.runbook.plots import RAMP, TWO

PROOF = found(
    Verdict.PROBLEM,
    "not-loaded",
    "It was not loaded.",
    "没有加载。",
    citations=(Citation("/run/job.log", 3, 20, "[/rank0] load: not loaded", 8),),
)


def shown(draw: object, *, language: str = "en", ascii_only: bool = False, width: int | None = None) -> list[str]:
    """Return the lines that `draw` writes to a pipe, or to a terminal of `width` columns."""
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=width is not None, width=width or 80, markup=False, highlight=False, color_system=None
    )
    assert callable(draw)
    draw(Plain(language, ascii_only=ascii_only, console=console))
    return out.getvalue().splitlines()


def test_a_finding_in_full() -> None:
    """Sign and word, probe and answer, summary, place with its count, excerpt: each on its line, markup untouched."""
    finding = msgspec.structs.replace(PROOF, probe="small.load")
    assert shown(lambda plain: plain.finding(finding)) == [
        "✗ problem  small.load: not-loaded  (0.0 s)",
        "  It was not loaded.",
        "  /run/job.log:3  ×8",
        "    [/rank0] load: not loaded",
    ]
    assert shown(lambda plain: plain.finding(finding), ascii_only=True)[2] == "  /run/job.log:3  x8"
    assert shown(lambda plain: plain.finding(finding), language="zh")[:2] == [
        "✗ 有问题  small.load: not-loaded  (0.0 s)",
        "  没有加载。",
    ]


def test_numbers_carry_unit_threshold_and_source() -> None:
    """A measurement says what it is judged by and where that comes from."""
    finding = found(Verdict.WARNING, "yes", "x", "x", measurements=(Measurement("kl", 0.25, "nat", 0.1, "slime"),))
    assert "  kl = 0.25 nat (threshold 0.1; slime)" in shown(lambda plain: plain.finding(finding))


def test_tables_and_what_would_settle_it() -> None:
    """A table of evidence is drawn cell by cell; an unknown ends with what would settle it."""
    table = Table(Text("layers", "层"), ("layer", "state"), (("0", "[bold]ok"), ("1", "zero")))
    lines = shown(lambda plain: plain.finding(found(Verdict.OK, "yes", "x", "x", tables=(table,))))
    assert [line.split() for line in lines[2:]] == [["layers"], ["layer", "state"], ["0", "[bold]ok"], ["1", "zero"]]
    asked = unknown("Cut off.", "x", settle_en="Give the whole log.", settle_zh="x")
    assert shown(lambda plain: plain.finding(asked))[-1] == "  settle it: Give the whole log."


def test_a_grid_is_drawn_with_its_legend() -> None:
    """Each row of a picture stands beside its label, the ends of the columns are named, each code is explained."""
    legend = ((".", Text("same", "相同"), "good"), ("x", Text("differs", "不同"), "bad"))
    grid = Grid(Text("layer by parameter", "x"), ("0", "10"), ("qkv", "mlp", "norm"), ("..x", "x.."), legend)
    lines = shown(lambda plain: plain.finding(found(Verdict.OK, "yes", "x", "x", grids=(grid,))))
    assert lines[2:] == [
        "  layer by parameter",
        "    0   ..x",
        "    10  x..",
        "        qkv .. norm",
        "    . same   x differs",
    ]


def test_a_plot_is_drawn_for_who_reads_it() -> None:
    """Braille on a terminal, signs of every font in a pipe, ASCII where asked; title first, never wider than it is."""
    finding = found(Verdict.OK, "yes", "x", "x", plots=(TWO,))
    pipe = shown(lambda plain: plain.finding(finding))
    assert pipe[2] == "  Two shelves"
    assert pipe[3].startswith("    10 ┤▀▀▀▀▀▀")
    assert pipe[-2:] == ["    a upper", "    b lower"]
    terminal = shown(lambda plain: plain.finding(finding), width=60)
    assert terminal[2].rstrip() == "  Two shelves"
    assert terminal[3].startswith("    10 ┤\u2809\u2809")
    assert max(map(len, terminal)) <= 60
    ascii_only = shown(lambda plain: plain.finding(finding), ascii_only=True)
    assert ascii_only[3].startswith("    10 +aaaaaa")
    assert all(line.isascii() for line in ascii_only[2:])


def test_a_cause_is_shown_with_the_plot_that_proves_it_and_checks_with_sparklines() -> None:
    """The triage draws the plot under the confirmed cause, and names each check with its numbers in one line."""
    desk = Desk(small.catalog())
    proof = msgspec.structs.replace(PROOF, probe="small.load", plots=(RAMP,))
    desk.append(ev.Found(proof))
    lines = shown(lambda plain: plain.triage(desk, desk.report()))
    assert lines.index("    Oven by minute") < lines.index("Checked")
    (line,) = [line for line in lines if line.startswith("✗ problem  small.load")]
    assert line.endswith(f"It was not loaded.  {sparkline([float(x) for x in range(11)], 24, False)}")
    desk.close()


def test_only_the_first_citations_are_written() -> None:
    """Of very many places the first are shown and the rest is counted."""
    many = tuple(Citation("/x", line, 0, f"line {line}") for line in range(1, CITATIONS_SHOWN + 4))
    lines = shown(lambda plain: plain.finding(found(Verdict.OK, "yes", "x", "x", citations=many)))
    assert lines[-1] == "  and 3 more places"
    assert f"  /x:{CITATIONS_SHOWN}" in lines
    assert f"  /x:{CITATIONS_SHOWN + 1}" not in lines


@given(hostile_text, st.sampled_from([None, 20, 80]))
def test_hostile_words_are_drawn_as_words(words: str, width: int | None) -> None:
    """Whatever paths, excerpts, cells, notes and answers hold, only safe characters are written."""
    text = Text(words, words)
    finding = Finding(
        Verdict.PROBLEM,
        words,
        text,
        (Citation(words, 1, 0, words),),
        (Measurement(words, 1.0, words, 2.0, words),),
        (Table(text, (words,), ((words,),)),),
        (Grid(text, (words,), (words,), (words,), ((words, text, "good"),)),),
        plots=(Plot(text, words, words, (Curve(words, ((0.0, 1.0), (1.0, None))),), ((0.0, text),), ((2.0, text),)),),
        settle_with=text,
        probe=words,
    )
    node = Node(
        question=text,
        note=text,
        fix=text,
        branches={words: "x"},
        answers={words: text},
        change=Change(add=(words,), set={words: words}),
        actions=(Action(text, command=words), Action(link=words)),
        verify=(words,),
    )

    def draw(plain: Plain) -> None:
        plain.finding(finding)
        plain.leaf(node)
        plain.choices(node, words)
        plain.evidence([Item(words, words, text)], {})

    assert all(is_safe(line) for line in shown(draw, width=width))


def test_nothing_is_wrapped_in_a_pipe() -> None:
    """A path of 300 characters stays on one line in a pipe, and is wrapped within the width on a terminal."""
    path = "/" + "d" * 300
    finding = found(Verdict.OK, "yes", "x", "x", citations=(Citation(path, 1, 0, "e" * 300),))
    assert f"  {path}:1" in shown(lambda plain: plain.finding(finding))
    assert max(map(len, shown(lambda plain: plain.finding(finding), width=40))) <= 40


def test_the_order_of_a_triage() -> None:
    """The verdict comes first, then confirmed, possible, unknown, ruled out, and what was checked."""
    desk = Desk(small.catalog())
    desk.append(ev.Found(Finding(Verdict.WARNING, "no", Text("It is no.", "否。"), probe="small.text")))
    lines = shown(lambda plain: plain.triage(desk, desk.report()))
    assert lines[0] == "nothing confirmed, 3 causes possible"
    order = [
        lines.index(words)
        for words in ("Possible, what evidence points to first", "Unknown, and what would settle it", "Checked")
    ]
    assert all(before < after for before, after in pairwise(order))
    assert "? possible  not-loaded  The checkpoint was not loaded" in lines
    assert "▲ warning  small.text: no  It is no." in lines
    desk.close()


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ([], "nothing could be decided from this evidence"),
        (
            [Finding(Verdict.OK, "yes", Text("x", "x"), probe="small.text")],
            "nothing wrong found, the main questions were answered",
        ),
        ([Finding(Verdict.PROBLEM, "not-loaded", Text("x", "x"), probe="small.load")], "1 cause confirmed"),
    ],
)
def test_the_first_line_is_the_verdict(events: list[Finding], verdict: str) -> None:
    """The first line of a triage is what a person needs to know when there is time for one line only."""
    desk = Desk(small.catalog())
    for finding in events:
        desk.append(ev.Found(finding))
    assert shown(lambda plain: plain.triage(desk, desk.report()))[0] == verdict
    desk.close()


def test_the_recommended_answer_is_marked() -> None:
    """Answers are numbered; the one that the evidence chose is marked; disagreement is said."""
    flow = small.catalog().flows["small"]
    assert shown(lambda plain: plain.choices(flow.nodes["coherent"], "no")) == [
        "  1  yes  coherent",
        "  2  no    (recommended)",
    ]
    told = shown(lambda plain: plain.node(flow, "coherent", Decision(How.DISAGREE)))
    assert told[-1].strip() == "The probes disagree; you decide."


def test_changes_are_instructions() -> None:
    """Added and removed flags, new values and variables each have their sign."""
    change = Change(add=("--a",), remove=("--b",), set={"--c": "1"}, env={"D": "2"})
    assert change.lines() == ("- --b", "+ --a", "+ --c 1", "+ export D=2")

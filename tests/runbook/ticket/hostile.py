"""Texts that try to be more than text in one of the markups, and a session in which they stand everywhere."""

from __future__ import annotations

from runbook.finding import Citation, Curve, Finding, Grid, Plot, Proposal, Table, Verdict
from runbook.session import events as ev
from runbook.session.state import SessionState, fold
from runbook.text import Text
from tests.runbook.ticket.sample import FLOWS, walked_state

HOSTILE_WORDS = (
    "[rank7] [/rank0] [bold]x[/]",
    "``` ```` ~~~ `a` ``b``",
    "| a | b |---|---|",
    "</details></summary><script>alert(1)</script><img src=x onerror=alert(1)>",
    "<!-- --> <?php ?> ]]> &lt;b&gt; &#60; &amp;",
    "![x](http://evil.example/x.png) [y](javascript:alert(1)) <http://evil.example>",
    "@all @octocat #12 GH-12 octo/repo#1 !7 ~bug %v1 $12 &3 ^alert#4 *iteration:5 [epic:1] fixes #9",
    "/close /assign @all",
    "::include{file=a} [[_TOC_]] [TOC] $`x`$ {+ a +} [- b -]",
    "- [ ] task - [x] done * a + b 1. c # d > e === --- ***",
    "{noformat} {code} {code:java} {panel} {color:red}x{color} {quote} {{x}}",
    "[~admin] [^file.doc] [http://evil.example|x] !http://evil.example/x.png! h1. a bq. b",
    "*b* _i_ -d- +u+ ^s^ ~t~ ??c?? :) (x) (!) (/) ---- -- --- \\\\ ABC-123",
    "C:\\\\temp\\{x\\} \\[a\\] \\*b\\* \\",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00\x07\x9b2J \u202eabc\u2066 \u200bz",
    "第三个 rank 🔥🧯 停在第十七步，（然后）“再说”。",
)


def hostile_state(words: str) -> SessionState:
    """Return the state of a walk in which the words stand wherever evidence or a person can bring them."""
    text = Text(words, words)
    curve = Curve(words, ((0.0, 1.0), (1.0, None)))
    finding = Finding(
        Verdict.PROBLEM,
        "ima",
        text,
        (Citation(f"/r/{words[:200]}", 3, 9, words[:400], 2, 1795976278.0),),
        tables=(Table(text, (words, "b"), ((words, "`|`"), (words, words))),),
        grids=(Grid(text, (words,), (words,), (words,), ((words, text, words),)),),
        proposals=(Proposal("x.patch", words, f"+{words}\n-{words}"),),
        plots=(Plot(text, words, words, (curve, curve), ((0.0, text),), ((1.0, text),)),),
        settle_with=text,
        probe="cuda.fault",
    )
    state = walked_state()
    for event in (ev.Found(finding), ev.Noted(words, words[:30])):
        state = fold(state, ev.Record(0, 1795978000.0, event), FLOWS)
    return state

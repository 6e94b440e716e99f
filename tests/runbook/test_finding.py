"""Tests of runbook.finding."""

from __future__ import annotations

import msgspec
from hypothesis import given

from runbook.finding import Citation, Finding, Measurement, Table, Verdict, cite, found, not_applicable, unknown
from runbook.text import EXCERPT_LIMIT, Text
from tests.helpers import hostile_bytes, hostile_text, is_safe


def test_only_three_verdicts_decide() -> None:
    """An answer chooses a branch when it is ok, a problem or a warning; no kind of not-knowing does."""
    assert [verdict.value for verdict in Verdict if verdict.decides] == ["ok", "problem", "warning"]


@given(hostile_bytes)
def test_excerpts_are_sanitised_and_cut(raw: bytes) -> None:
    """A citation carries safe text of at most EXCERPT_LIMIT characters, whatever the file holds."""
    citation = cite("job.log", raw * 40, line=1, offset=0)
    assert is_safe(citation.excerpt)
    assert len(citation.excerpt) <= EXCERPT_LIMIT


@given(hostile_text)
def test_summaries_are_sanitised(words: str) -> None:
    """Words that a probe builds from evidence are made safe when the finding is made."""
    built = (
        found(Verdict.OK, "yes", words, words),
        unknown(words, words, settle_en=words, settle_zh=words),
        not_applicable(words, words),
    )
    for finding in built:
        for text in (finding.summary, finding.settle_with or Text("", "")):
            assert is_safe(text.en)
            assert is_safe(text.zh)


def test_unknown_has_no_answer() -> None:
    """What could not be answered carries no word that a flow could branch on, but says what would settle it."""
    finding = unknown("a", "甲", settle_en="b", settle_zh="乙", slots=("log",))
    assert (finding.verdict, finding.answer, finding.slots) == (Verdict.UNKNOWN, None, ("log",))
    assert finding.settle_with == Text("b", "乙")
    assert not_applicable("a", "甲").answer is None


def test_a_finding_survives_the_journal() -> None:
    """A finding with everything in it is the same after a way through JSON."""
    finding = found(
        Verdict.PROBLEM,
        "yes",
        "words",
        "词",
        citations=(Citation("a", 3, 40, "[/rank0]", 8, 1.5), Citation("b")),
        measurements=(Measurement("kl", 0.5, "nat", 0.1, "slime"),),
        tables=(Table(Text("t", "表"), ("a",), (("1",),)),),
    )
    assert msgspec.json.decode(msgspec.json.encode(finding), type=Finding) == finding


def test_a_table_speaks_one_language() -> None:
    """Columns and cells with Chinese words read so in Chinese, and as they are in English."""
    title = Text("Why", "原因")
    table = Table(title, ("why", "file"), (("loops", "a.pt"),), (("why", "原因"), ("loops", "循环")))
    assert table.said("en").columns == ("why", "file")
    assert (table.said("zh").columns, table.said("zh").rows) == (("原因", "file"), (("循环", "a.pt"),))

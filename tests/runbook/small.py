"""The small world of the engine's tests: two probes that read one log, and the flow in tests/data/flows over them."""

from __future__ import annotations

import time
from pathlib import Path

from runbook.catalog import Catalog
from runbook.evidence import Candidate, Evidence, Match, Slot
from runbook.finding import Finding, Verdict, cite, found, unknown
from runbook.flow.load import load_flow, load_vocabulary
from runbook.probe import Progress, probe
from runbook.text import Text
from tests.runbook.misbehaving import write_pid
from tests.runbook.shelf import shelf

BROWSERS = (shelf,)
"""The library, which wants no more than a log."""

FLOWS = Path(__file__).parents[1] / "data" / "flows"

GARBLED = b"start\ntext: garbled\nload: not loaded\n"
"""A log in which both probes find something wrong."""

FINE = b"start\ntext: fine\nload: loaded\n"
"""A log in which they do not."""


def _ask(evidence: Evidence, key: bytes, answers: dict[bytes, tuple[Verdict, str]]) -> Finding:
    """Return what the line that begins with `key` says."""
    path = evidence.paths("log")[0]
    offset = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            words = line.rstrip(b"\n")
            if words.startswith(key):
                verdict, answer = answers[words.removeprefix(key).strip()]
                proof = (cite(path, words, line=number, offset=offset),)
                return found(verdict, answer, f"It is {answer}.", f"结果是 {answer}。", citations=proof)
            offset += len(line)
    return unknown("It is not said.", "没有说明。", settle_en="Give more.", settle_zh="请提供更多。", slots=("log",))


@probe("small.text", needs="log", answers=("yes", "no"), en="Is the text coherent?", zh="文本是否通顺？")
def text(evidence: Evidence, report: Progress) -> Finding:
    """Read the line of the text; garbled text is a warning, for it does not say why."""
    return _ask(evidence, b"text:", {b"fine": (Verdict.OK, "yes"), b"garbled": (Verdict.WARNING, "no")})


@probe(
    "small.load",
    needs="log",
    answers=("loaded", "not-loaded"),
    en="Was it loaded?",
    zh="是否加载？",
    over=("loaded", "not-loaded"),
)
def load(evidence: Evidence, report: Progress) -> Finding:
    """Read the line of the checkpoint; one that was not loaded is a proof."""
    found_in = {b"loaded": (Verdict.OK, "loaded"), b"not loaded": (Verdict.PROBLEM, "not-loaded")}
    return _ask(evidence, b"load:", found_in)


@probe("small.whole", needs="log", answers=("loaded", "not-loaded"), en="Is it whole?", zh="完整吗？", heavy=True)
def bulk(evidence: Evidence, report: Progress) -> Finding:
    """Say what `small.load` says, after reading very much."""
    return load.run(evidence, report)


@probe("small.none", needs="log", answers=("yes", "no"), en="Is it odd?", zh="异常吗？")
def none(evidence: Evidence, report: Progress) -> Finding:
    """Cannot tell, whatever the log says."""
    return unknown("It is not said.", "没有说明。", settle_en="Ask a person.", settle_zh="请询问相关人员。")


@probe("small.slow", needs="log", answers=("yes",), en="Does it take long?", zh="要很久吗？")
def slow(evidence: Evidence, report: Progress) -> Finding:
    """Say that it began, by a file beside the log, and never answer."""
    write_pid(evidence)
    while True:
        time.sleep(60)


def is_log(candidate: Candidate) -> Match | None:
    """Know a log by its first word."""
    return Match(50, Text("begins with start", "以 start 开头")) if candidate.head.startswith(b"start") else None


@probe("small.early", needs="log", answers=("seen",), en="What is seen at once?", zh="一眼能看到什么？", early=True)
def early(evidence: Evidence, report: Progress) -> Finding:
    """See that there is a log."""
    return found(Verdict.OK, "seen", "There is a log.", "有日志。")


LOG = Slot("log", Text("log", "日志"), is_log, many=True)
DUMP = Slot("dump", Text("dump", "转储"))
HEAD = Slot("head", Text("address of the head", "头节点地址"), holds="url")


def catalog() -> Catalog:
    """Return the catalog of this world."""
    loaded = load_flow(FLOWS / "small.yaml")
    return Catalog(
        {load.id: load, text.id: text},
        {"log": LOG},
        (),
        {loaded.flow.flow: loaded},
        load_vocabulary(FLOWS / "causes.yaml")[0],
    )

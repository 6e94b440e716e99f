"""A small domain-free catalogue for tests of the terminal UI, about a kitchen.

Probes run in worker processes, so they stand at module level here. What they find is written in the log they are
asked of.
"""

from __future__ import annotations

import time

from runbook.catalog import Catalog
from runbook.evidence import Candidate, Evidence, Match, Slot
from runbook.finding import Finding, Measurement, Table, Verdict, cite, found, unknown
from runbook.flow.load import LoadedFlow, Source
from runbook.flow.model import Action, Cause, Change, Flow, Node
from runbook.probe import Progress, probe
from runbook.text import Text


def both(en: str, zh: str = "") -> Text:
    """Return words in both languages."""
    return Text(en, zh or en)


def _line(path: str, word: bytes) -> tuple[int, int, bytes] | None:
    offset = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if word in line:
                return number, offset, line
            offset += len(line)
    return None


SLOW_FOUND = found(Verdict.OK, "done", "Baked through.", "烤透了。")


@probe("kitchen.oven", needs="log", answers=("hot", "cold"), en="Is the oven hot?", zh="烤箱热吗？")
def oven(evidence: Evidence, report: Progress) -> Finding:
    """Look for the line in which the oven says that it is off."""
    path = evidence.paths("log")[0]
    hit = _line(path, b"oven: OFF")
    if hit is None:
        return found(Verdict.OK, "hot", "The oven is at 230 degrees.", "烤箱温度为 230 度。")
    number, offset, raw = hit
    return found(
        Verdict.PROBLEM,
        "cold",
        "The oven was switched off before the dough went in.",
        "面团放入之前烤箱已关闭。",
        citations=(cite(path, raw, line=number, offset=offset, count=8),),
        measurements=(Measurement("temperature", 21.5, "C", 180.0, "the recipe, page 4"),),
        tables=(Table(both("By shelf"), ("shelf", "temperature"), (("upper", "21.5 C"), ("lower", "20.9 C"))),),
    )


@probe("kitchen.dough", needs="log", answers=("risen", "flat"), en="Has the dough risen?", zh="面团发好了吗？")
def dough(evidence: Evidence, report: Progress) -> Finding:
    """Read the printout of the scale; without one it cannot tell."""
    printout = evidence.first("scale")
    if printout is not None:
        with open(printout, "rb") as file:
            line = file.readline()
        cited = (cite(printout, line.rstrip(b"\n"), line=1, offset=0),)
        return found(Verdict.OK, "risen", "The dough weighs enough.", "面团重量足够。", citations=cited)
    return unknown(
        "Nobody weighed the dough.",
        "没有人称过面团。",
        settle_en="Give the scale's printout.",
        settle_zh="请提供秤的打印结果。",
        slots=("scale",),
    )


@probe("kitchen.slow", needs="log", answers=("done", "raw"), en="Is it baked through?", zh="烤透了吗？", deadline=30)
def slow(evidence: Evidence, report: Progress) -> Finding:
    """Take its time and say how far it is."""
    for i in range(200):
        report(i, 200.0, "loaves")
        time.sleep(0.05)
    return SLOW_FOUND


FLOW = Flow(
    flow="bread",
    title=both("Bread does not come out right", "面包烤不好"),
    symptom=both("pale, flat or burnt loaves", "面包发白、塌陷或烤焦"),
    start="oven-hot",
    guide="1",
    nodes={
        "oven-hot": Node(
            guide="1.1",
            question=both("Is the oven hot?", "烤箱热吗？"),
            note=both("The guide says: look at the lamp first.", "指南说：先看指示灯。"),
            probes=("kitchen.oven",),
            branches={"hot": "dough-risen", "cold": "oven-off"},
        ),
        "oven-off": Node(
            cause="oven-off",
            guide="1.1",
            fix=both("Switch it on and wait for the lamp.", "打开烤箱并等待指示灯。"),
            actions=(Action(both("switch it on"), command="oven --on \\\n  --celsius 230"),),
            verify=("kitchen.oven",),
        ),
        "dough-risen": Node(
            guide="1.2",
            question=both("Has the dough risen?", "面团发好了吗？"),
            probes=("kitchen.dough",),
            branches={"risen": "other-flour", "flat": "old-yeast"},
        ),
        "old-yeast": Node(cause="old-yeast", guide="1.2", fix=both("Buy fresh yeast.", "买新鲜酵母。")),
        "other-flour": Node(
            guide="1.3",
            question=both("Is it right with other flour?", "换一种面粉后正常吗？"),
            change=Change(add=("--flour", "rye"), remove=("--old",), set={"--minutes": "50"}, env={"KITCHEN": "2"}),
            probes=("kitchen.oven",),
            branches={"hot": "taste", "cold": "oven-off"},
        ),
        "taste": Node(
            guide="1.4",
            question=both("Does it taste right?", "味道对吗？"),
            answers={"yes": both("it does", "对"), "no": both("it does not", "不对")},
            branches={"yes": "all-well", "no": "bad-flour"},
        ),
        "bad-flour": Node(cause="bad-flour", guide="1.4", fix=both("Sieve it.", "过筛。")),
        "all-well": Node(clear=both("Nothing is wrong with the bread.", "面包没有问题。")),
    },
)
OTHER = Flow(
    flow="soup",
    title=both("Soup is cold", "汤是凉的"),
    symptom=both("guests complain about cold soup", "客人抱怨汤凉"),
    start="stove",
    nodes={
        "stove": Node(
            question=both("Is the stove on?", "炉子开着吗？"),
            probes=("kitchen.slow",),
            branches={"done": "fine", "raw": "stove-off"},
        ),
        "fine": Node(clear=both("The soup is fine.", "汤没有问题。")),
        "stove-off": Node(cause="stove-off", fix=both("Switch it on.", "打开炉子。")),
    },
)
VOCABULARY = {
    "oven-off": Cause("1.1", both("The oven is off", "烤箱没有打开")),
    "old-yeast": Cause("1.2", both("The yeast is too old", "酵母过期")),
    "bad-flour": Cause("1.4", both("The flour is bad", "面粉变质")),
    "stove-off": Cause("-", both("The stove is off", "炉子没有打开")),
}


def is_printout(candidate: Candidate) -> Match | None:
    """Know a printout by its first word."""
    return Match(50, both("begins with scale", "以 scale 开头")) if candidate.head.startswith(b"scale") else None


LOG = Slot("log", both("kitchen log", "厨房日志"))
SCALE = Slot("scale", both("scale printout", "秤的打印结果"), is_printout)
THERMOMETER = Slot("thermometer", both("address of the thermometer", "温度计地址"), holds="url")
SLOTS = {slot.name: slot for slot in (LOG, SCALE, THERMOMETER)}


def catalog(*flows: Flow) -> Catalog:
    """Return a catalogue of `flows`, by default both."""
    chosen = flows or (FLOW, OTHER)
    return Catalog(
        probes={p.id: p for p in (oven, dough, slow)},
        slots=SLOTS,
        loaded={f.flow: LoadedFlow(f, Source(f"{f.flow}.yaml", {}), f"hash of {f.flow}") for f in chosen},
        vocabulary=VOCABULARY,
    )

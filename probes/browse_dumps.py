"""The browser of debug dumps: rollouts, the samples of one, and one sample with its log-probs token by token.

It shows what dumps hold and judges no more than the row of a sample needs; the probes of dumps decide. Invariants: the
first page costs no more than the heads of the files and what can be read at once, the rest comes as it is asked again;
tokens that the loss does not count are never compared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from probes.browse_keep import PACKS, Keep, Kept, size_of
from probes.browse_sample import reading
from probes.browse_step import Row, Step, steps_of
from probes.readers.token_text import read_vocabulary
from probes.thresholds import metrics as limits
from probes.thresholds import samples
from runbook.browse import Ask, Column, Depth, Line, Page, Sheet, browser, no_such
from runbook.evidence import Evidence
from runbook.text import Text

AT_ONCE = 16 << 20
"""Bytes of dumps that the first page reads before it is shown."""

SECONDS, MORE_SECONDS = 0.5, 2.0
"""Time in which the first page, and each time it is asked again, begins another rollout."""

_GAP_LIMITS = ((limits.GAP_CI.value, Text("slime's CI limit", "slime CI 上限")),)

STEP_COLUMNS = (
    Column("step", Text("rollout", "rollout"), number=True),
    Column("dumps", Text("dumps", "dump")),
    Column("samples", Text("samples", "样本数"), number=True),
    Column("gap", Text("mean gap", "平均差"), number=True, unit="nat", digits=4, limits=_GAP_LIMITS, plotted=True),
    Column("largest", Text("largest", "最大差"), number=True, unit="nat", plotted=True),
    Column("disagree", Text("disagreeing", "有分歧"), number=True, percent=True, plotted=True),
    Column("reward", Text("reward", "奖励"), number=True, digits=3, plotted=True),
    Column("length", Text("tokens", "token 数"), number=True, digits=0, plotted=True),
    Column("truncated", Text("truncated", "截断"), number=True, percent=True, plotted=True),
    Column("odd", Text("suspicious", "可疑"), number=True, percent=True, plotted=True),
    Column("logprob", Text("engine log-prob", "推理 log-prob"), number=True, digits=3, plotted=True),
    Column("note", Text("note", "备注")),
)

SAMPLE_COLUMNS = (
    Column("sample", Text("sample", "样本"), number=True),
    Column("status", Text("status", "状态")),
    Column("reward", Text("reward", "奖励"), number=True, digits=3),
    Column("length", Text("tokens", "token 数"), number=True),
    Column("gap", Text("mean gap", "平均差"), number=True, unit="nat", digits=4, limits=_GAP_LIMITS),
    Column("largest", Text("largest", "最大差"), number=True),
    Column("first", Text("first at", "首次于"), number=True),
    Column("suspicion", Text("suspicion", "可疑之处")),
    Column("response", Text("response", "回答")),
    Column("prompt", Text("end of the prompt", "提示末尾")),
    Column("group", Text("group", "组"), number=True),
    Column("logprob", Text("engine log-prob", "推理 log-prob"), number=True, digits=3),
)

_COMPARED = ("gap", "largest", "first")
"""Columns that are left out where nothing can be compared."""


@browser(
    "dumps",
    needs="rollout_dump|train_dump",
    en="Debug dumps",
    zh="调试 dump",
    depths=(
        Depth("step", Text("rollout {id}", "rollout {id}")),
        Depth("sample", Text("sample {id}", "样本 {id}")),
    ),
)
def dumps(evidence: Evidence, ask: Ask) -> Page:
    """Open the rollouts, the samples of one, or one sample."""
    steps, keep = steps_of(evidence), Keep(ask.keep)
    if not ask.place:
        return _rollouts(steps, keep, again=ask.again)
    step = next((step for step in steps if step.id == ask.place[0]), None)
    if step is None:
        raise no_such("rollout", ask.place[0], ", ".join(step.id for step in steps[:20]))
    if len(ask.place) == 1:
        return _samples(step, keep, ask.find, again=ask.again)
    kept, record = keep.record(step, ask.place[1])
    if record is None:
        raise no_such("sample", ask.place[1], ", ".join(row.id for row in kept.rows[:20]))
    return reading(step, record, ask.part, read_vocabulary(evidence.paths("hf_checkpoint")))


def _rollouts(steps: Sequence[Step], keep: Keep, *, again: bool) -> Sheet:
    """Return one row a rollout: what is known already, and what can be read in a moment, the last rollouts first."""
    known: dict[str, Kept] = {}
    for step in steps:
        kept = keep.rows(step)
        if kept is not None:
            known[step.id] = kept
    end = time.monotonic() + (MORE_SECONDS if again else SECONDS)
    room = None if again else AT_ONCE
    for step in _spread(steps):
        if (step.id in known and known[step.id].whole) or time.monotonic() > end:
            continue
        if room is not None:
            room -= size_of(step)
            if room < 0:
                break
        known[step.id] = keep.made(step, pack=len(steps) <= PACKS, until=end)
    lines = tuple(_rollout(step, known.get(step.id)) for step in steps)
    done = sum(kept.done for kept in known.values()) / len(steps) if steps else 1.0
    return Sheet(Text("Rollouts", "各次 rollout"), STEP_COLUMNS, lines, over="step", done=done)


def _spread(steps: Sequence[Step]) -> list[Step]:
    """Return the rollouts in the order in which they are read: ends first, then ever finer, so that a trend shows."""
    order: dict[int, None] = {}
    last, stride = len(steps) - 1, max(len(steps) - 1, 1)
    while stride >= 1:
        order |= dict.fromkeys([*range(0, last + 1, stride), last] if last >= 0 else [])
        stride //= 2
    return [steps[place] for place in order]


def _rollout(step: Step, kept: Kept | None) -> Line:
    rows = kept.rows if kept is not None else ()
    gaps = [(row.gap, row.compared) for row in rows if row.gap is not None]
    compared = [row for row in rows if row.disagree is not None]
    judged = [row for row in rows if row.kind in ("coherent", "garbled", "empty")]
    gap = sum(gap * n for gap, n in gaps) / sum(n for _, n in gaps) if gaps else None
    odd = _share([row.odd is not None for row in judged])
    note = "" if kept is None else "; ".join(fault.rsplit("/", 1)[-1] for fault in kept.faults)
    cells = (
        step.number,
        f"{step.kinds} (eval)" if step.id.startswith("eval") else step.kinds,
        len(rows) if kept is not None else None,
        gap,
        max((row.largest for row in rows if row.largest is not None), default=None),
        _share([bool(row.disagree) for row in compared]),
        _mean([row.reward for row in rows]),
        _mean([float(row.length) for row in rows]),
        _share([row.status == "truncated" for row in rows if row.status]),
        odd,
        _mean([row.log_prob for row in rows]),
        Text("not read yet", "尚未读取") if kept is None else note,
    )
    bad = (gap or 0) > limits.GAP_PROVEN.value or (odd or 0) >= samples.GARBLED_SHARE.value or bool(note)
    warn = (gap or 0) > limits.GAP_CI.value or bool(odd)
    return Line(step.id, cells, "bad" if bad else "warn" if warn else "")


def _samples(step: Step, keep: Keep, find: str, *, again: bool) -> Sheet:
    kept = keep.made(step, pack=True, until=time.monotonic() + (MORE_SECONDS if again else SECONDS / 2))
    rows = kept.rows
    if find:
        found = keep.search(step, find)
        rows = tuple(row for row in rows if row.id in found)
    compared = any(row.gap is not None for row in rows)
    notes = [Text(fault, fault) for fault in kept.faults]
    notes += [Text(f"no rank wrote {what.en}", f"没有 rank 写出{what.zh}") for what in kept.missing]
    if not compared and rows:
        notes.append(
            Text(
                "no log-probs of both sides: give rollout and train dump to compare",
                "没有双侧 log-prob：同时提供 rollout 与 train dump 才能比较",
            )
        )
    done = 1.0 if find else kept.done
    if keep.packs(step) and not keep.has_records(step):
        done = min(done, 0.99)
    shown = [place for place, column in enumerate(SAMPLE_COLUMNS) if compared or column.id not in _COMPARED]
    lines = [_sample(row) for row in rows]
    return Sheet(
        Text(f"Samples of rollout {step.id}", f"rollout {step.id} 的样本"),
        tuple(SAMPLE_COLUMNS[place] for place in shown),
        tuple(Line(line.id, tuple(line.cells[place] for place in shown), line.role) for line in lines),
        order="-gap" if compared else "",
        notes=tuple(notes),
        done=done,
        finds=True,
    )


def _sample(row: Row) -> Line:
    cells = (
        row.index,
        row.status,
        row.reward,
        row.length,
        row.gap,
        row.largest,
        row.first,
        row.odd if row.odd is not None else "" if row.kind else None,
        row.response,
        row.prompt,
        row.group,
        row.log_prob,
    )
    gap = row.gap or 0.0
    bad = row.kind == "garbled" or gap > limits.GAP_PROVEN.value
    warn = row.odd is not None or gap > limits.GAP_CI.value or bool(row.disagree) or row.status in ("aborted", "failed")
    return Line(row.id, cells, "bad" if bad else "warn" if warn else "")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and value == value]  # noqa: PLR0124  # NaN
    return sum(known) / len(known) if known else None


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None

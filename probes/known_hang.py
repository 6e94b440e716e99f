"""In which phase a job that no longer moves stands still.

Told by a stack dump of a trainer (`known_hang_stack`), which shows one moment and is a warning, or by a timer that was
left open in silence (`known_hang_timer`), which is proof. A log that ends in the midst of a phase tells neither.
"""

from __future__ import annotations

from probes import logs
from probes.known_hang_stack import SAVED, WAITS, waits_in
from probes.known_hang_timer import QUIET_UNCOMPARED, SIGNATURES, Phase, Timers, phase
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.logscan import Coverage
from probes.readers.timers import WAIT
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Verdict, found, unknown
from runbook.probe import Progress, probe

_WORDS = {
    "train-step": ("a train step", "训练 step"),
    "weight-update": ("the weight update", "权重更新"),
    "checkpoint-save": ("saving a checkpoint", "保存 ckpt"),
    "rollout": ("waiting for a rollout", "等待 rollout"),
}
DUMPED = "-dumped"
"""What an answer ends in that one stack dump gives: a lead, which another dump some minutes later settles."""
_SOURCE = "5 times the longest such phase of this log, and 3 times slime's --distributed-timeout-minutes of 10"
_SOURCE_ALONE = "no such phase ended in this log: 12 times slime's --distributed-timeout-minutes of 10"


@probe(
    "hang.phase",
    needs="log",
    answers=("none", *_WORDS, *(f"{phase}{DUMPED}" for phase in _WORDS if phase != "rollout")),
    en="In which phase does the trainer stand still?",
    zh="训练进程停在哪个阶段？",
    deadline=logs.DEADLINE,
)
def hang_phase(evidence: Evidence, report: Progress) -> Finding:
    """Report where a stack dump waits, else the phase that was left open in silence."""
    scanned = Scanned(Coverage())
    timers = Timers()
    for hit in logs.stream(evidence, report, (WAITS, SAVED, *SIGNATURES), scanned.coverage):
        if hit.label in (WAITS.label, SAVED.label):
            scanned.hits.setdefault(hit.label, []).append(hit)
        else:
            timers.feed(hit)
    dumped = _dumped(scanned)
    if dumped is not None:
        return dumped
    open_phases = [phase(timers, name, start, scanned.coverage.files) for name, start in timers.innermost()]
    still = [one for one in open_phases if one.silence >= one.needed and one.answer]
    if still:
        return _silent(min(still, key=lambda one: one.name == WAIT))
    return logs.unread(scanned.coverage) or _open(open_phases) or _closed(timers)


def _dumped(scanned: Scanned) -> Finding | None:
    """Report the phase in which a dumped trainer waits for the other ranks."""
    waiting = waits_in(scanned)
    if waiting is None:
        return None
    answer, hit, frame = waiting
    en, zh = _WORDS[answer]
    return found(
        Verdict.WARNING,
        f"{answer}{DUMPED}",
        f"A stack dump shows a trainer in {en} ({frame.function}), waiting for the other ranks (line {hit.line}).",
        f"堆栈显示训练进程处于{zh}（{frame.function}），在等其他 rank（第 {hit.line} 行）。",
        citations=(joblog.citation(hit), joblog.cite_placed(hit.file, frame.place)),
    )


def _silent(one: Phase) -> Finding:
    """Report a phase that was left open in silence; waiting for a rollout is no proof, for rollouts differ."""
    answer = one.answer or ""
    en, zh = _WORDS[answer]
    alone = one.needed == QUIET_UNCOMPARED
    return found(
        Verdict.WARNING if answer == "rollout" else Verdict.PROBLEM,
        answer,
        f"Timer {one.name} began at line {one.start.line} and never ended: {en} has been silent for "
        f"{one.silence / 60:.0f} min while the log went on.",
        f"Timer {one.name} 自第 {one.start.line} 行开始后一直没有结束：{zh}已 {one.silence / 60:.0f} "
        "分钟没有任何输出，而日志仍在继续。",
        citations=(joblog.citation(one.start), *((one.last,) if one.last is not None else ())),
        measurements=(Measurement("silence", one.silence, "s", one.needed, _SOURCE_ALONE if alone else _SOURCE),),
    )


def _open(phases: list[Phase]) -> Finding | None:
    """Say that the log ends in the midst of a phase, which a hang and a copy of a running job have in common."""
    begun = [one for one in phases if one.name != WAIT]
    if not begun:
        return None
    one = begun[-1]
    return unknown(
        f"Timer {one.name} began at line {one.start.line}; the log ends before it is clear whether it hangs.",
        f"Timer {one.name} 自第 {one.start.line} 行开始；日志结束得太早，无法判断是否卡住。",
        settle_en="Copy the log again half an hour later, or add a stack dump: py-spy dump --pid PID of each trainer.",
        settle_zh="半小时后重新拷贝日志，或对每个训练进程执行 py-spy dump --pid PID 并附上输出。",
        slots=("log",),
        citations=(joblog.citation(one.start),),
    )


def _closed(timers: Timers) -> Finding:
    """Say that every phase that began has ended, or that the log prints none."""
    if not timers.seen:
        return logs.nothing_said("The log prints no timer of a trainer.", "日志里没有训练进程的 Timer 行。")
    if timers.ended is not None:
        hit, name = timers.ended
        return found(
            Verdict.OK,
            "none",
            f"Timer {name} did not hang: it ended in the fault at line {hit.line}.",
            f"Timer {name} 不是卡住：它因第 {hit.line} 行的故障而中断。",
            citations=(joblog.citation(hit),),
        )
    return found(
        Verdict.OK, "none", "Every phase that the trainer began has ended.", "训练进程开始的每个阶段都已结束。"
    )

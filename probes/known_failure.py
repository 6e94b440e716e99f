"""Which known failure ended the job, of those that need no code of their own: the entries asked by `known.in_log`.

An entry of the library is one line; whether it counts is decided here, for all alike (docs/decisions/0110). It must end
something: the driver or a child process by an exception that nobody caught, an SGLang process, or, of an entry that is
`fatal`, the program that printed it while nothing before explains its end. A CUDA fault, memory that ran out or another
engine's exception before it makes it a consequence. What counts for less is unknown, with its line. Lines that alarm
people and are harmless are explained in a table and change no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from probes import faults, logs
from probes.job_last_words import TRACEBACK, uncaught
from probes.known import Asked
from probes.known.model import Entry, Kind, Role
from probes.logs import Scanned
from probes.readers import joblog, logplace
from probes.readers.joblog import Placed
from probes.readers.logscan import Hit
from probes.settings import read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

ASKED = Asked("known.in_log")
CAUSES = (
    "environment-broken",
    "storage-failed",
    "data-invalid",
    "reward-function-failed",
    "router-version-mismatch",
    "unsupported-model",
    "unsupported-flag-combination",
    "debug-flags-conflict",
    "parallel-layout-invalid",
    "quant-config-invalid",
    "weight-update-failed",
    "inductor-cache-race",
    "ima-deepep",
)
"""The answers: causes that entries of these files speak for, each with a leaf in the flow job-died."""
_EXPLAINING = (*faults.CUDA, *faults.OOM, faults.ENGINE_EXCEPTION)
_CHILD = re.compile(r"^Process \S{1,200}:$")
"""What multiprocessing prints above the traceback that ended a child (Lib/multiprocessing/process.py)."""
_INTO_DRIVER = re.compile(
    r'^ {2}File "(?:[^"]{1,300}/)?train\w*\.py", line \d+, in <module>|^ray\.exceptions\.RayTaskError\('
)
"""The outermost frame of slime's drivers, which catch nothing, and a task's error that ray.get raised there."""
_KINDS = ((Kind.RAYLET, re.compile(r"^(?:raylet|autoscaler|gcs_server)$")), (Kind.MANAGER, re.compile(r"^Rollout")))
_LOOKED_AT = 60
_SHOWN = 12


@dataclass(frozen=True)
class _Ended:
    """An entry's hit that ended something. proof: the line that tells so, None where the entry's own is enough."""

    entry: Entry
    hit: Hit
    proof: Placed | None


@probe(
    "known.in_log",
    needs="log",
    answers=("none", *CAUSES),
    en="Did a known failure end the job?",
    zh="任务是否因某种已知故障而结束？",
    deadline=logs.DEADLINE,
)
def known_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first known failure that ended something; else show one that may have; else explain what alarms."""
    entries = ASKED.entries()
    scanned = logs.collect(evidence, report, (*ASKED.signatures(), TRACEBACK, *_EXPLAINING))
    roots = [label for label, entry in entries.items() if entry.role is Role.ROOT]
    hits = [hit for hit in _ordered(scanned.standing(*roots)) if _counts(hit, entries[hit.label], evidence)]
    ended = next(_ended(scanned, hits[:_LOOKED_AT]), None)
    if ended is not None:
        return _report(ended, [hit for hit in hits if hit.label == ended.entry.id])
    harmless = _harmless(scanned)
    open_ones = [hit for hit in hits[:_LOOKED_AT] if _explained(scanned, hit, joblog.context(hit)) is None]
    if open_ones:
        return _open(open_ones[0])
    return (
        logs.unread(scanned.coverage)
        or scanned.history("none", *roots)
        or found(
            Verdict.OK,
            "none",
            "No known failure of these kinds stands in the logs.",
            "日志中没有这类已知故障。",
            tables=(harmless,) if harmless else (),
        )
    )


def _ordered(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without those that stand in a line with one that says more (`over`)."""
    entries = ASKED.entries()
    beaten = {(hit.file.path, hit.line, less) for hit in hits for less in entries[hit.label].over}
    return [hit for hit in hits if (hit.file.path, hit.line, hit.label) not in beaten]


def _counts(hit: Hit, entry: Entry, evidence: Evidence) -> bool:
    """Whether a hit stands in a process that the entry may stand in, and under the flags that it needs."""
    kind = process_kind(hit)
    if entry.where and kind is not None and kind not in entry.where:
        return False
    if not entry.flags and not entry.without:
        return True
    settings = read_settings(evidence)
    if any(switched(settings, flag)[0] for flag in entry.without):
        return False
    return not entry.flags or any(switched(settings, flag)[0] for flag in entry.flags)


def process_kind(hit: Hit) -> Kind | None:
    """Return the kind of process that printed a hit, None where nothing tells: many logs have no prefix."""
    actor = joblog.parse(hit.raw).actor or logplace.file_actor(hit.file)
    if actor is None:
        return None
    side = faults.actor_side(actor)
    if side is not None:
        return Kind.TRAINER if side == "train" else Kind.ENGINE
    return next((kind for kind, names in _KINDS if names.match(actor)), None)


def _ended(scanned: Scanned, hits: Sequence[Hit]) -> Iterator[_Ended]:
    """Yield the hits that ended something, in order."""
    entries = ASKED.entries()
    openings = {(hit.file.path, hit.line): hit for hit in scanned.standing(TRACEBACK.label)}
    own = {(hit.file.path, hit.line) for hit in hits}
    for hit in hits:
        breath = joblog.context(hit)
        if _explained(scanned, hit, breath) is not None:
            continue
        proof = _fatal_place(scanned, hit, breath, openings)
        if proof is not None:
            yield _Ended(entries[hit.label], hit, proof)
        elif entries[hit.label].fatal and not _another_before(scanned, hit, openings, own):
            yield _Ended(entries[hit.label], hit, None)


def _explained(scanned: Scanned, hit: Hit, breath: Sequence[Placed]) -> Hit | None:
    """Return a fault that was printed before a hit; an engine's exception that holds the hit is no other fault."""
    near = {place.number for place in breath}
    for fault in scanned.standing(*(each.label for each in _EXPLAINING)):
        own = fault.label == faults.ENGINE_EXCEPTION.label and fault.file == hit.file and fault.line in near
        if not own and scanned.earlier(fault, hit):
            return fault
    return None


def _fatal_place(
    scanned: Scanned, hit: Hit, breath: Sequence[Placed], openings: dict[tuple[str, int], Hit]
) -> Placed | None:
    """Return the line by which a hit's traceback ended a process, None where it may have been caught.

    A traceback begins where the exception was caught, so one that begins in the driver's script itself was not.
    """
    above = [place for place in breath if place.number <= hit.line]
    engine = {each.line for each in scanned.of(faults.ENGINE_EXCEPTION.label) if each.file == hit.file}
    driver = process_kind(hit) is None
    for place in reversed(above):
        said = joblog.parse(place.raw).message
        if place.number in engine or _CHILD.match(said) or (driver and _INTO_DRIVER.match(said)):
            return place
        opening = openings.get((hit.file.path, place.number))
        if opening is not None and uncaught(opening):
            return place
    return None


def _another_before(
    scanned: Scanned, hit: Hit, openings: dict[tuple[str, int], Hit], own: set[tuple[str, int]]
) -> bool:
    """Whether an exception that is none of these entries' was printed before a hit, or with it in no known order."""
    for opening in openings.values():
        if scanned.earlier(hit, opening):
            continue
        lines = {(opening.file.path, place.number) for place in joblog.context(opening)}
        if not lines & own:
            return True
    return False


def _report(ended: _Ended, alike: Sequence[Hit]) -> Finding:
    entry, hit = ended.entry, ended.hit
    said = sanitise(joblog.parse(hit.text).message, 200)
    told: tuple[Citation, ...] = ()
    if ended.proof is not None and ended.proof.number != hit.line:
        told = (joblog.cite_placed(hit.file, ended.proof),)
    return found(
        Verdict.PROBLEM,
        entry.cause,
        f"{entry.means.en.rstrip('.')} (line {hit.line}): {said}",
        f"{entry.means.zh.rstrip('。')}（第 {hit.line} 行）：{said}",
        citations=(joblog.citation(hit, logs.processes(alike)), *told),
    )


def _open(hit: Hit) -> Finding:
    """Show a known line of which nothing tells whether it ended anything."""
    entry = ASKED.entries()[hit.label]
    return unknown(
        f"{entry.means.en.rstrip('.')} (line {hit.line}), but nothing shows that this ended a process.",
        f"{entry.means.zh.rstrip('。')}（第 {hit.line} 行），但没有迹象表明有进程因此结束。",
        settle_en="Give the log to its end, or the .err file of that process.",
        settle_zh="提供完整到结尾的日志，或该进程的 .err 文件。",
        slots=("log",),
        citations=(joblog.citation(hit),),
    )


def _harmless(scanned: Scanned) -> Table | None:
    """Return the lines that alarm people and are harmless, each once, with how often it stands there and why."""
    rows, zh = [], [("line", "行号"), ("says", "内容"), ("times", "次数"), ("why it is harmless", "为什么无害")]
    for label, entry in ASKED.entries().items():
        hits = scanned.of(label) if entry.role is Role.BENIGN else []
        if hits:
            said = sanitise(joblog.parse(hits[0].text).message, 100)
            rows.append((str(hits[0].line), said, str(scanned.counts[label]), entry.means.en))
            zh.append((entry.means.en, entry.means.zh))
    if not rows:
        return None
    title = Text("Harmless, although it looks alarming", "看着吓人、其实无害")
    return Table(title, ("line", "says", "times", "why it is harmless"), tuple(rows[:_SHOWN]), tuple(zh))

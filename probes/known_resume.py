"""Whether a job that was resumed goes on where it was saved, or counts its rollouts from the beginning again.

slime numbers the first rollout one behind the iteration that Megatron loaded (slime/backends/megatron_utils/actor.py),
unless --start-rollout-id or --finetune say otherwise. Only a job that loads from the folder that it saves to is meant
to go on; one that begins elsewhere may count from 0. Invariant: folders are those of the arguments table, which is what
applied, and the numbers are those that Megatron and the trainer printed.
"""

from __future__ import annotations

import os

from probes import logs
from probes.known import known
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.logscan import Hit
from probes.readers.metrics import METRIC
from probes.settings import Settings, given, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, not_applicable
from runbook.probe import Progress, probe

LOADED = known("resume-loaded")
_OF_A_ROLLOUT = (b"rollout", b"perf")


@probe(
    "resume.start",
    needs="log",
    answers=("not-resumed", "goes-on", "restarted"),
    en="Does a resumed job go on where it was saved?",
    zh="续训是否从保存的位置继续？",
    deadline=logs.DEADLINE,
)
def resume_start(evidence: Evidence, report: Progress) -> Finding:
    """Compare the iteration that was loaded last from the folder of --save with the first rollout behind it."""
    settings = read_settings(evidence)
    if settings.table is None:
        return logs.nothing_said(
            "The log has no arguments table, so what was to be resumed is not known.",
            "日志里没有参数表，不知道要从哪里续训。",
        )
    scanned = logs.collect(evidence, report, (LOADED, METRIC))
    loaded = _resumed(scanned, settings)
    if loaded is None:
        return logs.unread(scanned.coverage) or found(
            Verdict.OK,
            "not-resumed",
            "The job did not load a later iteration from the folder that it saves to.",
            "任务没有从自己的 --save 目录加载后续 iteration。",
        )
    iteration = int(loaded.groups[1] or b"0")
    first = next((hit for hit in scanned.of(METRIC.label) if _begins(scanned, loaded, hit)), None)
    if first is None:
        return not_applicable(
            f"Iteration {iteration} was loaded (line {loaded.line}), and no rollout was trained on yet.",
            f"已加载 iteration {iteration}（第 {loaded.line} 行），还没有训练过 rollout。",
        )
    number = int(first.groups[1] or b"0")
    citations = (joblog.citation(first), joblog.citation(loaded))
    if number > 0 or iteration == 0:
        return found(
            Verdict.OK,
            "goes-on",
            f"Iteration {iteration} was loaded, and the job goes on with rollout {number} (line {first.line}).",
            f"加载了 iteration {iteration}，任务从 rollout {number} 继续（第 {first.line} 行）。",
            citations=citations,
        )
    told = [one.citation for flag in ("start-rollout-id", "finetune") if (one := given(settings, flag)) is not None]
    return found(
        Verdict.PROBLEM,
        "restarted",
        f"Iteration {iteration} was loaded from the folder of --save (line {loaded.line}), but the job counts its "
        f"rollouts from 0 again (line {first.line}).",
        f"从 --save 目录加载了 iteration {iteration}（第 {loaded.line} 行），"
        f"但 rollout 又从 0 开始（第 {first.line} 行）。",
        citations=(*citations, *told),
    )


def _resumed(scanned: Scanned, settings: Settings) -> Hit | None:
    """Return the last load from the folder that is both --load and --save, None where they differ or are not known."""
    load, save = given(settings, "load"), given(settings, "save")
    if load is None or save is None or load.value is None or save.value is None:
        return None
    folder = load.value.rstrip("/")
    if folder != save.value.rstrip("/"):
        return None
    hits = [hit for hit in scanned.of(LOADED.label) if os.fsdecode(hit.groups[0] or b"").rstrip("/") == folder]
    return hits[-1] if hits else None


def _begins(scanned: Scanned, loaded: Hit, hit: Hit) -> bool:
    """Whether a line tells of a rollout behind the load, in the same log."""
    same = hit.file.stream == loaded.file.stream
    return same and hit.groups[0] in _OF_A_ROLLOUT and scanned.earlier(loaded, hit)

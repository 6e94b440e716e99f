"""Whether PYTORCH_CUDA_ALLOC_CONF asks for expandable segments in a process whose memory must be paused.

torch_memory_saver refuses to work in such a process: at its first use it raises "TorchMemorySaver is disabled for the
current process because expandable_segments is not supported yet" (torch_memory_saver/entrypoint.py, _sanity_checks, at
the commits in slime's images v0.2.0 to v0.3.0). slime uses it in the trainers with --offload-train and in the engines
with --offload-rollout; --colocate turns on both, a critic the first. From v0.3.1 on the image holds a fork, and
slime's own alignment test sets the variable for its colocated trainers, so nothing is concluded there. A script for
SFT may set it: nothing is offloaded. Ray hands the runtime env to trainers and engines, --train-env-vars to trainers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from probes.launch_rules import Asked, Untold, jobs_of, release_of
from probes.readers.launch_model import cite_place
from probes.settings import Settings, no_command, scripted
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
REFUSED_UNTIL = (0, 3, 0)
"""The last slime release whose image holds a torch_memory_saver that refuses."""
_ON = re.compile(r"expandable_segments\s*:\s*True")


@dataclass(frozen=True)
class _Place:
    """Where the variable is set. reach: "both", or "trainers" for --train-env-vars. sure: it certainly applies."""

    citation: Citation
    reach: str
    sure: bool


@probe(
    "launch.alloc_conf",
    needs="launch",
    answers=("not-set", "allowed", "forbidden"),
    en="Is expandable_segments set where torch_memory_saver must pause memory?",
    zh="在需要 torch_memory_saver 释放显存的进程里是否设置了 expandable_segments？",
)
def alloc_conf(evidence: Evidence, report: Progress) -> Finding:
    """Look at every job; one where it is forbidden counts."""
    del report
    jobs = [one for one in jobs_of(evidence) if one.job is not None]
    if not jobs:
        return no_command()
    findings = [_of_job(settings, release_of(evidence)) for settings in jobs]
    order = (Verdict.PROBLEM, Verdict.UNKNOWN, Verdict.OK)
    return min(findings, key=lambda one: order.index(one.verdict))


def _places(settings: Settings) -> Iterator[_Place]:
    assert settings.job is not None
    assert settings.launch is not None
    for name in NAMES:
        inside = settings.job.runtime_env.get(name)
        one = inside or settings.job.env.get(name) or settings.launch.exports.get(name)
        if one is not None and _ON.search(one.shown):
            sure = one is inside and one.value is not None and one.sure and not one.default
            yield _Place(cite_place(one.place), "both", sure and name == NAMES[0])
    own = scripted(settings, "train-env-vars")
    if own is not None and _ON.search(own.shown):
        try:
            named = NAMES[0] in json.loads(own.value or "")
        except ValueError:
            named = False
        yield _Place(own.citation, "trainers", own.sure and not own.default and named)


def _of_job(settings: Settings, release: tuple[int, ...] | None) -> Finding:
    places = tuple(_places(settings))
    if not places:
        return found(
            Verdict.OK,
            "not-set",
            "The script does not ask for expandable_segments (image and shell may).",
            "脚本没有设置 expandable_segments（镜像或 shell 可能设置）。",
        )
    citations = tuple(place.citation for place in places)
    try:
        paused = _paused(settings)
    except Untold as missing:
        return _open(
            f"expandable_segments is set; whether memory is paused depends on {missing.flag}",
            f"设置了 expandable_segments；是否会释放显存取决于 {missing.flag}",
            citations,
        )
    hit = [place for place in places if paused["trainers"] or (place.reach == "both" and paused["engines"])]
    if not hit:
        return found(
            Verdict.OK,
            "allowed",
            "expandable_segments is set, and no process that gets it pauses its memory: it is allowed there.",
            "设置了 expandable_segments，而得到它的进程都不释放显存：可以这样用。",
            citations=citations,
        )
    shown = tuple(place.citation for place in hit)
    if release is None or release > REFUSED_UNTIL or not any(place.sure for place in hit):
        return _open(
            "expandable_segments is set in processes that pause their memory: slime up to v0.3.0 stops there, and "
            "neither the version nor the reach of the variable is certain",
            "在需要释放显存的进程里设置了 expandable_segments：slime v0.3.0 及以前会退出，而版本或变量的作用范围不确定",
            shown,
        )
    return found(
        Verdict.PROBLEM,
        "forbidden",
        "expandable_segments is set in processes that must pause their memory: torch_memory_saver raises RuntimeError "
        "there.",
        "在需要释放显存的进程里设置了 expandable_segments：torch_memory_saver 会抛出 RuntimeError。",
        citations=shown,
    )


def _paused(settings: Settings) -> dict[str, bool]:
    """Return whether trainers and engines release their memory, as slime's arguments decide it. Raises Untold."""
    asked = Asked(settings)
    if asked.on("debug-rollout-only"):
        return {"trainers": False, "engines": False}
    shared = asked.on("colocate")
    both = asked.on("offload")
    no_train, no_rollout = asked.on("no-offload-train"), asked.on("no-offload-rollout")
    trainers = both or asked.on("offload-train") or (shared and not no_train)
    engines = both or asked.on("offload-rollout") or (shared and not no_rollout)
    alone = asked.on("debug-train-only") or asked.given("load-debug-rollout-data")
    return {"trainers": trainers, "engines": engines and not alone}


def _open(en: str, zh: str, citations: tuple[Citation, ...]) -> Finding:
    return unknown(
        f"{en}.",
        f"{zh}。",
        settle_en="attach the versions (pip freeze), or look for `TorchMemorySaver is disabled` in the workers' logs",
        settle_zh="附上版本（pip freeze），或在 worker 日志里查找 `TorchMemorySaver is disabled`",
        slots=("versions", "log"),
        citations=citations,
    )

"""What SGLang engines and their router report: a failed weight update, a crash, no workers, no answer.

Only the first event counts, and only if no CUDA or memory fault stands before it or in its own traceback: those have
probes of their own, and an engine that dies of them is their consequence. One failed request proves nothing, since
slime tries sixty times: a status counts once half the tries are used up or the exception has left the loop
(slime/utils/http_utils.py). An engine that slime restarted, so that the job went on, did not end it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from probes import faults, logs
from probes.known import known
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.logscan import Hit
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_UPDATE = known("update-failed")
_STATUS = known("status")
_RAISED = known("raised")
_GAVE_UP = known("unreachable")
_SILENT = known("unresponsive")
_DEEPEP = known("deepep-on")
_DEEPEP_ERROR = re.compile(r"deep_?ep|nvshmem", re.IGNORECASE)
_FAULTS = (*faults.CUDA[:3], *faults.OOM)
_LASTING = frozenset({_UPDATE.label})
"""An engine that took half of an update keeps the mixed weights, however long the job goes on."""

_EN = {
    "update-failed": "SGLang failed to take a weight update",
    "crashed": "An SGLang process ended with an exception",
    "deepep-crash": "An SGLang process with DeepEP crashed",
    "fp8-scale": "DeepGEMM refuses the FP8 scales: they are not powers of two",
    "no-workers": "The router has no worker for the requests (503)",
    "forbidden": "Requests to the engine are refused on the way (403 or 407), as a proxy does",
    "unreachable": "An engine cannot be reached or did not start",
    "unresponsive": "An engine stopped answering",
}
_ZH = {
    "update-failed": "SGLang 更新权重失败",
    "crashed": "SGLang 进程因异常退出",
    "deepep-crash": "启用 DeepEP 的 SGLang 进程崩溃",
    "fp8-scale": "DeepGEMM 拒绝 FP8 scale：不是 2 的幂",
    "no-workers": "router 没有可用 worker（503）",
    "forbidden": "请求在到达引擎前被拒绝（403 或 407），像是代理所为",
    "unreachable": "推理引擎无法访问或未能启动",
    "unresponsive": "推理引擎停止响应",
}


@probe(
    "engine.in_log",
    needs="log",
    answers=("none", *_EN),
    en="Do the SGLang engines and the router report a fault?",
    zh="SGLang 引擎与 router 是否报告故障？",
    deadline=logs.DEADLINE,
)
def engine_in_log(evidence: Evidence, report: Progress) -> Finding:
    """Report the first event of an engine or the router that no CUDA or memory fault explains."""
    own = (_UPDATE, _STATUS, _RAISED, _GAVE_UP, _SILENT, _DEEPEP, faults.FP8_SCALE, faults.ENGINE_EXCEPTION)
    scanned = logs.collect(evidence, report, (*own, *_FAULTS))
    order = {file: index for index, file in enumerate(scanned.coverage.files)}
    events = sorted(
        _events(scanned, partial(scanned.standing, lasting=_LASTING)),
        key=lambda event: (order.get(event[1].file, 0), event[1].line),
    )
    first = next((event for event in events if not _explained(scanned, *event)), None)
    if first is None:
        past = dict.fromkeys(hit.label for _, hit in _events(scanned, scanned.of))
        return (
            logs.unread(scanned.coverage)
            or scanned.history("none", *past, lasting=_LASTING)
            or found(
                Verdict.OK,
                "none",
                "Neither the engines nor the router report a fault of their own.",
                "推理引擎与 router 均未报告自身故障。",
            )
        )
    answer, hit = first
    alike = [each for kind, each in events if kind == answer]
    said = joblog.parse(hit.text).message[:160]
    return found(
        Verdict.WARNING if answer in ("unresponsive", "deepep-crash") else Verdict.PROBLEM,
        answer,
        f"{_EN[answer]} (line {hit.line}): {said}",
        f"{_ZH[answer]}（第 {hit.line} 行）：{said}",
        citations=(joblog.citation(hit, logs.processes(alike)),),
    )


def _events(scanned: Scanned, of: Callable[..., list[Hit]]) -> Iterator[tuple[str, Hit]]:
    """Yield every event of the hits that `of` returns by label, with its answer, in no order."""
    for label in (_UPDATE.label, _GAVE_UP.label, _SILENT.label, faults.FP8_SCALE.label):
        yield from ((label, hit) for hit in of(label))
    for hit in of(_STATUS.label, _RAISED.label):
        code, attempt, tries = (*(int(group or 0) for group in hit.groups), 1, 1)[:3]
        answer = {503: "no-workers", 403: "forbidden", 407: "forbidden"}.get(code)
        if answer and attempt * 2 >= tries:
            yield answer, hit
    deepep = scanned.of(_DEEPEP.label)
    for hit in of(faults.ENGINE_EXCEPTION.label):
        end = faults.exception(joblog.context(hit), hit.line)
        used = any(scanned.earlier(each, hit) for each in deepep)
        about = end is None or _DEEPEP_ERROR.search(end.raw.decode("utf-8", "replace"))
        yield ("deepep-crash" if used and about else "crashed"), hit


def _explained(scanned: Scanned, answer: str, hit: Hit) -> bool:
    """Whether a CUDA or memory fault stands before an event, or in the traceback it belongs to."""
    if answer == faults.FP8_SCALE.label:
        return False
    known = scanned.standing(*(each.label for each in _FAULTS))
    if any(scanned.earlier(each, hit) for each in known):
        return True
    near = {each.line for each in known if each.file == hit.file}
    return bool(near) and any(place.number in near for place in joblog.context(hit))

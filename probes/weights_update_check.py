"""What --check-weight-update-equal reported: SGLang's own comparison of its tensors before and after the first update.

Equal proves little (draft weights, plain attributes and skipped buffers are not seen); a difference proves that the
update did not bring the checkpoint's values back. Buffers that are computed from the config are no such proof: in
SGLang 0.5.6 to 0.5.9 the check itself overwrites them with random numbers.
"""

from __future__ import annotations

import math
import re

from probes import logs
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers import weight_checker_log as wlog
from probes.readers.logscan import Hit, signature
from probes.readers.weight_checker_log import Row, rows
from probes.weights_places import spans
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

SHOWN = 40
"""Rows of the table."""
_DERIVED = re.compile(r"cos_sin_cache|inv_freq|freqs_cis|_weight_fp32")
"""Buffers that later versions skip (sglang/srt/utils/weight_checker.py, _NON_PERSISTENT_BUFFER_PATTERNS)."""
_LAYER = re.compile(r"layers\.(\d{1,6})\.")
_FLAG = signature("flag", "check_weight_update_equal", r"check_weight_update_equal[ .]{2,80}(?:\.|\s)(True|False)\s*$")
_PARTS = (
    ("qkv_proj", "q, k, v"),
    ("gate_up_proj", "gate, up"),
    ("w13_weight", "experts' gate, up"),
    ("w2_weight", "experts' down"),
)


@probe(
    "weights.update_check",
    needs="log",
    answers=("equal", "differs", "failed", "not-run"),
    en="What did --check-weight-update-equal report?",
    zh="--check-weight-update-equal 的结果是什么？",
    deadline=logs.DEADLINE,
)
def update_check(evidence: Evidence, report: Progress) -> Finding:
    """Report the first failed comparison, else that it passed, could not run, or was not asked for."""
    scanned = logs.collect(evidence, report, (*wlog.SIGNATURES, _FLAG))
    return _differs(scanned) or _failed(scanned) or _equal(scanned) or _not_run(scanned)


def _differs(scanned: Scanned) -> Finding | None:
    hits = [hit for hit in scanned.of(wlog.ERROR.label) if b"check tensor equality failed" in hit.text]
    hits = hits or scanned.of(wlog.NOTE.label)
    if not hits:
        return None
    seen: dict[str, tuple[Row, Hit]] = {}
    for hit in (*scanned.of(wlog.ROW.label), *scanned.of(wlog.NOTE.label)):
        for row in rows(hit.raw):
            seen.setdefault(row.name, (row, hit))
    real = {name: pair for name, pair in seen.items() if not _DERIVED.search(name)}
    first = joblog.citation(hits[0], logs.processes(hits))
    if seen and not real:
        return found(
            Verdict.WARNING,
            "equal",
            f"Only computed buffers differ ({', '.join(list(seen)[:3])}), which the check itself overwrites in SGLang "
            "0.5.6-0.5.9.",
            f"只有由配置算出的 buffer 不同（{'、'.join(list(seen)[:3])}），SGLang 0.5.6-0.5.9 的检查本身会改写它们。",
            citations=(first,),
        )
    where = spans([int(layer[1]) for name in real if (layer := _LAYER.search(name))])
    en = f"{len(real)} tensors are not what they were before the update" if real else "Tensors differ after the update"
    zh = f"更新后有 {len(real)} 个张量与更新前不同" if real else "更新后有张量不同"
    if where:
        en, zh = f"{en} (layers {where})", f"{zh}（layer {where}）"
    shown = ", ".join(list(real)[:3])
    worst = max((row.most for row, _ in real.values() if math.isfinite(row.most)), default=None)
    cited = {hit.line: hit for _, hit in real.values()}
    return found(
        Verdict.PROBLEM,
        "differs",
        f"{en}{': ' if shown else ''}{shown}.",
        f"{zh}{'：' if shown else ''}{shown}。",
        citations=(first, *(joblog.citation(hit) for hit in list(cited.values())[:3] if hit.line != hits[0].line)),
        measurements=() if worst is None else (Measurement("largest max_abs_err", worst, ""),),
        tables=(_table([row for row, _ in real.values()]),) if real else (),
    )


def _table(found_rows: list[Row]) -> Table:
    def parts(name: str) -> str:
        return next((words for key, words in _PARTS if key in name), "")

    return Table(
        Text("Tensors of the engine that differ", "engine 中不同的张量"),
        ("tensor", "holds", "max_abs_err", "mean_abs_err"),
        tuple(
            (sanitise(row.name, 160), parts(row.name), f"{row.most:.4g}", f"{row.mean:.4g}")
            for row in found_rows[:SHOWN]
        ),
    )


def _failed(scanned: Scanned) -> Finding | None:
    """Return that the check could not run: no such route, or an error of its own."""
    errors = scanned.of(wlog.ERROR.label)
    refused = [hit for hit in scanned.of(wlog.DRIVER.label, wlog.ACCESS.label) if int(hit.groups[0] or 0) >= 400]
    hits = errors or refused
    if not hits:
        return None
    first = hits[0]
    code = int(first.groups[0] or 0) if first.label != wlog.ERROR.label else 0
    if code == 404:
        en = "the engine has no such route (404): SGLang before 0.5.6, or slime v0.2.0 and v0.2.1 asking another path"
        zh = "engine 没有该路由（404）：SGLang 低于 0.5.6，或 slime v0.2.0、v0.2.1 请求了别的路径"
    elif code:
        en, zh = f"the engine answered {code}", f"engine 返回 {code}"
    else:
        en = zh = joblog.parse(first.text).message[:200].removeprefix("check_weights see error: ")
    return found(
        Verdict.WARNING,
        "failed",
        f"The check could not run: {en}.",
        f"检查没能运行：{zh}。",
        citations=(joblog.citation(first, logs.processes(hits)),),
    )


def _equal(scanned: Scanned) -> Finding | None:
    hits = [hit for hit in scanned.of(wlog.EQUAL.label) if hit.groups[0] not in (b"]", b"", None)]
    if not hits:
        return None
    return found(
        Verdict.OK,
        "equal",
        "Every tensor that the check compares is the same after the update as before it.",
        "检查所比较的每个张量在更新前后都相同。",
        citations=(joblog.citation(hits[0], logs.processes(hits)),),
    )


def _not_run(scanned: Scanned) -> Finding:
    asked = [hit for hit in scanned.of(wlog.ACTION.label) if hit.groups[0] in (b"compare", b"snapshot")]
    flags = [hit for hit in scanned.of(_FLAG.label) if hit.groups[0] == b"True"]
    if asked or flags:
        return logs.nothing_said(
            "--check-weight-update-equal was asked for, but the log holds no result of it.",
            "已要求 --check-weight-update-equal，但日志中没有其结果。",
        )
    return logs.unread(scanned.coverage) or found(
        Verdict.OK,
        "not-run",
        "The log has no line of the weight checker: --check-weight-update-equal was not run.",
        "日志中没有 weight checker 的输出：没有运行 --check-weight-update-equal。",
    )

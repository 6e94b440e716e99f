"""Whether the debug flags fit together and every dump gets a file of its own.

Rules from slime/utils/arguments.py and slime/ray/rollout.py: the dump path goes through `.format(rollout_id=...)`,
so a path without `{rollout_id}` is overwritten by every rollout; rollout and train dumps may not share a path
(ValueError); `--debug-rollout-only` excludes `--debug-train-only`, which `--load-debug-rollout-data` implies
(AssertionError); `--dump-details` replaces both paths; SFT takes no engine, so without `--debug-train-only` slime
starts engines and sends them weights. Up to v0.3.1 every rank wrote the train dump itself.
"""

from __future__ import annotations

import re
import string

from probes.readers.launch_model import Job, Launch
from probes.readers.versions import read_versions
from probes.settings import Given, complete, of_job, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

_DEBUG = (
    "debug-rollout-only",
    "debug-train-only",
    "save-debug-rollout-data",
    "load-debug-rollout-data",
    "save-debug-train-data",
    "dump-details",
)
_PER_RANK = re.compile(r"v?0\.(?:1|2|3\.[01])(?:\D|$)")
"""slime versions in which each rank wrote its own train dump, so that the path needs {rank} (later
slime/observability/train_data_utils.py writes one file)."""


@probe(
    "launch.dump_flags",
    needs="launch|log",
    answers=("fine", "no-template", "same-path", "conflict", "sft-without-debug-train-only", "none"),
    en="Do the debug flags fit together, and does every dump get a file of its own?",
    zh="调试参数彼此相容吗？每次 dump 都写到各自的文件吗？",
)
def dump_flags(evidence: Evidence, report: Progress) -> Finding:
    """Check the debug flags of every training job."""
    del report
    settings = read_settings(evidence)
    if not settings.jobs:
        return _partial()
    slime = read_versions(evidence.paths("versions")).get("slime")
    findings = [_check(launch, job, slime.text if slime else "") for launch, job in settings.jobs]
    order = (Verdict.PROBLEM, Verdict.OK, Verdict.UNKNOWN)
    return min(findings, key=lambda one: order.index(one.verdict))


def _partial() -> Finding:
    return unknown(
        "The training command is not wholly known, so its debug flags are not either.",
        "训练命令不完全可知，因此也不知道它的调试参数。",
        settle_en="attach the whole launch script",
        settle_zh="附上完整的启动脚本",
        slots=("launch",),
    )


def _check(launch: Launch, job: Job, slime: str) -> Finding:
    flags = {name: one for name in _DEBUG if (one := of_job(job, name)) is not None and one.sure}
    for check in (_conflict, _sft, _same_path, _templates):
        finding = check(launch, job, flags)
        if finding is not None:
            return finding
    train = flags.get("save-debug-train-data")
    if train is not None and "dump-details" not in flags and "{rank" not in train.shown and _PER_RANK.match(slime):
        return found(
            Verdict.PROBLEM,
            "no-template",
            f"slime {slime} lets every rank write its own train dump, and {train.shown} has no {{rank}}: "
            "the ranks overwrite each other.",
            f"slime {slime} 中每个 rank 各写一份 train dump，而 {train.shown} 没有 {{rank}}：各 rank 互相覆盖。",
            citations=(train.citation,),
        )
    perhaps = next((one for name in _DEBUG if (one := of_job(job, name)) is not None), None)
    if not flags and perhaps is not None:
        return unknown(
            "A condition of the script decides whether the run had debug flags.",
            "是否带有调试参数取决于脚本中的条件。",
            settle_en="attach the log with the arguments table, or say which branch ran",
            settle_zh="附上含参数表的日志，或说明实际执行了哪个分支",
            slots=("launch", "log"),
            citations=(perhaps.citation,),
        )
    if not flags and not complete(launch, job):
        return _partial()
    if not flags:
        return found(Verdict.OK, "none", "The command has no debug flag.", "命令里没有调试参数。")
    return found(
        Verdict.OK,
        "fine",
        f"The debug flags fit together: {', '.join('--' + name for name in flags)}.",
        f"调试参数彼此相容：{'、'.join('--' + name for name in flags)}。",
        citations=tuple(one.citation for one in flags.values()),
    )


def _conflict(launch: Launch, job: Job, flags: dict[str, Given]) -> Finding | None:
    del launch, job
    rollout_only = flags.get("debug-rollout-only")
    for name in ("debug-train-only", "load-debug-rollout-data"):
        other = flags.get(name)
        if rollout_only is not None and other is not None:
            implied = "" if name == "debug-train-only" else ", which implies --debug-train-only"
            implied_zh = "" if name == "debug-train-only" else "（它隐含 --debug-train-only）"
            return found(
                Verdict.PROBLEM,
                "conflict",
                f"--debug-rollout-only excludes --{name}{implied}: slime stops with an AssertionError.",
                f"--debug-rollout-only 与 --{name}{implied_zh}互斥：slime 会以 AssertionError 退出。",
                citations=(rollout_only.citation, other.citation),
            )
    return None


def _sft(launch: Launch, job: Job, flags: dict[str, Given]) -> Finding | None:
    rollout = of_job(job, "rollout-function-path")
    if rollout is None or not rollout.sure or not re.search(r"(?:^|\.)sft_rollout\.\w+$", rollout.value or ""):
        return None
    engines = of_job(job, "rollout-num-gpus")
    if {"debug-train-only", "load-debug-rollout-data"} & flags.keys() or (engines is not None and engines.value == "0"):
        return None
    if not complete(launch, job) or any(
        of_job(job, name) is not None for name in ("debug-train-only", "load-debug-rollout-data")
    ):
        return _partial()
    return found(
        Verdict.PROBLEM,
        "sft-without-debug-train-only",
        "An SFT job (its rollout function only reads data) lacks --debug-train-only: slime starts engines that it does "
        "not need and tries to update their weights.",
        "SFT 任务（rollout 函数只读数据）缺少 --debug-train-only：slime 会启动并不需要的引擎并尝试更新其权重。",
        citations=(rollout.citation,),
    )


def _same_path(launch: Launch, job: Job, flags: dict[str, Given]) -> Finding | None:
    del launch, job
    rollout, train = flags.get("save-debug-rollout-data"), flags.get("save-debug-train-data")
    if "dump-details" in flags or rollout is None or train is None or not rollout.shown or rollout.shown != train.shown:
        return None
    return found(
        Verdict.PROBLEM,
        "same-path",
        f"Rollout and train dumps are both written to {rollout.shown}: slime refuses it, older versions let one "
        "overwrite the other.",
        f"rollout dump 和 train dump 都写到 {rollout.shown}：slime 会拒绝，旧版本则互相覆盖。",
        citations=(rollout.citation, train.citation),
    )


def _templates(launch: Launch, job: Job, flags: dict[str, Given]) -> Finding | None:
    del launch
    if "dump-details" in flags:
        return None
    once = of_job(job, "num-rollout")
    for name, allowed in (
        ("save-debug-rollout-data", {"rollout_id"}),
        ("save-debug-train-data", {"rollout_id", "rank"}),
    ):
        one = flags.get(name)
        if one is None or (one.value is None and "{rollout_id}" in one.shown):
            continue
        if one.value is None:
            return _partial()
        try:
            fields = {part[1] for part in string.Formatter().parse(one.value) if part[1] is not None}
        except ValueError:
            fields = {one.value}
        strange = {re.split(r"[.\[]", field)[0] for field in fields} - allowed
        if strange:
            return found(
                Verdict.PROBLEM,
                "no-template",
                f"--{name} {one.value} names {{{min(strange)}}}, which slime does not fill in: saving fails.",
                f"--{name} {one.value} 用到 {{{min(strange)}}}，slime 不会填它：保存会失败。",
                citations=(one.citation,),
            )
        if "rollout_id" not in fields and not (once is not None and once.value == "1"):
            return found(
                Verdict.PROBLEM,
                "no-template",
                f"--{name} {one.value} has no {{rollout_id}}: every rollout overwrites the dump of the last.",
                f"--{name} {one.value} 没有 {{rollout_id}}：每次 rollout 都会覆盖上一次的 dump。",
                citations=(one.citation,),
            )
    return None

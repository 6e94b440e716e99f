"""What the ends of the logs show at once, before anything is checked: faults that no later line takes back.

A first look for who waits: a log of gigabytes is not read, only its end, so nothing here is known to be the first, or
to be all. It decides nothing, and no flow asks it.
"""

from __future__ import annotations

from probes import faults, logs
from probes.faults import ASSERT, CUDA_OOM, ENGINE_EXCEPTION, ENGINE_OOM, FP8_SCALE, HOST_OOM, IMA, LAUNCH, SAVER
from probes.job_last_words import FAILED, SIGNAL, TRACEBACK
from probes.readers import attempts, joblog, logfiles
from probes.readers.logscan import Coverage, Hit
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text

_SHOWN = 6
"""Lines that are shown, of each kind the last one."""
_SIGNATURES = (*faults.CUDA, *faults.OOM, ENGINE_EXCEPTION, SIGNAL, FAILED, TRACEBACK)
WORDS = {
    IMA.label: Text("an illegal memory access", "非法显存访问"),
    ASSERT.label: Text("a device-side assert", "device-side assert 触发"),
    LAUNCH.label: Text("a failed CUDA kernel", "CUDA kernel 失败"),
    FP8_SCALE.label: Text("an FP8 scale that is no power of two", "FP8 scale 不是 2 的幂"),
    CUDA_OOM.label: Text("GPU memory that ran out", "显存不足"),
    SAVER.label: Text("an error of torch_memory_saver", "torch_memory_saver 报错"),
    ENGINE_OOM.label: Text("an engine without enough GPU memory", "推理引擎显存不足"),
    HOST_OOM.label: Text("host memory that ran out", "主机内存不足"),
    ENGINE_EXCEPTION.label: Text("an exception in an engine", "推理引擎异常"),
    SIGNAL.label: Text("a process killed by a signal", "进程被信号终止"),
    FAILED.label: Text("a job that Ray calls failed", "Ray 报告任务失败"),
    TRACEBACK.label: Text("a traceback", "traceback"),
}
"""What people read for a kind of fault."""


@probe(
    "log.early",
    needs="log",
    answers=("quiet", "faults"),
    en="What do the ends of the logs show at once?",
    zh="日志末尾一眼能看到什么？",
    deadline=5.0,
    early=True,
)
def log_early(evidence: Evidence, report: Progress) -> Finding:  # noqa: ARG001
    """Show the last line of each kind of fault at the ends of the logs."""
    wanted = {each.label for each in _SIGNATURES}
    hits = logs.early(evidence, (*_SIGNATURES, *attempts.SIGNATURES))
    standing = logs.standing((hit for hit in hits if hit.label in wanted), attempts.read(hits))
    last: dict[str, Hit] = {hit.label: hit for hit in standing}
    if not last:
        files, problems = logfiles.expand(evidence.paths("log"))
        return logs.unread(Coverage(list(files), list(problems))) or found(
            Verdict.OK, "quiet", "The ends of the logs show no fault.", "日志末尾没有故障。"
        )
    shown = [hit for hit in standing if last[hit.label] is hit][-_SHOWN:]
    kinds = [WORDS[hit.label] for hit in shown]
    return found(
        Verdict.WARNING,
        "faults",
        f"The ends of the logs show {', '.join(kind.en for kind in kinds)}. The whole logs are read next.",
        f"日志末尾可见：{'、'.join(kind.zh for kind in kinds)}。接下来读取完整日志。",
        citations=tuple(joblog.citation(hit) for hit in shown),
    )

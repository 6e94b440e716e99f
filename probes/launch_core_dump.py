"""Whether a fault would leave a CUDA core dump, by the launch script (guide, illegal memory access, 4).

The variables have to reach every process that uses a GPU: through the runtime env, or by an export before
`ray start`. Sources: CUDA's documentation of GPU core dumps (file pattern, generation flags), slime's own helper
(utils/external_utils/command_utils.py: cuda_core_dump). skip_abort lets a process run on with a broken GPU context;
a file name without %p is written by all ranks of a machine.
"""

from __future__ import annotations

from probes.readers.environment import Reach, exported, passed, reach
from probes.readers.launch_model import Job, Launch, cite_place
from probes.settings import no_command, read_settings
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

NAME = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"
LIGHT = "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP"
FILE = "CUDA_COREDUMP_FILE"
FLAGS = "CUDA_COREDUMP_GENERATION_FLAGS"
_LOCAL = ("/tmp/", "/dev/shm/", "/var/tmp/")  # noqa: S108 - looked for, not written to


@probe(
    "launch.core_dump",
    needs="launch",
    answers=("written", "flawed", "not-passed", "off"),
    en="Would a fault leave a CUDA core dump?",
    zh="出错时会写 CUDA core dump 吗？",
)
def core_dump(evidence: Evidence, report: Progress) -> Finding:
    """Look for the variables in the runtime env and in exports."""
    del report
    settings = read_settings(evidence)
    launch, job = settings.launch, settings.job
    if launch is None or job is None:
        return no_command()
    state, lines = max((reach(launch, job, name, "1") for name in (NAME, LIGHT)), key=lambda pair: pair[0].value)
    if state in (Reach.NOWHERE, Reach.OTHER_VALUE):
        return found(Verdict.OK, "off", f"{NAME} is not set to 1.", f"没有把 {NAME} 设为 1。", citations=lines)
    if state is Reach.EXPORTED:
        return found(
            Verdict.WARNING,
            "not-passed",
            f"{NAME}=1 is exported but neither before `ray start` nor in the runtime env, so no worker writes a dump.",
            f"{NAME}=1 只是 export 了，既不在 `ray start` 之前也不在 runtime env 里，worker 不会写 dump。",
            citations=lines,
        )
    if not _sure(launch, job):
        return unknown(
            f"A condition or the caller's environment decides whether {NAME} is 1.",
            f"{NAME} 是否为 1 取决于脚本中的条件或调用者的环境变量。",
            settle_en=f"set {NAME} to 1 in the runtime env",
            settle_zh=f"在 runtime env 里直接把 {NAME} 设为 1",
            slots=("launch",),
            citations=lines,
        )
    flaws = list(_flaws(launch, job))
    if flaws:
        en = "; ".join(one for one, _, _ in flaws)
        zh = "；".join(one for _, one, _ in flaws)
        return found(
            Verdict.WARNING,
            "flawed",
            f"A fault leaves a core dump, but {en}.",
            f"出错时会写 core dump，但{zh}。",
            citations=(*lines, *(cited for _, _, cited in flaws if cited is not None)),
        )
    return found(
        Verdict.OK, "written", "A fault leaves a CUDA core dump.", "出错时会写 CUDA core dump。", citations=lines
    )


def _sure(launch: Launch, job: Job) -> bool:
    settings = (passed(job, name) or exported(launch, job, name) for name in (NAME, LIGHT))
    return any(one is not None and one.value == "1" and one.sure and not one.default for one in settings)


def _flaws(launch: Launch, job: Job) -> list[tuple[str, str, Citation | None]]:
    """Return what would spoil the dumps, in English and Chinese, with the line that says so."""
    found_here: list[tuple[str, str, Citation | None]] = []
    file = passed(job, FILE) or exported(launch, job, FILE)
    if file is not None and file.value:
        cited = cite_place(file.place)
        if "%p" not in file.value:
            said = (
                f"{FILE} lacks %p, so the ranks of a machine overwrite each other",
                f"{FILE} 没有 %p，同机各 rank 互相覆盖",
            )
            found_here.append((*said, cited))
        if file.value.startswith(_LOCAL):
            said = (f"{FILE} lies on each machine's own disk", f"{FILE} 在各机器的本地盘上")
            found_here.append((*said, cited))
    flags = passed(job, FLAGS) or exported(launch, job, FLAGS)
    if flags is not None and "skip_abort" in (flags.value or ""):
        said = (
            "skip_abort lets the process run on with a broken GPU context",
            "skip_abort 让进程带着损坏的 GPU 上下文继续运行",
        )
        found_here.append((*said, cite_place(flags.place)))
    return found_here

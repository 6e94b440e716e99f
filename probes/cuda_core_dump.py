"""What CUDA core dumps say (debug guide, IMA 4): the exception and the kernel, read without a GPU or cuda-gdb.

A dump is written by the GPU's own debugger at the moment of the fault, so it is proof where a Python traceback is a
lead. It says nothing about why the address was bad. Where cuda-gdb is installed it is asked as well, about the
earliest fault (it knows the source line) and about dumps that were not understood here, a few and within a bound.
"""

from __future__ import annotations

import os

from probes import core_dump_age, core_dumps, cuda_gdb
from probes.core_dump_age import Aged
from probes.core_dumps import Case, Dumps
from probes.cuda_gdb import Answer
from probes.readers.cuda_coredump import demangled
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe

DEADLINE = 240.0
GDB_SECONDS = 60.0
"""Seconds for all that cuda-gdb is asked."""
GDB_DUMPS = 3
"""Dumps that it is asked about."""


@probe(
    "cuda.core_dump",
    needs="cuda_coredump",
    answers=("ima", "device-assert", "launch-failure"),
    en="Which GPU exception do the CUDA core dumps hold?",
    zh="CUDA core dump 里是哪种 GPU 异常？",
    deadline=DEADLINE,
)
def core_dump(evidence: Evidence, report: Progress) -> Finding:
    """Read every dump; the earliest fault answers, and dumps that tell another one are counted beside it."""
    aged = core_dump_age.by_age(core_dumps.read_all(evidence, report), evidence, report)
    dumps = aged.dumps
    asked = _asked(evidence, dumps)
    if not dumps.cases:
        return _by_gdb(asked) or (_of_another_run(aged) if aged.older else _nothing(dumps, asked))
    told = core_dumps.groups(dumps)
    first = dumps.cases[0]
    en, zh = core_dumps.sentence(first)
    count = next(number for case, number in told if case is first)
    if len(dumps.cases) > 1:
        en += f"; so in {count} of {len(dumps.cases)} dumps"
        zh += f"；{len(dumps.cases)} 个 dump 中有 {count} 个如此"
    whose = core_dumps.owner(first.kernel)
    if whose:
        en, zh = f"{en}; by its name a kernel of {whose}", f"{zh}；从名字看属于 {whose}"
    more_en, more_zh = _agrees(first, asked)
    en, zh = en + more_en, zh + more_zh
    if dumps.left or dumps.faults:
        missed = dumps.left + len(dumps.faults)
        en, zh = f"{en} ({missed} of the dumps could not be read)", f"{zh}（另有 {missed} 个 dump 未能读取）"
    if aged.doubted:
        en, zh = en + core_dump_age.DOUBTED[0], zh + core_dump_age.DOUBTED[1]
    return found(
        Verdict.WARNING if aged.doubted else Verdict.PROBLEM,
        core_dumps.kind(first.fault),
        f"{en}.",
        f"{zh}。",
        citations=tuple(core_dumps.citation(case, number) for case, number in told[:5]),
        tables=(core_dumps.table(dumps),),
    )


def _of_another_run(aged: Aged) -> Finding:
    """Say that every fault is of a dump from before this run."""
    first = aged.older[0]
    en, zh = core_dumps.sentence(first)
    return unknown(
        f"{core_dump_age.OLDER[0]}: {en}.",
        f"{core_dump_age.OLDER[1]}：{zh}。",
        settle_en="Give the dumps of this run alone, or the log of the run that wrote them.",
        settle_zh="只提供本次运行的 dump，或提供写出这些 dump 的那次运行的日志。",
        slots=("cuda_coredump",),
        citations=(core_dumps.citation(first),),
    )


def _asked(evidence: Evidence, dumps: Dumps) -> dict[str, Answer]:
    """Return what cuda-gdb says, by dump: of the earliest fault, and of dumps of which nothing is known here."""
    wanted = [dumps.cases[0].dump.path] if dumps.cases else []
    wanted += [each.path for each in dumps.faults if each.kind in ("cut", "other")]
    wanted += [each.path for each in dumps.plain]
    run = [folder for slot in ("cuda_coredump", "log", "launch") for folder in _folders(evidence.paths(slot))]
    return dict(cuda_gdb.answers(run, wanted[:GDB_DUMPS], GDB_SECONDS))


def _folders(paths: tuple[str, ...]) -> list[str]:
    return [path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path)) for path in paths]


def _agrees(first: Case, asked: dict[str, Answer]) -> tuple[str, str]:
    """Return what cuda-gdb adds to the earliest fault: the source line, or that it reads another exception."""
    told = asked[first.dump.path].told if first.dump.path in asked else None
    if told is None:
        return "", ""
    if told.exception and told.exception != first.fault.name:
        return f"; cuda-gdb reads {told.exception} instead", f"；cuda-gdb 给出的却是 {told.exception}"
    source = f" at {told.source}" if told.source else ""
    return f"; cuda-gdb says the same{source}", f"；cuda-gdb 的结果一致{source}"


def _by_gdb(asked: dict[str, Answer]) -> Finding | None:
    """Return what cuda-gdb alone reads, None when it names no exception."""
    for path, answer in asked.items():
        told = answer.told
        if told is None or told.code is None:
            continue
        where = f" in {told.kernel[:200]}" if told.kernel else ""
        source = f" at {told.source}" if told.source else ""
        return found(
            Verdict.PROBLEM,
            core_dumps.kind_of(told.code),
            f"{told.exception}{where}{source}, as cuda-gdb reads the dump.",
            f"cuda-gdb 读出 dump 中的 {told.exception}{where}{source}。",
            citations=(cite(path, f"{told.exception}{where}"),),
        )
    return None


def _nothing(dumps: Dumps, asked: dict[str, Answer]) -> Finding:
    settle_en = (
        "Write dumps with CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 and CUDA_COREDUMP_FILE=/shared/cuda_coredump_%h.%p.%t in "
        "the runtime env; with the skip_… flags of this flow's core-dump node one is a few MB, without them as large "
        "as the GPU memory in use."
    )
    settle_zh = (
        "在 runtime env 中设置 CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 与 "
        "CUDA_COREDUMP_FILE=/shared/cuda_coredump_%h.%p.%t；"
        "加上本流程 core-dump 节点中的 skip_… 选项时每个只有几 MB，否则与已用显存一样大。"
    )
    if dumps.faults:
        first = dumps.faults[0]
        more = f" (and {len(dumps.faults) - 1} more)" if len(dumps.faults) > 1 else ""
        en, zh = f"{first}{more}.", f"{first.path}{more}：{first.detail}。"
    elif dumps.plain:
        kernels = {name for one in dumps.plain for kernel in one.kernels if (name := kernel.name)}
        running = f"; kernels on the GPU: {', '.join(map(demangled, sorted(kernels)[:3]))}" if kernels else ""
        en = f"The dump holds no exception (a trap, or a dump that was asked for){running}."
        zh = f"dump 中没有异常（trap，或手动触发的 dump）{running}。"
    elif dumps.hosts:
        count, name = len(dumps.hosts), os.path.basename(dumps.hosts[0])
        es = f"{count} core dumps of CPU processes ({name} …)" if count > 1 else f"{name}, a core dump of a CPU process"
        en = f"There is no CUDA core dump, only {es}: gdb reads it, and it does not say what happened on the GPU."
        zh = f"没有 CUDA core dump，只有 CPU 进程的 core 文件（{name} 等 {count} 个），其中没有 GPU 上的信息。"
    else:
        en, zh = "There is no CUDA core dump in what was given.", "给出的路径里没有 CUDA core dump。"
    late = next((answer.ended for answer in asked.values() if answer.ended == "timed-out"), "")
    if late:
        en, zh = f"{en} cuda-gdb did not answer in time.", f"{zh}cuda-gdb 未在限时内回答。"
    return unknown(en, zh, settle_en=settle_en, settle_zh=settle_zh, slots=("cuda_coredump",))

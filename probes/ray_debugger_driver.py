"""Where the driver stops for the debugger, and whether Ray is initialised before, by its syntax tree.

Under `ray job submit` breakpoint() enters Ray's debugger, which needs `core_worker`; a driver has it only after
ray.init() or the first use of Ray, else: AttributeError: 'Worker' object has no attribute 'core_worker'. Inside a
remote function or an actor it always exists. pdb's own set_trace() reads from a terminal, which no process of a
submitted job has. Invariants: a breakpoint behind a condition counts only where the launch script is known to fulfil
it; a driver whose job trained on in the log is not the one that ran; a bare ray.init() is by itself no fault: Ray calls
exactly that at the first use (ray/_private/auto_init_hook.py), and under `ray job submit` it takes the address and the
runtime env from the job (ray/_private/worker.py). It was left behind from debugging only where something else of that
is still there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from probes import logs
from probes.ray_debugger_env import switches
from probes.ray_debugger_no_core_worker import LINE
from probes.readers.driver_ast import Driver, Event, read_driver
from probes.readers.driver_guards import Guard
from probes.readers.environment import exported, passed
from probes.readers.launch_model import cite_place
from probes.readers.logscan import signature
from probes.settings import Settings, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe

_PIP = re.compile(rb'\\?["\']pip\\?["\']\s*:\s*(?:\[[^\]]{0,2000}|\{[^}]{0,2000})debugpy')
_QUIT = signature("bdb-quit", "bdb.BdbQuit")
"""What pdb raises where it has no terminal."""
_SCRIPT_LIMIT = 1 << 20


@dataclass
class _Seen:
    """What the drivers do, by kind: the lines that show it."""

    failing: list[Event] = field(default_factory=list)
    consoles: list[Event] = field(default_factory=list)
    good: list[Event] = field(default_factory=list)
    doubtful: list[Event] = field(default_factory=list)
    workers: list[Event] = field(default_factory=list)
    off: list[Event] = field(default_factory=list)
    bare: list[Event] = field(default_factory=list)
    inits: list[Event] = field(default_factory=list)
    commented: list[Citation] = field(default_factory=list)

    def kind(self, event: Event, certain: bool, initialised: bool, perhaps: bool) -> list[Event]:
        """Return where a stop belongs. certain: it is reached; initialised, perhaps: what is known of Ray before it."""
        if event.kind == "console":
            return self.consoles if event.where and certain else self.doubtful
        if event.where == "worker":
            return self.workers
        if event.where == "driver" and initialised:
            return self.good
        return self.failing if event.where == "driver" and certain and not perhaps else self.doubtful


@probe(
    "ray_debugger.driver",
    needs="driver",
    answers=(
        "init-before-breakpoint", "breakpoint-in-worker", "breakpoint-without-init", "plain-pdb", "no-breakpoint",
        "bare-init", "left-behind",
    ),
    en="Where does the driver stop for the debugger, and is Ray initialised before?",
    zh="driver 在哪里停下等待调试器？之前是否已初始化 Ray？",
    deadline=logs.DEADLINE,
)  # fmt: skip
def driver(evidence: Evidence, report: Progress) -> Finding:
    """Follow the driver's main flow in order, and look into the remote code beside it."""
    settings = read_settings(evidence)
    seen = _Seen()
    for path in evidence.paths("driver"):
        read = read_driver(path)
        if read is None:
            return _open("the driver is not Python that can be parsed", "无法解析 driver 的 Python 代码", ())
        _take(read, settings, seen)
        seen.commented += [cite(path, text, line=line, offset=offset) for line, offset, text in read.commented]
    if (seen.failing or seen.consoles) and _trained_on(evidence, report):
        return _open(
            "the job of this log trained on, so it did not run this driver as it is now",
            "日志里的任务继续训练了，说明它运行的不是现在这份 driver",
            _cited([*seen.failing, *seen.consoles]),
        )
    return _faulty(seen) or _stopping(seen) or _bare(seen, settings, evidence) or _none(seen)


def _take(read: Driver, settings: Settings, seen: _Seen) -> None:
    """Sort the events of one driver by what they mean."""
    init: Event | None = None
    initialised = perhaps = False
    for event in read.events:
        reached = _reached(event.guards, settings)
        stops = event.kind in ("breakpoint", "console")
        if reached is False:
            if stops:
                seen.off.append(event)
        elif stops:
            seen.kind(event, reached is True, initialised, perhaps).append(event)
            if init is not None and event in seen.good:
                seen.inits.append(init)
        else:
            perhaps = True
            if event.kind == "init":
                initialised = initialised or reached is True
                init = init or event
                if event.bare:
                    seen.bare.append(event)


def _trained_on(evidence: Evidence, report: Progress) -> bool:
    """Return whether the logs show a job that trains, and no failure of a stop."""
    scanned = logs.collect(evidence, report, [LINE, _QUIT])
    if scanned.of(LINE.label, _QUIT.label):
        return False
    return logs.trained_on(evidence, report)


def _reached(conditions: tuple[Guard, ...], settings: Settings) -> bool | None:
    """Return whether all conditions hold in this run, None where that is not known."""
    held = [_holds(guard, settings) for guard in conditions]
    return False if False in held else None if None in held else True


def _holds(guard: Guard, settings: Settings) -> bool | None:
    if guard.kind == "constant":
        return guard.holds(None)
    if guard.kind == "flag":
        on, _ = switched(settings, guard.name)
        return None if on is None else on is not guard.negated
    if guard.kind == "env" and settings.launch is not None and settings.job is not None:
        inside = passed(settings.job, guard.name)
        if inside is not None:
            return guard.holds(inside.value) if inside.value is not None and inside.sure else None
        if exported(settings.launch, settings.job, guard.name) is None and not settings.job.gaps:
            return guard.holds(None)
    return None


def _faulty(seen: _Seen) -> Finding | None:
    if seen.failing:
        event = seen.failing[0]
        return found(
            Verdict.PROBLEM,
            "breakpoint-without-init",
            f"breakpoint() in line {event.line} runs before Ray is initialised: put ray.init() in front of it.",
            f"第 {event.line} 行的 breakpoint() 在 Ray 初始化之前执行：应在它前面加 ray.init()。",
            citations=_cited(seen.failing),
        )
    if seen.consoles:
        event = seen.consoles[0]
        return found(
            Verdict.WARNING,
            "plain-pdb",
            f"Line {event.line} asks for a console of its own (pdb), but no process of a Ray job has a terminal: "
            "write breakpoint() there.",
            f"第 {event.line} 行使用 pdb 自己的命令行，但 Ray 任务的进程都没有终端：应改成 breakpoint()。",
            citations=_cited(seen.consoles),
        )
    return None


def _stopping(seen: _Seen) -> Finding | None:
    if seen.good:
        return found(
            Verdict.OK,
            "init-before-breakpoint",
            "ray.init() comes before breakpoint(); remove both after debugging."
            if any(event.written for event in seen.inits)
            else "Ray is in use before breakpoint(); remove it after debugging.",
            "breakpoint() 之前 Ray 已初始化；调试后请删掉 breakpoint() 和专为它加的 ray.init()。",
            citations=_cited([*seen.inits, *seen.good]),
        )
    if seen.doubtful:
        event = seen.doubtful[0]
        if event.guards:
            condition = event.guards[-1].text
            en, zh = f"line {event.line} runs only under `{condition}`", f"第 {event.line} 行只在 `{condition}` 时执行"
        elif not event.where:
            en = f"nothing seen here calls the function around line {event.line}"
            zh = f"看不到谁调用第 {event.line} 行所在的函数"
        else:
            en = "other calls come before breakpoint() and may initialise Ray"
            zh = "breakpoint() 之前还有其他调用，可能已初始化 Ray"
        return _open(en, zh, _cited(seen.doubtful))
    if seen.workers:
        event = seen.workers[0]
        return found(
            Verdict.OK,
            "breakpoint-in-worker",
            f"breakpoint() in line {event.line} stands in an actor or remote function, where Ray is always "
            "initialised; remove it after debugging.",
            f"第 {event.line} 行的 breakpoint() 在 actor 或 remote 函数里，那里 Ray 总是已初始化；调试后请删掉。",
            citations=_cited(seen.workers),
        )
    return None


def _bare(seen: _Seen, settings: Settings, evidence: Evidence) -> Finding | None:
    """Tell a bare ray.init() that debugging left behind from one of the driver's own."""
    if not seen.bare:
        return None
    signs = (*seen.commented, *_switched_on(settings), *_in_pip(evidence))
    line = seen.bare[0].line
    if signs:
        return found(
            Verdict.PROBLEM,
            "left-behind",
            f"ray.init() in line {line} was left behind from debugging: there is no breakpoint() any more, but the "
            "traces of the debugger are still there.",
            f"第 {line} 行的 ray.init() 是调试后遗留的：已没有 breakpoint()，但调试器的其他痕迹还在。",
            citations=(*_cited(seen.bare), *signs),
        )
    return found(
        Verdict.WARNING,
        "bare-init",
        f"ray.init() in line {line} has no arguments: it takes the cluster that RAY_ADDRESS names, and where there is "
        "none starts one of its own on this machine alone.",
        f"第 {line} 行的 ray.init() 不带参数：它连接 RAY_ADDRESS 指定的集群；没有集群时会只在本机另起一个。",
        citations=_cited(seen.bare),
    )


def _switched_on(settings: Settings) -> tuple[Citation, ...]:
    """Return where the launch script still sets a switch of the debugger."""
    if settings.launch is None or settings.job is None:
        return ()
    return tuple(cite_place(one.place) for one in switches(settings.launch, settings.job))


def _in_pip(evidence: Evidence) -> tuple[Citation, ...]:
    """Return where a runtime env installs debugpy."""
    lines = []
    for path in evidence.paths("launch"):
        try:
            with open(path, "rb") as file:
                data = file.read(_SCRIPT_LIMIT)
        except OSError:
            continue
        if (match := _PIP.search(data)) is not None:
            start = data.rfind(b"\n", 0, match.end()) + 1
            text = data[start:].partition(b"\n")[0]
            if not text.lstrip().startswith(b"#"):
                lines.append(cite(path, text, line=data.count(b"\n", 0, start) + 1, offset=start))
    return tuple(lines)


def _none(seen: _Seen) -> Finding:
    if seen.off:
        event = seen.off[0]
        condition = event.guards[-1].text
        return found(
            Verdict.OK,
            "no-breakpoint",
            f"The stop in line {event.line} stands behind `{condition}`, which this run leaves off.",
            f"第 {event.line} 行的断点只在 `{condition}` 时执行，本次任务没有打开。",
            citations=_cited(seen.off),
        )
    return found(Verdict.OK, "no-breakpoint", "The driver has no breakpoint().", "driver 里没有 breakpoint()。")


def _cited(events: list[Event]) -> tuple[Citation, ...]:
    places = dict.fromkeys((event.path, event.line, event.offset, event.text) for event in events)
    return tuple(cite(path, text, line=line, offset=offset) for path, line, offset, text in places)


def _open(en: str, zh: str, citations: tuple[Citation, ...]) -> Finding:
    return unknown(
        f"Cannot tell whether Ray is initialised before breakpoint(): {en}.",
        f"无法判断 breakpoint() 之前 Ray 是否已初始化：{zh}。",
        settle_en="look for the AttributeError about core_worker in the log",
        settle_zh="在日志里查找关于 core_worker 的 AttributeError",
        slots=("log", "driver"),
        citations=citations,
    )

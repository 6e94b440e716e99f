"""Whether the driver calls ray.init() before breakpoint(), by its syntax tree.

Ray replaces breakpoint() (PYTHONBREAKPOINT) by a debugger that needs `core_worker`, which exists only after
ray.init() or the first use of Ray; without it: AttributeError: 'Worker' object has no attribute 'core_worker'.
Inside a remote function or actor it always exists. A bare ray.init() left behind without a breakpoint drops the
namespace and runtime env that `ray job submit` injects (the guide's note).
"""

from __future__ import annotations

from probes.readers.driver_ast import Event, read_driver
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe


@probe(
    "ray_debugger.driver",
    needs="driver",
    answers=("init-before-breakpoint", "breakpoint-without-init", "no-breakpoint", "left-behind"),
    en="Does the driver call ray.init() before breakpoint()?",
    zh="driver 在 breakpoint() 之前调用 ray.init() 了吗？",
)
def driver(evidence: Evidence, report: Progress) -> Finding:
    """Follow the driver's main block in order."""
    del report
    doubtful: list[Citation] = []
    bare: list[Citation] = []
    good: list[Citation] = []
    for path in evidence.paths("driver"):
        events = read_driver(path)
        if events is None:
            return _open("the driver is not Python that can be parsed", "无法解析 driver 的 Python 代码", ())
        init = next((event for event in events if event.kind == "init"), None)
        for event in events:
            if event.kind != "breakpoint":
                continue
            before = {one.kind for one in events[: events.index(event)]}
            if "init" in before and init is not None:
                good += [_cite(path, init), _cite(path, event)]
            elif "call" in before:
                doubtful.append(_cite(path, event))
            else:
                return _without_init(path, event)
        if init is not None and init.bare:
            bare.append(_cite(path, init))
    return _sum_up(good, doubtful, bare)


def _without_init(path: str, event: Event) -> Finding:
    return found(
        Verdict.PROBLEM,
        "breakpoint-without-init",
        f"breakpoint() in line {event.line} runs before Ray is initialised: put ray.init() in front of it.",
        f"第 {event.line} 行的 breakpoint() 在 Ray 初始化之前执行：应在它前面加 ray.init()。",
        citations=(_cite(path, event),),
    )


def _sum_up(good: list[Citation], doubtful: list[Citation], bare: list[Citation]) -> Finding:
    if good:
        return found(
            Verdict.OK,
            "init-before-breakpoint",
            "ray.init() comes before breakpoint(); remove both after debugging.",
            "ray.init() 在 breakpoint() 之前；调试后请把两者都删掉。",
            citations=tuple(good),
        )
    if doubtful:
        return _open(
            "other calls come before breakpoint() and may initialise Ray",
            "breakpoint() 之前还有其他调用，可能已初始化 Ray",
            tuple(doubtful),
        )
    if bare:
        return found(
            Verdict.WARNING,
            "left-behind",
            "A bare ray.init() is still in the driver although there is no breakpoint(); it drops what "
            "`ray job submit` injects.",
            "driver 里还留着不带参数的 ray.init()，却没有 breakpoint()；它会丢掉 `ray job submit` 注入的配置。",
            citations=tuple(bare),
        )
    return found(Verdict.OK, "no-breakpoint", "The driver has no breakpoint().", "driver 里没有 breakpoint()。")


def _cite(path: str, event: Event) -> Citation:
    return cite(path, event.text, line=event.line, offset=event.offset)


def _open(en: str, zh: str, citations: tuple[Citation, ...]) -> Finding:
    return unknown(
        f"Cannot tell whether Ray is initialised before breakpoint(): {en}.",
        f"无法判断 breakpoint() 之前 Ray 是否已初始化：{zh}。",
        settle_en="look for the AttributeError about core_worker in the log",
        settle_zh="在日志里查找关于 core_worker 的 AttributeError",
        slots=("log", "driver"),
        citations=citations,
    )

"""How GPU and host memory move over the cycles of a job, rank by rank, and whether anything leaks (debug guide 2.1).

Ray's de-duplication hides most ranks in a driver log, so only what is printed is shown. A drift is a lead: a warning,
never a proof. A kill by the kernel leaves no line in an actor's log, so a node whose memory ran low before an actor
vanished points at the host, and only the kernel's log proves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from probes import logs
from probes.memory_trend import AFTER_WAKE, BEFORE_WAKE, Drift, Rank, falls, left_for, ranks, rises
from probes.readers import joblog
from probes.readers.logfiles import window
from probes.readers.logplace import time_of
from probes.readers.logscan import Coverage, Hit, signature
from probes.readers.memory_lines import USAGE, Usage, usage
from probes.thresholds.memory import CYCLES, GROWTH, HOST_LEFT, WARM
from runbook.evidence import Evidence
from runbook.finding import Citation, Curve, Finding, Measurement, Plot, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

VANISHED = signature(
    "vanished", "The actor died unexpectedly", r"ActorDiedError: The actor died unexpectedly before finishing"
)
KEEP = 20_000
"""Lines of one log that are kept, the last ones."""
_WATCHED = {"engine-grows": (BEFORE_WAKE, "others"), "trainer-grows": (AFTER_WAKE, "allocated")}
"""The line of a cycle and the value in it by whose growth each answer is told."""
_POINTS = 300
"""Points of a curve; longer ones are thinned."""
_CURVES = 8
_READ = 64 * 1024


@dataclass
class _Read:
    """What the logs hold. lines: of each log. vanished: the first actor that died without a word."""

    lines: dict[str, deque[Usage]] = field(default_factory=dict)
    vanished: Hit | None = None
    coverage: Coverage = field(default_factory=Coverage)

    def usages(self) -> list[Usage]:
        """Return all lines, those of a log that repeats another's left out."""
        seen: set[tuple[object, ...]] = set()
        found = []
        for lines in self.lines.values():
            for each in lines:
                same = (each.process.pid, each.time, each.rank, each.what, each.used)
                if each.process.pid and each.time is not None and same in seen:
                    continue
                seen.add(same)
                found.append(each)
        return found


@probe(
    "memory.timeline",
    needs="log",
    answers=("steady", "engine-grows", "trainer-grows", "host-falls"),
    en="Does memory grow over the cycles, or does a node run low?",
    zh="显存是否逐轮增长？节点内存是否见底？",
    deadline=logs.DEADLINE,
)
def memory_timeline(evidence: Evidence, report: Progress) -> Finding:
    """Judge the drift of each rank and node, and draw them."""
    read = _read(evidence, report)
    lines = read.usages()
    if not lines:
        return logs.unread(read.coverage) or logs.nothing_said(
            "The log prints no Memory-Usage line.", "日志里没有 Memory-Usage 行。"
        )
    found_ranks = ranks(lines)
    tables, plots = (_table(found_ranks),), _plots(found_ranks, lines)
    low = _host(lines)
    if low is not None:
        return _host_falls(low, read.vanished, tables, plots)
    for answer, (what, value) in _WATCHED.items():
        drifts = [(rank, drift) for rank in found_ranks if (drift := rises(rank.series(what, value))) is not None]
        if drifts:
            rank, drift = max(drifts, key=lambda pair: pair[1].slope)
            return _grows(answer, rank, drift, what, tables, plots)
    told = [max(len(rank.series(what, value)) for what, value in _WATCHED.values()) for rank in found_ranks]
    cycles, seen = max(told), sum(each >= WARM.value + CYCLES.value for each in told)
    if not seen:
        return replace(_too_few(cycles, lines[-1]), tables=tables, plots=plots)
    return found(
        Verdict.OK,
        "steady",
        f"Memory shows no drift over {cycles} cycles ({counted(seen, 'rank')} seen).",
        f"{cycles} 轮内显存没有持续增长（见到 {seen} 个 rank）。",
        tables=tables,
        plots=plots,
    )


def _too_few(cycles: int, last: Usage) -> Finding:
    return unknown(
        f"Memory around wake_up, by which a drift is told, is printed in {counted(cycles, 'cycle')} only.",
        f"判断增长所需的 wake_up 前后的显存只打印了 {cycles} 轮，不足以判断。",
        settle_en=f"Give a log of at least {WARM.value + CYCLES.value:.0f} cycles, of slime v0.2.0 or later.",
        settle_zh=f"提供至少 {WARM.value + CYCLES.value:.0f} 轮的日志（slime v0.2.0 及以上）。",
        slots=("log",),
        citations=(_cite(last),),
    )


def _read(evidence: Evidence, report: Progress) -> _Read:
    read = _Read()
    for hit in logs.stream(evidence, report, (USAGE, VANISHED), read.coverage):
        if hit.label == USAGE.label:
            read.lines.setdefault(hit.file.stream, deque(maxlen=KEEP)).append(usage(hit))
        elif read.vanished is None:
            read.vanished = hit
    return read


def _host(lines: Sequence[Usage]) -> tuple[Usage, Usage] | None:
    """Return the lines that show a node running low, of the node that is left with least."""
    nodes: dict[str, list[Usage]] = {}
    for each in lines:
        nodes.setdefault(each.process.ip, []).append(each)
    low = [pair for node in nodes.values() if (pair := falls(node)) is not None]
    return min(low, key=lambda pair: pair[1].host_available or 0.0, default=None)


def _host_falls(
    low: tuple[Usage, Usage], vanished: Hit | None, tables: tuple[Table, ...], plots: tuple[Plot, ...]
) -> Finding:
    first, last = low
    had, left, total = first.host_available or 0.0, last.host_available or 0.0, last.host_total or 1.0
    died = vanished is not None and _later(vanished, last)
    en = f"Host memory fell from {had:.0f} to {left:.0f} of {total:.0f} GiB"
    zh = f"主机可用内存从 {had:.0f} 降到 {left:.0f} GiB（共 {total:.0f} GiB）"
    return found(
        Verdict.WARNING,
        "host-falls",
        f"{en}{', then an actor vanished without a line' if died else ''}; dmesg of that node would prove a kill.",
        f"{zh}{'，随后有 actor 无声消失' if died else ''}；该节点的 dmesg 才能证实被杀。",
        citations=(_cite(last), _cite(first), *((joblog.citation(vanished),) if died and vanished else ())),
        measurements=(HOST_LEFT.measure("host memory left", round(left / total, 3)),),
        tables=tables,
        plots=plots,
    )


def _later(vanished: Hit, last: Usage) -> bool:
    if vanished.file.stream == last.file.stream:
        return vanished.line > last.line
    time = time_of(vanished)
    return time is not None and last.time is not None and time >= last.time


def _grows(
    answer: str, rank: Rank, drift: Drift, what: str, tables: tuple[Table, ...], plots: tuple[Plot, ...]
) -> Finding:
    who_en, who_zh = (
        ("what others than the trainer hold", "训练进程之外的占用")
        if answer == "engine-grows"
        else ("what the trainer holds", "训练进程自身的占用")
    )
    more, when = left_for(rank, drift), what.replace(" model", "")
    end_en = f"; at that pace the GPU is full in {counted(round(more), 'cycle')}" if more is not None else ""
    end_zh = f"；照此再过约 {more:.0f} 轮就会占满" if more is not None else ""
    points = [point.usage for point in rank.points if point.usage.what == what]
    return found(
        Verdict.WARNING,
        answer,
        f"On {rank.name} {who_en} {when} grew from {drift.first:.1f} to {drift.last:.1f} GiB over "
        f"{drift.cycles} cycles ({drift.slope:+.2f} GiB a cycle){end_en}.",
        f"{rank.name} 在 {when} 时，{who_zh}在 {drift.cycles} 轮内从 {drift.first:.1f} 增到 "
        f"{drift.last:.1f} GiB（每轮 {drift.slope:+.2f} GiB）{end_zh}。",
        citations=(_cite(points[-1]), _cite(points[0])),
        measurements=(
            GROWTH.measure("growth", round(drift.last - drift.first, 2)),
            Measurement("growth a cycle", round(drift.slope, 3), "GiB"),
        ),
        tables=tables,
        plots=plots,
    )


def _cite(one: Usage) -> Citation:
    raw = window(one.file, one.offset, _READ).partition(b"\n")[0].rstrip(b"\r")
    return cite(one.file.path, raw, line=one.line or None, offset=one.offset, count=one.count, time=one.time)


def _table(found_ranks: Sequence[Rank]) -> Table:
    """Return the last cycle of each rank, line by line."""
    rows = []
    for rank in found_ranks[: _CURVES * 2]:
        for point in rank.points:
            if point.x >= rank.cycle:
                one = point.usage
                cells = (one.used, one.reserved, one.allocated, one.others, one.free)
                rows.append(
                    (sanitise(rank.name), sanitise(one.what), *("-" if x is None else f"{x:.1f}" for x in cells))
                )
    title = Text("The last cycle, GiB", "最后一轮（GiB）")
    return Table(title, ("rank", "when", "used", "reserved", "allocated", "others", "free"), tuple(rows))


def _plots(found_ranks: Sequence[Rank], lines: Sequence[Usage]) -> tuple[Plot, ...]:
    fullest = max(found_ranks, key=lambda rank: max((point.usage.used or 0.0 for point in rank.points), default=0.0))
    of_rank = tuple(
        _curve(name, [(point.x, getattr(point.usage, name)) for point in fullest.points])
        for name in ("used", "reserved", "allocated", "others", "free")
    )
    kept = tuple(_curve(rank.name, rank.series(BEFORE_WAKE, "others")) for rank in found_ranks[:_CURVES])
    nodes: dict[str, list[tuple[float, float | None]]] = {}
    for each in lines:
        node = nodes.setdefault(each.process.ip or "driver's node", [])
        node.append((float(len(node)), each.host_available))
    hosts = tuple(_curve(sanitise(name), points) for name, points in list(nodes.items())[:_CURVES])
    drawn = (
        Plot(Text(f"GPU memory of {fullest.name}", f"{fullest.name} 的显存"), "cycle", "GiB", _filled(of_rank)),
        Plot(Text("Held by others before wake_up", "wake_up 之前其他进程的占用"), "cycle", "GiB", _filled(kept)),
        Plot(Text("Host memory available", "主机可用内存"), "line", "GiB", _filled(hosts)),
    )
    return tuple(plot for plot in drawn if plot.curves)


def _filled(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """Return the curves that have at least two points; one point is no curve."""
    return tuple(curve for curve in curves if len(curve.points) > 1)


def _curve(name: str, points: Sequence[tuple[float, float | None]]) -> Curve:
    told = [(x, y) for x, y in points if y is not None]
    step = max(-(-len(told) // _POINTS), 1)
    return Curve(name, tuple(told[::step]))

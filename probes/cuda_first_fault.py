"""Who printed a CUDA fault first, and what its traceback stands in: the one place where this is told.

A fault is printed by its own process, by NCCL's watchdog in it, by every rank that waited for it and again by whoever
asked the actor, so the first process in time is what matters and the rest are consequences. Sources: the frames of
SGLang (managers, speculative, model_executor, disaggregation), Megatron and DeepEP, and torch's own hint about
asynchronous errors (c10/cuda/CUDAMiscFunctions.cpp), which it prints exactly where CUDA_LAUNCH_BLOCKING is not set.
Invariant: what no line tells is "" or None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from probes import faults
from probes.blocking import Blocking
from probes.readers import joblog, logplace
from probes.readers.joblog import Frame, Placed
from probes.readers.logscan import Hit
from runbook.finding import Table
from runbook.text import Text

_DEEPEP = re.compile(r"deep_?ep|fused_a2a|nvshmem|low_latency_(?:dispatch|combine)", re.IGNORECASE)
_DRAFT = re.compile(
    r"/speculative/(?!.*(?:verify|target))|eagle_draft|draft_extend|forward_draft|multi_layer_eagle|_draft_worker"
)
_DRAFT_CALL = re.compile(r"^(?:draft|forward_draft\w*|draft_forward|draft_extend\w*|capture_for_decode)$")
_TARGET_CALL = re.compile(r"verify|forward_target|target")
_GRAPH = re.compile(r"cuda_graph_runner|cuda_graph_backend|torch/cuda/graphs|piecewise_cuda_graph|decode_cuda_graph")
_EAGER = re.compile(r"/(?:models|layers|model_executor|transformer)/")
_TRANSFER = re.compile(
    r"/disaggregation/(?:[\w/]*?)(?P<kind>mooncake|nixl|mori|ascend|fake)?|\b(?P<lib>mooncake|nixl)\b"
)
_REMOTE = re.compile(
    r"\bray::(?P<actor>\w+)(?:\.(?P<method>\w+))?\(\)(?: \(pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?)?"
)
_HINT = b"CUDA kernel errors might be asynchronously reported"
_BEHIND_HINT = b"Compile with `TORCH_USE_CUDA_DSA`"
_WATCHDOG = re.compile(rb"ProcessGroupNCCL\.cpp|[Ww]atchdog thread terminated")
_HINT_LINES = 5
_SHOWN = 16
LOOKED_AT = 40
"""Processes whose lines are looked into."""

_ROLES = (
    (re.compile(rb"DetokenizerManager hit an exception|/detokenizer_manager\.py"), "detokenizer"),
    (re.compile(rb"TokenizerManager hit an exception|/tokenizer_manager\.py"), "tokenizer manager"),
    (re.compile(rb"DataParallelController hit an exception"), "data parallel controller"),
    (
        re.compile(rb"Scheduler hit an exception|/managers/(?:scheduler|tp_worker)\w*\.py|/model_runner\.py"),
        "SGLang scheduler",
    ),
)  # fmt: skip


class Trust(Enum):
    """Whether the traceback of a fault names the call that failed."""

    BLOCKING = ("launches were blocking: the traceback is proof", "kernel 同步执行：堆栈可信")
    ASYNC = ("asynchronous: a lead", "异步：仅为线索")
    GRAPH = ("inside a CUDA graph: a lead", "在 CUDA graph 内：仅为线索")
    UNTOLD = ("not told whether launches were blocking: a lead", "未知是否同步：仅为线索")


@dataclass(frozen=True)
class Seat:
    """The process of a fault.

    half: "rollout", "train" or None, with sign, the line that says so. role: what the process is, in words. part: what
    the traceback stands in ("deepep", "speculative", "cuda-graph", "" for none of these), with place, the line that
    says so. graph: "replay", "capture", "eager" or "". model: "draft", "target" or "". transfer: "DeepEP",
    "KV transfer (mooncake)" or "".
    """

    hit: Hit
    breath: tuple[Placed, ...]
    half: str | None
    sign: Placed
    role_en: str
    role_zh: str
    actor: str | None
    rank: str | None
    pid: int | None
    ip: str | None
    time: float | None
    part: str
    place: Placed | None
    graph: str
    model: str
    transfer: str
    hinted: bool | None

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what tells this process from another."""
        if self.pid is not None:
            return (self.pid, self.ip)
        return (self.actor, self.rank, self.hit.file.stream)

    @property
    def name(self) -> str:
        """Return rank, pid and address, as far as they are told."""
        parts = (self.rank, f"pid {self.pid}" if self.pid is not None else None, f"ip {self.ip}" if self.ip else None)
        return ", ".join(filter(None, parts))


def look(hit: Hit) -> Seat:
    """Return the process of a fault and what its traceback stands in; the log is looked into around it."""
    breath = joblog.context(hit)
    half, sign = faults.side(hit, breath)
    where = logplace.whereabouts(hit)
    frames = faults.innermost_first(breath)
    part, place = _part(hit, frames)
    actor, pid, ip = where.actor, where.pid, where.ip
    method = ""
    remote = _remote(breath)
    if remote is not None and (actor is None or faults.actor_side(actor) is None):
        actor, method = remote["actor"], remote["method"] or ""
        pid = int(remote["pid"][:10]) if remote["pid"] else pid
        ip = remote["ip"] or ip
    model = _model(frames)
    graph = _graph(hit, frames)
    role_en, role_zh = _role(hit, half, actor, method, breath, model)
    return Seat(
        hit, breath, half, sign, role_en, role_zh, actor, where.rank, pid, ip, where.time, part, place, graph, model,
        _transfer(hit, frames), _hinted(hit, breath),
    )  # fmt: skip


def _remote(breath: Sequence[Placed]) -> re.Match[str] | None:
    """Return the actor that a RayTaskError names: the first that is of one half of the job."""
    found = (_REMOTE.search(joblog.parse(place.raw).message) for place in breath)
    return next((match for match in found if match and faults.actor_side(match["actor"])), None)


def _part(hit: Hit, frames: Sequence[Frame]) -> tuple[str, Placed | None]:
    """Return the part that a fault's own line or traceback names, and the line that names it."""
    if _DEEPEP.search(joblog.parse(hit.raw).message):
        return "deepep", Placed(hit.line, hit.offset, hit.raw)
    if b"cuda graph failed" in hit.raw:
        return "cuda-graph", Placed(hit.line, hit.offset, hit.raw)
    for frame in frames:
        if _DEEPEP.search(frame.file) or _DEEPEP.search(frame.function):
            return "deepep", frame.place
        if _DRAFT_CALL.match(frame.function) or (_DRAFT.search(frame.file) and "verify" not in frame.function):
            return "speculative", frame.place
        if _GRAPH.search(frame.file):
            return "cuda-graph", frame.place
    return "", None


def _graph(hit: Hit, frames: Sequence[Frame]) -> str:
    if b"cuda graph failed" in hit.raw:
        return "capture"
    inside = [frame for frame in frames if _GRAPH.search(frame.file)]
    if inside:
        return "capture" if any(frame.function.startswith(("capture", "_capture")) for frame in inside) else "replay"
    return "eager" if any(_EAGER.search(frame.file) for frame in frames) else ""


def _model(frames: Sequence[Frame]) -> str:
    """Return which of the two models of speculative decoding a traceback stands in, "" outside of it."""
    for frame in frames:
        if _TARGET_CALL.search(frame.function) and "/speculative/" in frame.file:
            return "target"
        if _DRAFT_CALL.match(frame.function) or _DRAFT.search(frame.file):
            return "draft"
    return ""


def _transfer(hit: Hit, frames: Sequence[Frame]) -> str:
    if _DEEPEP.search(joblog.parse(hit.raw).message):
        return "DeepEP"
    for frame in frames:
        if _DEEPEP.search(frame.file) or _DEEPEP.search(frame.function):
            return "DeepEP"
        if moved := _TRANSFER.search(frame.file):
            kind = moved["kind"] or moved["lib"]
            return f"KV transfer ({kind})" if kind else "KV transfer"
    return ""


def _role(
    hit: Hit, half: str | None, actor: str | None, method: str, breath: Sequence[Placed], model: str
) -> tuple[str, str]:
    """Return what the process is, in English and Chinese."""
    if half == "train":
        name = f"Megatron actor {actor}" if actor and "FSDP" not in actor else actor or "Megatron process"
        called = f" in {method}()" if method else ""
        return f"{name}{called}", f"{name}{called}"
    for pattern, name in _ROLES:
        if any(pattern.search(place.raw) for place in breath):
            drafts = name == "SGLang scheduler" and model == "draft"
            return (f"draft worker of an {name}", f"{name} 的 draft worker") if drafts else (name, name)
    if half == "rollout":
        engine = "SGLang engine"
        return (f"draft worker of an {engine}", f"{engine} 的 draft worker") if model == "draft" else (engine, engine)
    if _WATCHDOG.search(hit.raw):
        return "NCCL watchdog of a rank", "某 rank 的 NCCL watchdog"
    return actor or "a process that nothing names", actor or "未指明的进程"


def _hinted(hit: Hit, breath: Sequence[Placed]) -> bool | None:
    """Whether torch's hint about asynchronous errors follows the fault; None where the words around it do not.

    torch leaves the hint out where CUDA_LAUNCH_BLOCKING is set, and prints the line behind it all the same.
    """
    behind = [place.raw for place in breath if place.number > hit.line][:_HINT_LINES]
    if any(_HINT in raw for raw in behind):
        return True
    closed = any(_BEHIND_HINT in raw and b"[repeated " not in raw for raw in behind)
    return False if closed and b"CUDA error: " in hit.raw else None


def trust(seat: Seat, blocking: Blocking) -> Trust:
    """Return whether the traceback can be trusted, by the process's own words and else by the launch script's reach.

    The kernels of a captured graph are launched together whatever the variable says. An export on the head reaches
    that machine only; Ray leaves `ip=` out of the prefix of processes on the driver's machine alone.
    """
    if seat.graph in ("replay", "capture"):
        return Trust.GRAPH
    if seat.hinted is not None:
        return Trust.ASYNC if seat.hinted else Trust.BLOCKING
    if blocking is Blocking.HEAD:
        line = joblog.parse(seat.hit.raw)
        return Trust.BLOCKING if line.actor is not None and line.ip is None else Trust.UNTOLD
    if blocking is Blocking.TRAINERS:
        return Trust.BLOCKING if seat.half == "train" else Trust.ASYNC
    if blocking is Blocking.EVERYWHERE:
        return Trust.BLOCKING
    return Trust.ASYNC if blocking in (Blocking.OFF, Blocking.NOT_PASSED) else Trust.UNTOLD


def seats(hits: Sequence[Hit]) -> list[tuple[Seat, int]]:
    """Return each process once, in the order of time, with how many lines of it tell the fault."""
    found: dict[tuple[object, ...], tuple[Seat, int]] = {}
    told: dict[tuple[object, ...], tuple[object, ...]] = {}
    for hit in hits:
        line = joblog.parse(hit.raw)
        key = (*line.process, line.rank, hit.file.path, None if line.pid is not None else hit.line)
        identity = told.get(key)
        if identity is None:
            if len(told) >= LOOKED_AT:
                continue
            seat = look(hit)
            identity = told[key] = seat.identity
            if identity not in found:
                found[identity] = (seat, 0)
            elif not found[identity][0].part and seat.part:  # the watchdog's line came before the traceback
                found[identity] = (seat, found[identity][1])
        seat, count = found[identity]
        found[identity] = (seat, count + line.count)
    return list(found.values())


def table(told: Sequence[tuple[Seat, int]], blocking: Blocking) -> Table:
    """Return one row a process, the first fault first; what follows it is told as how much later it came."""
    start = told[0][0].time if told else None
    rows = []
    for seat, count in told[:_SHOWN]:
        after = "" if seat.time is None or start is None else f"+{seat.time - start:.0f} s"
        rows.append(
            (
                seat.role_en,
                seat.name or "?",
                _clock(seat.time) if seat is told[0][0] else after or "?",
                trust(seat, blocking).value[0] if joblog.frames(seat.breath) else "none",
                seat.graph or "?",
                seat.model or "-",
                seat.transfer or "-",
                str(count),
            )
        )
    if len(told) > _SHOWN:
        rows.append(
            (f"{len(told) - _SHOWN} more processes", "", "", "", "", "", "", str(sum(n for _, n in told[_SHOWN:])))
        )
    columns = ("process", "rank, pid, ip", "time", "traceback", "graph", "model", "transfer", "lines")
    return Table(Text("First fault first", "最先出错的进程"), columns, tuple(rows))


def _clock(time: float | None) -> str:
    if time is None:
        return "?"
    seconds = int(time) % 86400
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

"""Whether the GPUs that the flags ask for are there.

slime asks Ray for one placement group (slime/ray/placement_group.py, _get_placement_group_layout): actor nodes x
GPUs a node when colocated or training only, plus --rollout-num-gpus otherwise; rollout alone with
--debug-rollout-only. Engines are made of --rollout-num-gpus // --rollout-num-gpus-per-engine (slime/ray/rollout.py),
and one that spans nodes needs all of them; GPUs that are left over stay idle, which is no fault. A script that starts
Ray only on its own machine, under a loopback address that no other machine can join, has exactly the GPUs of that
`ray start`. Where other machines may join, the number is not known and nothing is concluded.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.launch_rules import Asked, Release, Untold, release_of, tempered
from probes.readers.launch_model import Launch, RayStart, cite_place
from probes.settings import Settings, given, read_settings
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Verdict, found, unknown
from runbook.probe import Progress, probe

_NO_ENGINES = (
    "load-debug-rollout-data",
    "rollout-external-engine-addrs",
    "sglang-config",
    "prefill-num-servers",
)
"""Flags with which slime starts no engines of its own, or counts their GPUs by groups."""
_LOOPBACK = ("127.", "localhost", "::1")


@dataclass(frozen=True)
class _Need:
    """GPUs asked for. low and high differ where slime versions differ."""

    low: int
    high: int
    words: str
    citations: tuple[Citation, ...]


@probe(
    "launch.gpu_count",
    needs="launch|log",
    answers=("fits", "mismatch"),
    en="Do the GPU counts of the flags fit the Ray cluster that the script starts?",
    zh="参数要求的 GPU 数与脚本启动的 Ray 集群相符吗？",
)
def gpu_count(evidence: Evidence, report: Progress) -> Finding:
    """Compare what the placement group needs with what `ray start` offers."""
    settings = read_settings(evidence)
    told = _engines(settings) or _compared(settings, _need(settings, release_of(evidence)))
    return tempered(told, evidence, report)


def _compared(settings: Settings, need: _Need | None) -> Finding:
    """Return how the placement group's GPUs compare with those of `ray start`."""
    if need is None:
        return _open("the GPU counts of the command are not all known", "命令里的 GPU 数不全可知")
    if settings.launch is None:
        return _open("no launch script shows how Ray is started", "没有启动脚本说明 Ray 如何启动", need.citations)
    offer = _offer(settings.launch)
    if offer is None:
        return _open("the script does not say how many GPUs Ray has", "脚本没有说明 Ray 有多少 GPU", need.citations)
    start, gpus, closed = offer
    figures = (
        Measurement("GPUs needed", need.low, "GPUs", gpus, "ray start --num-gpus"),
        Measurement("GPUs of Ray", gpus, "GPUs"),
    )
    citations = (*need.citations, cite_place(start.place))
    if need.high <= gpus:
        return found(
            Verdict.OK,
            "fits",
            f"The flags need {need.words}, and `ray start` offers {gpus}.",
            f"参数需要 {need.words}，`ray start` 提供 {gpus}。",
            citations=citations,
            measurements=figures,
        )
    if need.low <= gpus or not closed:
        return _open(
            f"the flags need {need.words}, this machine offers {gpus}, and other machines may join Ray",
            f"参数需要 {need.words}，本机提供 {gpus}，其他机器可能加入 Ray",
            citations,
        )
    return found(
        Verdict.PROBLEM,
        "mismatch",
        f"The flags need {need.words}, but the script starts Ray on one machine with {gpus} under a loopback address "
        "that no other machine can join: the placement group will wait for ever.",
        f"参数需要 {need.words}，而脚本只在一台机器上以回环地址启动了 {gpus} 个 GPU 的 Ray，"
        "其他机器无法加入：placement group 会一直等待。",
        citations=citations,
        measurements=figures,
    )


def _open(en: str, zh: str, citations: tuple[Citation, ...] = ()) -> Finding:
    return unknown(
        f"Cannot compare GPU counts: {en}.",
        f"无法比较 GPU 数：{zh}。",
        settle_en="attach `ray status`, the dashboard address or the log (`Creating placement group with N GPUs`)",
        settle_zh="附上 `ray status`、dashboard 地址或日志（`Creating placement group with N GPUs`）",
        slots=("ray", "log"),
        citations=citations,
    )


def _need(settings: Settings, release: Release | None) -> _Need | None:
    """Return what the placement group asks for; None when that is not certain."""
    asked = Asked(settings)
    try:
        nodes, each = asked.number("actor-num-nodes", 1), asked.number("actor-num-gpus-per-node", 8)
        actor = int(nodes * each)
        words = f"{int(nodes)} x {int(each)} = {actor} GPUs"
        alone = asked.given("load-debug-rollout-data") or asked.on("debug-train-only")
        low, high = _with_critic(asked, actor, release)
        if alone or given(settings, "rollout-external-engine-addrs") is not None:
            return _sum(asked, low, high, words)
        rollout = asked.maybe("rollout-num-gpus")
        if asked.on("debug-rollout-only"):
            only = actor if asked.on("colocate") and not rollout else int(rollout or 0)
            return _sum(asked, only, only, f"{only} GPUs for rollout") if only else None
        if asked.on("colocate"):
            # Up to v0.3.0 a colocated --rollout-num-gpus is overridden; later the larger of both counts.
            return _sum(asked, low, high if settings.table is not None else max(high, int(rollout or 0)), words)
    except Untold:
        return None
    if not rollout:
        return None
    words = f"{int(nodes)} x {int(each)} for training + {int(rollout)} for rollout = {actor + int(rollout)} GPUs"
    return _sum(asked, low + int(rollout), high + int(rollout), words)


def _sum(asked: Asked, low: int, high: int, words: str) -> _Need | None:
    if any(line.default for line in asked.lines):
        return None
    more = f", or {high} with a critic of its own" if high > low else ""
    return _Need(low, high, words + more, tuple(dict.fromkeys(line.citation for line in asked.lines))[:4])


def _with_critic(asked: Asked, actor: int, release: Release | None) -> tuple[int, int]:
    """Return the least and the most GPUs that training needs. Raises Untold.

    With PPO, releases v0.2.0 to v0.2.4 give the critic GPUs of its own, as many as the actor's unless flags say so;
    later ones put it on the actor's.
    """
    if asked.text("advantage-estimator", "grpo") != "ppo":
        return actor, actor
    critic = [asked.maybe(f"critic-{name}") for name in ("num-nodes", "num-gpus-per-node")]
    plain = [asked.number("actor-num-nodes", 1), asked.number("actor-num-gpus-per-node", 8)]
    nodes, each = (own if own is not None else other for own, other in zip(critic, plain, strict=True))
    apart = actor + int(nodes * each)
    if release is None:
        return actor, apart
    return (apart, apart) if (0, 2, 0) <= release <= (0, 2, 4) else (actor, actor)


def _engines(settings: Settings) -> Finding | None:
    """Return what is wrong with the engines' share; None when nothing is, or when it is not certain."""
    asked = Asked(settings)
    try:
        if asked.on("debug-train-only") or any(asked.given(flag) for flag in _NO_ENGINES):
            return None
        rollout, shared = asked.maybe("rollout-num-gpus"), asked.on("colocate")
        size, node = asked.number("rollout-num-gpus-per-engine", 1), asked.number("num-gpus-per-node", 8)
        if rollout is None and shared:
            rollout = asked.number("actor-num-nodes", 1) * asked.number("actor-num-gpus-per-node", 8)
    except Untold:
        return None
    if rollout is None:
        words = (
            "Neither --colocate nor --rollout-num-gpus is given: slime cannot count rollout's GPUs (TypeError)",
            "--colocate 与 --rollout-num-gpus 都没有给：slime 没有推理卡数，以 TypeError 退出",
        )
    elif rollout and rollout < size:
        words = (
            f"An engine needs {size:g} GPUs, and rollout has {rollout:g}: no engine can be completed",
            f"一个 engine 需要 {size:g} 个 GPU，而推理只有 {rollout:g} 个：凑不出一个 engine",
        )
    elif size > node > 0 and (size % node or rollout % size):
        words = (
            f"Engines of {size:g} GPUs on nodes of {node:g}, and {rollout:g} for rollout: some engine stays incomplete",
            f"一个 engine 的 {size:g} 个 GPU 跨多个 {node:g} 卡节点，而推理有 {rollout:g} 个 GPU：有 engine 不完整",
        )
    else:
        return None
    citations = tuple(dict.fromkeys(line.citation for line in asked.lines))
    if not citations and settings.job is not None:
        citations = (cite_place(settings.job.place),)
    sure = citations and not any(line.default for line in asked.lines) and (settings.job is None or settings.job.sure)
    return found(
        Verdict.PROBLEM if sure else Verdict.WARNING, "mismatch", f"{words[0]}.", f"{words[1]}。", citations=citations
    )


def _offer(launch: Launch) -> tuple[RayStart, int, bool] | None:
    """Return (the only `ray start`, its GPUs, whether no other machine can join); None for any other script."""
    starts = launch.ray_starts
    heads = [start for start in starts if start.head]
    if len(heads) != 1 or heads[0].num_gpus is None or heads[0].default:
        return None
    head = heads[0]
    address = head.node_ip
    loopback = (
        address is not None and address.text is not None and not address.default and address.text.startswith(_LOOPBACK)
    )
    alone = len(starts) == 1 and head.sure and not head.repeated and not launch.spreads
    return head, head.num_gpus or 0, bool(loopback and alone)

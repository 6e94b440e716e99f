"""Whether the GPUs that the flags ask for are there.

slime asks Ray for one placement group (slime/ray/placement_group.py, _get_placement_group_layout): actor nodes x
GPUs a node when colocated or training only, plus --rollout-num-gpus otherwise. A script that starts Ray only on
its own machine, under a loopback address that no other machine can join, has exactly the GPUs of that `ray start`.
Where other machines may join, the number is not known and nothing is concluded.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.readers.launch_model import Launch, RayStart, cite_place
from probes.settings import Given, Settings, given, number, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Measurement, Verdict, found, unknown
from runbook.probe import Progress, probe

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
    del report
    settings = read_settings(evidence)
    need = _need(settings)
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


def _need(settings: Settings) -> _Need | None:
    nodes, nodes_line = number(settings, "actor-num-nodes", 1)
    each, each_line = number(settings, "actor-num-gpus-per-node", 8)
    rollout, rollout_line = number(settings, "rollout-num-gpus", 0)
    if (
        nodes is None
        or each is None
        or any(line is not None and line.default for line in (nodes_line, each_line, rollout_line))
    ):
        return None
    actor = int(nodes * each)
    modes = {name: switched(settings, name)[0] for name in ("colocate", "debug-train-only", "debug-rollout-only")}
    loaded, external = given(settings, "load-debug-rollout-data"), given(settings, "rollout-external-engine-addrs")
    lines = _citations(nodes_line, each_line)
    actor_words = f"{int(nodes)} x {int(each)} = {actor} GPUs"
    if modes["debug-train-only"] or loaded is not None or external is not None:
        return _Need(actor, actor, actor_words, lines)
    if modes["debug-train-only"] is None or modes["debug-rollout-only"] is not False or modes["colocate"] is None:
        return None
    if modes["colocate"]:
        # Up to v0.3.0 a colocated --rollout-num-gpus is overridden; later the larger of both counts.
        high = actor if settings.table is not None and rollout is None else max(actor, int(rollout or 0))
        return _Need(actor, high, actor_words, lines)
    if rollout is None or rollout_line is None:
        return None
    total = actor + int(rollout)
    words = f"{int(nodes)} x {int(each)} for training + {int(rollout)} for rollout = {total} GPUs"
    return _Need(total, total, words, (*lines, *_citations(rollout_line)))


def _citations(*lines: Given | None) -> tuple[Citation, ...]:
    return tuple(line.citation for line in lines if line is not None)


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

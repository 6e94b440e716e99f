"""The runs that tell which half is at fault, with this run's own numbers: flags to add, remove and set, and GPUs.

Three kinds: rollout alone on one engine, with a dump; a replay of that dump as the run trains; the same replay with
one parallel size at 1. Rules from slime/utils/arguments.py: with --debug-rollout-only the placement group is
--rollout-num-gpus, no trainer is set up and no Megatron checkpoint is loaded, though --ref-load must still exist when
a KL term is on; --load-debug-rollout-data implies --debug-train-only. A size at 1 with the data-parallel size kept
leaves batches and micro batches as they were, so log-probs can be compared number by number; the sizes are tried in
the order CP, EP, TP, PP: the first ones change what a kernel computes most and cost the least memory. slime saves
after the last rollout, so a replay must not have the run's --save; without --load it starts from --ref-load, the
weights that an engine has before any update. Invariant: only a layout that breaks no rule of launch.parallel_layout
about the GPUs is proposed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from probes.launch_parallel_layout import model_size, world
from probes.launch_rules import Asked, Release, Untold, jobs_of, release_of
from probes.script_change import change_script
from probes.settings import Settings, not_told
from runbook.changing import unified
from runbook.errors import RunbookError
from runbook.evidence import Evidence
from runbook.finding import Finding, Proposal, Table, Verdict, found
from runbook.flow.model import Change
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

_SIZES = (
    ("CP", "context-parallel-size"),
    ("EP", "expert-model-parallel-size"),
    ("TP", "tensor-model-parallel-size"),
    ("PP", "pipeline-model-parallel-size"),
)
_PIPELINE = (
    "decoder-first-pipeline-num-layers",
    "decoder-last-pipeline-num-layers",
    "num-layers-per-virtual-pipeline-stage",
    "num-virtual-stages-per-pipeline-rank",
    "pipeline-model-parallel-layout",
)
"""Flags that mean nothing, or stop slime, in a pipeline of one stage."""
_STATEFUL = ("--load", "--save", "--save-interval", "--eval-interval")
"""Flags without which a replay starts from the weights that the engine had, and leaves the run's checkpoints alone."""
PER_RANK_UNTIL = (0, 3, 1)
"""The last slime release in which every rank writes a train dump of its own, so that the path needs {rank}."""


@dataclass(frozen=True)
class Run:
    """One run to make. name: of the changed copy. gpus: that Ray must have. tells: what its outcome says."""

    name: str
    title: Text
    change: Change
    gpus: int
    tells: Text


@probe(
    "separate.plan",
    needs="launch|log",
    answers=("planned",),
    en="Which runs tell the halves apart, with this run's own sizes?",
    zh="按这次任务自身的规模，用哪几次任务区分训练与推理？",
)
def plan(evidence: Evidence, report: Progress) -> Finding:
    """Derive the runs, and write the changed copies of the launch script as patches."""
    del report
    settings = next(iter(jobs_of(evidence)), Settings())
    try:
        runs = tuple(runs_of(settings, release_of(evidence)))
    except Untold as missing:
        return not_told(
            f"The runs cannot be sized: {missing.flag} is not certain.", f"无法确定规模：{missing.flag} 不确定。"
        )
    rows = tuple(
        (run.title.en, sanitise(" ".join(_words(run.change)), 200), str(run.gpus), run.tells.en) for run in runs
    )
    zh = tuple(dict.fromkeys((words.en, words.zh) for run in runs for words in (run.title, run.tells)))
    first = runs[0]
    return found(
        Verdict.OK,
        "planned",
        f"Rollout alone takes {first.gpus} GPU(s): {' '.join(_words(first.change))}. Then replay its dump; the "
        f"{len(runs)} runs are in the table.",
        f"只跑推理需要 {first.gpus} 个 GPU：{' '.join(_words(first.change))}。然后重放它的 dump；"
        f"共 {len(runs)} 次任务见表。",
        tables=(
            Table(
                Text("Runs that tell the halves apart", "区分训练与推理的任务"),
                ("run", "flags", "GPUs", "tells"),
                rows,
                zh,
            ),
        ),
        proposals=tuple(_patches(settings, runs)),
    )


def _words(change: Change) -> Iterator[str]:
    yield from change.add
    yield from (f"{name} {value}" for name, value in change.set.items())
    if change.remove:
        yield f"without {' '.join(change.remove)}"


def _patches(settings: Settings, runs: tuple[Run, ...]) -> Iterator[Proposal]:
    """Yield the changes as patches of the launch script, where it is a script whose changes all come out."""
    if settings.launch is None or settings.launch.kind not in ("bash", "python"):
        return
    path = settings.launch.path
    for run in runs:
        try:
            changed = change_script(path, run.change)
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                diff = unified(file.read(), changed.text, os.path.basename(path))
        except (OSError, RunbookError):
            return
        if diff and not changed.left:
            yield Proposal(f"{run.name}.patch", path, diff)


def runs_of(settings: Settings, release: Release | None) -> Iterator[Run]:
    """Yield the runs in the order in which they are made. Raises Untold."""
    asked = Asked(settings)
    if not settings.known:
        raise Untold("the training command")
    engine = int(asked.number("rollout-num-gpus-per-engine", 1))
    folder = _folder(settings)
    rollout = f"{folder}/rollout_{{rollout_id}}.pt"
    rank = "_{rank}" if release is not None and release <= PER_RANK_UNTIL else ""
    yield Run(
        "rollout-alone",
        Text("rollout alone, one engine", "只跑推理，一个 engine"),
        Change(
            add=("--debug-rollout-only",),
            remove=("--debug-train-only", "--load-debug-rollout-data", "--eval-interval"),
            set={"--rollout-num-gpus": str(engine), "--num-rollout": "1", "--save-debug-rollout-data": rollout},
        ),
        engine,
        Text("garbled: engine or checkpoint; coherent: the weight update", "乱码：engine 或 ckpt；正常：权重更新"),
    )
    gpus = int(world(asked))
    replay = {
        "--num-rollout": "1",
        "--load-debug-rollout-data": rollout,
        "--save-debug-train-data": f"{folder}/train_{{rollout_id}}{rank}.pt",
    }
    dropped = ("--debug-rollout-only", "--save-debug-rollout-data", *_STATEFUL)
    yield Run(
        "replay",
        Text("replay as it trains", "按原配置重放"),
        Change(remove=dropped, set=replay),
        gpus,
        Text("its log-probs against the engine's in the dump", "训练侧 log-prob 与 dump 中 engine 的对比"),
    )
    yield from _layouts(asked, replay, dropped, f"{folder}/train_")


def _layouts(asked: Asked, replay: dict[str, str], dropped: tuple[str, ...], base: str) -> Iterator[Run]:
    """Yield one replay for each parallel size above 1, at 1 and with the data-parallel size kept."""
    gpus, size = int(world(asked)), int(model_size(asked))
    expert_tensor = asked.maybe("expert-tensor-parallel-size")
    sizes = {flag: int(asked.number(flag, 1)) for _, flag in _SIZES}
    node = int(asked.number("actor-num-gpus-per-node", 8))
    for short, flag in _SIZES:
        if sizes[flag] <= 1:
            continue
        new = {**sizes, flag: 1}
        whole = new["tensor-model-parallel-size"] * new["pipeline-model-parallel-size"] * new["context-parallel-size"]
        count = gpus // size * whole
        tensor = new["tensor-model-parallel-size"] if expert_tensor is None else int(expert_tensor)
        spread = tensor * new["expert-model-parallel-size"] * new["pipeline-model-parallel-size"]
        if count <= 0 or count % spread or (count > node and count % node):
            continue
        change = {**replay, f"--{flag}": "1", "--save-debug-train-data": f"{base}{short.lower()}1_" + _tail(replay)}
        if count != gpus:
            change["--actor-num-nodes"] = str(max(count // node, 1))
            change["--actor-num-gpus-per-node"] = str(min(count, node))
        removed = (*dropped, *(f"--{name}" for name in _PIPELINE)) if short == "PP" else dropped
        yield Run(
            f"replay-{short.lower()}1",
            Text(f"replay with {short} {sizes[flag]} -> 1", f"重放，{short} {sizes[flag]} -> 1"),
            Change(remove=removed, set=change),
            count,
            Text(f"other log-probs: {short} changes what is computed", f"log-prob 变了：{short} 影响计算结果"),
        )


def _tail(replay: dict[str, str]) -> str:
    return replay["--save-debug-train-data"].rsplit("/train_", 1)[1]


def _folder(settings: Settings) -> str:
    """Return where dumps go: beside the run's checkpoints where that is known, for it is on shared storage."""
    asked = Asked(settings)
    try:
        save = asked.text("save")
    except Untold:
        save = None
    return os.path.join(save.rstrip("/"), "separate") if save else "/DIR"

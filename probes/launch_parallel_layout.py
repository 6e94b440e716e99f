"""Whether the parallel sizes divide the model and the GPUs of the trainer.

Megatron stops otherwise: some rules in the driver (training/arguments.py, validate_args), some in every trainer
(parallel_state.py, TransformerConfig, MoELayer.forward). The trainer's world size is actor nodes x GPUs a node. The
rules were read at core_v0.14.0 (slime v0.2.0, v0.2.1), 3714d81d (v0.2.2 to v0.2.4) and 1dcf0dafa (v0.3.0 and later).
slime pads the vocabulary itself (`_vocab_size_with_padding`), so no rule of TP binds it.
"""

from __future__ import annotations

from probes.launch_rules import Asked, Broken, Rule, jobs_of, judge
from probes.settings import Settings, given, no_command, switched
from runbook.evidence import Evidence
from runbook.finding import Finding, not_applicable
from runbook.probe import Progress, probe

_TP, _PP, _CP = "tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"
_EP, _ETP = "expert-model-parallel-size", "expert-tensor-parallel-size"
_FIRST, _LAST = "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"
_PER_STAGE, _STAGES = "num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank"
SEQUENCE = 4096
"""Tokens that slime sets as Megatron's seq_length where none is given (megatron_utils/arguments.py)."""


@probe(
    "launch.parallel_layout",
    needs="launch|log",
    answers=("valid", "invalid"),
    en="Do the parallel sizes divide the model and the trainer's GPUs?",
    zh="并行度能整除模型和训练侧的 GPU 数吗？",
)
def parallel_layout(evidence: Evidence, report: Progress) -> Finding:
    """Check every division of every job."""
    jobs = jobs_of(evidence)
    if not jobs:
        return no_command()
    trains = tuple(settings for settings in jobs if runs_megatron(settings))
    if not trains:
        return not_applicable(
            "Megatron is not started (--debug-rollout-only, or another train backend).",
            "没有启动 Megatron（--debug-rollout-only，或其他训练后端）。",
        )
    return judge(RULES, evidence, report, trains, ("valid", "invalid"), ("the parallel sizes", "并行度"))


def runs_megatron(settings: Settings) -> bool:
    """Return whether the job starts Megatron trainers, as far as is known."""
    backend = given(settings, "train-backend")
    return switched(settings, "debug-rollout-only")[0] is not True and (
        backend is None or backend.value in (None, "megatron")
    )


def world(asked: Asked) -> float:
    """Return the trainer's GPU count."""
    return asked.number("actor-num-nodes", 1) * asked.number("actor-num-gpus-per-node", 8)


def model_size(asked: Asked) -> float:
    """Return TP x PP x CP, at least 1."""
    return max(asked.number(_TP, 1) * asked.number(_PP, 1) * asked.number(_CP, 1), 1)


def _cannot(en: str, zh: str, whole: float, part: float, where: tuple[str, str]) -> Broken | None:
    if part <= 0 or whole % part == 0:
        return None
    return Broken(
        f"{en} {whole:g} cannot be divided by {part:g}: {where[0]}.",
        f"{zh} {whole:g} 不能被 {part:g} 整除：{where[1]}。",
    )


_AT_START = ("Megatron stops at start with an AssertionError", "Megatron 启动时以 AssertionError 退出")
_IN_TRAINER = ("every trainer stops while it sets up", "每个训练进程在初始化时退出")


def _gpus(asked: Asked) -> Broken | None:
    return _cannot("The trainer's GPU count", "训练 GPU 数", world(asked), model_size(asked), _AT_START)


def _expert_gpus(asked: Asked) -> Broken | None:
    tensor = asked.maybe(_ETP)
    size = (asked.number(_TP, 1) if tensor is None else tensor) * asked.number(_EP, 1) * asked.number(_PP, 1)
    return _cannot(
        "For ETP x EP x PP: the trainer's GPU count",
        "就 ETP x EP x PP 而言，训练 GPU 数",
        world(asked),
        size,
        _IN_TRAINER,
    )


def _experts(asked: Asked) -> Broken | None:
    size = asked.number(_EP, 1)
    if size <= 1:
        return None
    experts = asked.maybe("num-experts", of_model=True)
    if not experts:
        return Broken(
            f"--expert-model-parallel-size is {size:g}, but the model has no experts: {_AT_START[0]}.",
            f"--expert-model-parallel-size 为 {size:g}，但模型没有 expert：{_AT_START[1]}。",
        )
    return _cannot("The number of experts", "expert 数", experts, size, _AT_START)


def _heads(asked: Asked) -> Broken | None:
    size = asked.number(_TP, 1)
    heads = asked.maybe("num-attention-heads", of_model=True) if size > 1 else None
    return _cannot("The number of attention heads", "注意力头数", heads, size, _IN_TRAINER) if heads else None


def _groups(asked: Asked) -> tuple[float, float]:
    """Return (query groups, TP); equal when no rule binds them."""
    size = asked.number(_TP, 1)
    if size <= 1 or not asked.on("group-query-attention", of_model=True):
        return size, size
    return asked.number("num-query-groups", 1, of_model=True), size


def _group_division(asked: Asked) -> Broken | None:
    groups, size = _groups(asked)
    if groups <= 0 or size <= 0 or groups % size == 0 or size % groups == 0:
        return None
    return Broken(
        f"{groups:g} query groups and TP {size:g} do not divide each other: {_IN_TRAINER[0]}.",
        f"{groups:g} 个 query group 与 TP {size:g} 互不整除：{_IN_TRAINER[1]}。",
    )


def _group_multiple(asked: Asked) -> Broken | None:
    groups, size = _groups(asked)
    return _cannot("The number of query groups", "query group 数", groups, size, _IN_TRAINER)


def _layers(asked: Asked) -> Broken | None:
    stages = asked.number(_PP, 1)
    if stages <= 1 or asked.given("pipeline-model-parallel-layout"):
        return None
    first, last = asked.maybe(_FIRST), asked.maybe(_LAST)
    layers = asked.maybe("num-layers", of_model=True)
    if layers is None:
        return None
    if first is None and last is None:
        layers += asked.on("account-for-embedding-in-pipeline-split") + asked.on("account-for-loss-in-pipeline-split")
        return _cannot("The number of layers", "层数", layers, stages, _AT_START)
    rest = layers - (first or 0) - (last or 0)
    middle = stages - (first is not None) - (last is not None)
    if middle <= 0:
        return (
            None
            if rest == 0
            else Broken(
                f"First and last stage hold {layers - rest:g} of {layers:g} layers, and no stage is left for the rest.",
                f"首尾 stage 共 {layers - rest:g} 层，而模型有 {layers:g} 层，没有 stage 放其余的层。",
                proven=False,
            )
        )
    return _cannot(
        "The number of layers between first and last stage", "首尾 stage 之间的层数", rest, middle, _IN_TRAINER
    )


def _ends(asked: Asked) -> Broken | None:
    if not (asked.given(_FIRST) or asked.given(_LAST)) or asked.number(_PP, 1) != 1:
        return None
    return Broken(
        f"--{_FIRST} or --{_LAST} is given with a pipeline of one stage: slime stops with an AssertionError.",
        f"流水线只有一个 stage，却给了 --{_FIRST} 或 --{_LAST}：slime 以 AssertionError 退出。",
    )


def _virtual(asked: Asked) -> Broken | None:
    per_stage, chunks = asked.maybe(_PER_STAGE), asked.maybe(_STAGES)
    if per_stage is None and chunks is None:
        return None
    if per_stage is not None and chunks is not None:
        return Broken(
            f"--{_PER_STAGE} and --{_STAGES} exclude each other: {_AT_START[0]}.",
            f"--{_PER_STAGE} 与 --{_STAGES} 互斥：{_AT_START[1]}。",
        )
    stages, layers = asked.number(_PP, 1), asked.maybe("num-layers", of_model=True)
    if asked.given(_FIRST) or asked.given(_LAST) or layers is None or stages <= 0:
        return None
    layers += asked.on("account-for-embedding-in-pipeline-split") + asked.on("account-for-loss-in-pipeline-split")
    held, part = layers / stages, per_stage or chunks or 1
    if held % part:
        return (
            None
            if layers % stages
            else _cannot("The number of layers of a stage", "每个 stage 的层数", held, part, _AT_START)
        )
    count = chunks if chunks is not None else held / (per_stage or 1)
    least = 2 if asked.on("no-overlap-p2p-communication") else 1
    if count <= 1 or stages > least:
        return None
    return Broken(
        f"{count:g} virtual stages need a pipeline of more than {least} stage(s), and it has {stages:g}: "
        f"{_AT_START[0]}.",
        f"{count:g} 个虚拟 stage 要求流水线多于 {least} 个 stage，实际为 {stages:g}：{_AT_START[1]}。",
    )


def _sequence(asked: Asked) -> Broken | None:
    size = asked.number(_CP, 1)
    if size <= 1:
        return None
    return _cannot("--seq-length", "--seq-length", asked.number("seq-length", SEQUENCE), 2 * size, _AT_START)


def _moe_sequence_parallel(asked: Asked) -> Broken | None:
    if asked.number(_TP, 1) <= 1 or not asked.maybe("num-experts", of_model=True) or asked.on("sequence-parallel"):
        return None
    return Broken(
        "An MoE model with TP > 1 lacks --sequence-parallel: Megatron raises ValueError in the first training step.",
        "MoE 模型 TP > 1 却没有 --sequence-parallel：Megatron 在第一个训练 step 抛出 ValueError。",
    )


def _head_size(asked: Asked) -> Broken | None:
    if asked.maybe("kv-channels", of_model=True) is not None:
        return None
    hidden, heads = asked.maybe("hidden-size", of_model=True), asked.maybe("num-attention-heads", of_model=True)
    return _cannot("hidden_size", "hidden_size", hidden, heads, _AT_START) if hidden and heads else None


_ARGUMENTS, _CONFIG = "Megatron training/arguments.py", "Megatron transformer_config.py"
RULES = (
    Rule("GPUs by TP x PP x CP", _ARGUMENTS, _gpus),
    Rule("GPUs by ETP x EP x PP", "Megatron parallel_state.py", _expert_gpus),
    Rule("layers by PP", _ARGUMENTS, _layers),
    Rule("first and last stage need PP > 1", "slime arguments.py", _ends, since=(0, 2, 2)),
    Rule("layers of a stage by virtual stages", _ARGUMENTS, _virtual),
    Rule("heads by TP", _CONFIG, _heads),
    Rule("query groups and TP", _CONFIG, _group_division),
    Rule("query groups by TP", _CONFIG, _group_multiple, until=(0, 2, 4)),
    Rule("hidden_size by heads", _ARGUMENTS, _head_size),
    Rule("experts by EP", _ARGUMENTS, _experts),
    Rule("MoE with TP needs sequence parallelism", "Megatron moe_layer.py", _moe_sequence_parallel),
    Rule("sequence length by 2 x CP", _ARGUMENTS, _sequence),
)
"""In the order in which Megatron would stop by them."""

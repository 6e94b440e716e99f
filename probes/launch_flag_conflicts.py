"""Whether flags exclude each other or lack a partner, by the checks that slime and Megatron stop at.

Read in slime's utils/arguments.py (slime_validate_args) and backends/sglang_utils/arguments.py of every release from
v0.1.0, and in Megatron's validate_args and TransformerConfig at the commits those releases pin. Debug flags have a
probe of their own (launch.dump_flags); batch sizes too (launch.batch).
"""

from __future__ import annotations

from collections.abc import Callable

from probes.launch_parallel_layout import runs_megatron
from probes.launch_rules import Asked, Broken, Rule, Untold, jobs_of, judge
from probes.settings import no_command
from runbook.evidence import Evidence
from runbook.finding import Finding
from runbook.probe import Progress, probe

Check = Callable[[Asked], "Broken | None"]
_OF_MODEL = ("mtp-num-layers",)
"""Partners that slime's model scripts give."""


@probe(
    "launch.flag_conflicts",
    needs="launch|log",
    answers=("none", "conflict"),
    en="Do flags exclude each other, or lack a partner that they need?",
    zh="有没有互斥的参数，或缺少必需的搭配参数？",
)
def flag_conflicts(evidence: Evidence, report: Progress) -> Finding:
    """Check every job."""
    jobs = jobs_of(evidence)
    if not jobs:
        return no_command()
    rules = RULES if all(runs_megatron(one) for one in jobs) else tuple(one for one in RULES if one not in MEGATRON)
    return judge(
        rules, evidence, report, jobs, ("none", "conflict"), ("flags that exclude or need each other", "参数搭配")
    )


def _stops(en: str, zh: str, error: str = "an AssertionError") -> Broken:
    return Broken(f"{en}: slime stops with {error}.", f"{zh}：slime 以 {error.rsplit(maxsplit=1)[-1]} 退出。")


def _needs(flag: str, partner: str, error: str = "an AssertionError") -> Check:
    """Return the check that a flag is not given without another."""

    def check(asked: Asked) -> Broken | None:
        if not asked.given(flag) or asked.given(partner, of_model=partner in _OF_MODEL):
            return None
        return _stops(f"--{flag} needs --{partner}", f"--{flag} 需要 --{partner}", error)

    return check


def _excludes(flag: str, other: str, error: str = "an AssertionError") -> Check:
    """Return the check that two flags are not given together."""

    def check(asked: Asked) -> Broken | None:
        if not asked.given(flag) or not asked.given(other):
            return None
        return _stops(f"--{flag} excludes --{other}", f"--{flag} 与 --{other} 互斥", error)

    return check


def _kl(asked: Asked) -> Broken | None:
    coefficient, loss = asked.number("kl-coef", 0), asked.number("kl-loss-coef", 0)
    if not coefficient or not loss:
        return None
    return _stops(
        f"--kl-coef {coefficient:g} and --kl-loss-coef {loss:g} are both set",
        f"--kl-coef {coefficient:g} 与 --kl-loss-coef {loss:g} 同时非零",
    )


def _reference(asked: Asked) -> Broken | None:
    if not asked.number("kl-coef", 0) and not asked.on("use-kl-loss"):
        return None
    if asked.given("ref-load"):
        return None
    return _stops(
        "A KL term (--kl-coef or --use-kl-loss) needs --ref-load",
        "KL 项（--kl-coef 或 --use-kl-loss）需要 --ref-load",
        "a TypeError",
    )


def _normalised(asked: Asked) -> Broken | None:
    estimator = asked.text("advantage-estimator", "grpo")
    if estimator not in ("reinforce_plus_plus", "reinforce_plus_plus_baseline") or asked.on("normalize-advantages"):
        return None
    return _stops(
        f"--advantage-estimator {estimator} needs --normalize-advantages",
        f"--advantage-estimator {estimator} 需要 --normalize-advantages",
    )


def _rollouts(asked: Asked) -> Broken | None:
    if asked.given("num-rollout"):
        return None
    if not asked.given("num-epoch"):
        return _stops("Neither --num-rollout nor --num-epoch is given", "--num-rollout 与 --num-epoch 都没有给")
    if asked.on("disable-rollout-global-dataset"):
        return _stops(
            "--num-epoch cannot be counted with --disable-rollout-global-dataset",
            "--disable-rollout-global-dataset 下无法按 --num-epoch 计数",
        )
    return None


def _evaluation(asked: Asked) -> Broken | None:
    if not asked.given("eval-interval") or asked.given("eval-prompt-data") or asked.given("eval-config"):
        return None
    return _stops("--eval-interval needs --eval-prompt-data", "--eval-interval 需要 --eval-prompt-data")


def _distillation(asked: Asked) -> Broken | None:
    kind = asked.text("opd-type") if asked.on("use-opd") else None
    teacher = asked.given("opd-teacher-load")
    if not asked.on("use-opd"):
        return (
            _stops("--opd-teacher-load needs --use-opd", "--opd-teacher-load 需要 --use-opd", "a ValueError")
            if teacher
            else None
        )
    if kind is None:
        return _stops("--use-opd needs --opd-type", "--use-opd 需要 --opd-type", "a ValueError")
    if (kind == "megatron") is teacher:
        return None
    return _stops(
        f"--opd-type {kind} {'needs' if kind == 'megatron' else 'excludes'} --opd-teacher-load",
        f"--opd-type {kind} {'需要' if kind == 'megatron' else '不能同时给'} --opd-teacher-load",
        "a ValueError",
    )


def _disk(asked: Asked) -> Broken | None:
    if asked.text("update-weight-transport", "nccl") != "disk" or asked.given("update-weight-disk-dir"):
        return None
    return _stops(
        "--update-weight-transport disk needs --update-weight-disk-dir",
        "--update-weight-transport disk 需要 --update-weight-disk-dir",
        "a ValueError",
    )


def _delta(asked: Asked) -> Broken | None:
    if asked.text("update-weight-mode", "full") != "delta":
        return None
    if asked.text("update-weight-transport", "nccl") != "disk":
        wrong = "needs --update-weight-transport disk", "需要 --update-weight-transport disk"
    elif asked.on("colocate"):
        wrong = "excludes --colocate", "不能与 --colocate 同用"
    elif not asked.given("update-weight-local-checkpoint-dir"):
        wrong = "needs --update-weight-local-checkpoint-dir", "需要 --update-weight-local-checkpoint-dir"
    else:
        return None
    return _stops(f"--update-weight-mode delta {wrong[0]}", f"--update-weight-mode delta {wrong[1]}", "a ValueError")


def _released(asked: Asked) -> Broken | None:
    if not asked.on("release-train"):
        return None
    if asked.text("advantage-estimator", "grpo") == "ppo":
        wrong = "does not support a critic (--advantage-estimator ppo)", "不支持 critic（--advantage-estimator ppo）"
    elif asked.on("keep-old-actor"):
        wrong = "excludes --keep-old-actor", "不能与 --keep-old-actor 同用"
    elif not asked.given("save"):
        wrong = "needs --save", "需要 --save"
    elif asked.text("update-weight-mode", "full") != "full" or asked.text("update-weight-transport", "nccl") != "disk":
        wrong = "needs full weight updates by disk", "需要 full 模式、disk 传输的权重更新"
    else:
        return None
    return _stops(f"--release-train {wrong[0]}", f"--release-train {wrong[1]}", "a ValueError")


def _padded_batches(asked: Asked) -> Broken | None:
    if asked.text("qkv-format", "thd") != "bshd" or not asked.on("use-dynamic-batch-size"):
        return None
    return _stops(
        "--qkv-format bshd excludes --use-dynamic-batch-size", "--qkv-format bshd 与 --use-dynamic-batch-size 互斥"
    )


def _greedy(asked: Asked) -> Broken | None:
    if asked.number("rollout-temperature", 1) > 0:
        return None
    return _stops("--rollout-temperature must be above 0", "--rollout-temperature 必须大于 0", "a ValueError")


def _attention_ranks(asked: Asked) -> Broken | None:
    sizes = [asked.number(flag, 1) for flag in ("sglang-dp-size", "sglang-data-parallel-size")]
    if max(sizes) <= 1 or asked.on("sglang-enable-dp-attention"):
        return None
    return _stops(
        "--sglang-dp-size above 1 needs --sglang-enable-dp-attention",
        "--sglang-dp-size 大于 1 需要 --sglang-enable-dp-attention",
    )


def _engine_stages(asked: Asked) -> Broken | None:
    stages = max(asked.number(flag, 1) for flag in ("sglang-pp-size", "sglang-pipeline-parallel-size"))
    engine = asked.number("rollout-num-gpus-per-engine", 1)
    if stages <= 1 or engine % stages == 0:
        return None
    return _stops(
        f"--rollout-num-gpus-per-engine {engine:g} cannot be divided by --sglang-pp-size {stages:g}",
        f"--rollout-num-gpus-per-engine {engine:g} 不能被 --sglang-pp-size {stages:g} 整除",
    )


def _recompute(asked: Asked) -> Broken | None:
    kind = asked.text("recompute-granularity")
    method, layers = asked.given("recompute-method"), asked.given("recompute-num-layers")
    if kind == "full" and not (method and layers):
        wrong = (
            "needs --recompute-method and --recompute-num-layers",
            "需要 --recompute-method 与 --recompute-num-layers",
        )
    elif kind == "selective" and (method or layers):
        wrong = (
            "excludes --recompute-method and --recompute-num-layers",
            "不能同时给 --recompute-method 或 --recompute-num-layers",
        )
    else:
        return None
    return Broken(
        f"--recompute-granularity {kind} {wrong[0]}: Megatron stops at start.",
        f"--recompute-granularity {kind} {wrong[1]}：Megatron 启动时退出。",
    )


def _saved(asked: Asked) -> Broken | None:
    if not asked.given("save") or asked.given("save-interval") or asked.on("release-train"):
        return None
    return Broken(
        "--save needs --save-interval: Megatron stops at start with an AssertionError.",
        "--save 需要 --save-interval：Megatron 启动时以 AssertionError 退出。",
    )


def _offloaded_optimizer(asked: Asked) -> Broken | None:
    if not asked.on("optimizer-cpu-offload") or asked.on("use-precision-aware-optimizer"):
        return None
    return Broken(
        "--optimizer-cpu-offload needs --use-precision-aware-optimizer: Megatron stops at start with an "
        "AssertionError.",
        "--optimizer-cpu-offload 需要 --use-precision-aware-optimizer：Megatron 启动时以 AssertionError 退出。",
    )


def _dispatcher(asked: Asked) -> Broken | None:
    if not asked.on("moe-enable-deepep") or (
        asked.text("moe-token-dispatcher-type", "allgather", of_model=True) == "flex"
    ):
        return None
    return Broken(
        "--moe-enable-deepep needs --moe-token-dispatcher-type flex: every trainer stops while it sets up.",
        "--moe-enable-deepep 需要 --moe-token-dispatcher-type flex：每个训练进程在初始化时退出。",
    )


def _connections(asked: Asked) -> Broken | None:
    settings, name = asked.settings, "CUDA_DEVICE_MAX_CONNECTIONS"
    sizes = [asked.number(f"{kind}-parallel-size", 1) for kind in ("tensor-model", "context")]
    if max(sizes) <= 1 or settings.job is None or settings.launch is None or settings.table is not None:
        return None
    one = settings.job.runtime_env.get(name) or settings.job.env.get(name) or settings.launch.exports.get(name)
    if settings.launch.kind == "python" and one is None:
        return None  # slime's execute_train sets it
    if one is None or one.value is None or not one.sure:
        raise Untold(name)
    if one.value == "1":
        return None
    return Broken(
        f"{name} is {one.value}, and TP or CP above 1 needs 1: on GPUs before Blackwell Megatron stops at start.",
        f"{name} 为 {one.value}，而 TP 或 CP 大于 1 要求为 1：Blackwell 之前的 GPU 上 Megatron 启动时退出。",
        proven=False,
    )


_SLIME, _SGLANG = "slime utils/arguments.py", "slime sglang_utils/arguments.py"
_ARGUMENTS, _CONFIG = "Megatron training/arguments.py", "Megatron transformer_config.py"
MEGATRON = (
    Rule("recompute granularity", _CONFIG, _recompute),
    Rule("save folder and interval", _ARGUMENTS, _saved),
    Rule("optimizer offload", _ARGUMENTS, _offloaded_optimizer, since=(0, 2, 0)),
    Rule("DeepEP and its dispatcher", _CONFIG, _dispatcher),
    Rule("CUDA_DEVICE_MAX_CONNECTIONS with TP or CP", _ARGUMENTS, _connections),
)
RULES = (
    Rule("kl-coef and kl-loss-coef", _SLIME, _kl),
    Rule("KL term and reference", _SLIME, _reference),
    Rule("reinforce++ and normalisation", _SLIME, _normalised),
    Rule("rollout log-probs and TIS", _SLIME, _excludes("use-rollout-logprobs", "use-tis"), since=(0, 2, 0)),
    Rule(
        "mismatch metrics and TIS function",
        _SLIME,
        _needs("get-mismatch-metrics", "custom-tis-function-path"),
        since=(0, 2, 0),
    ),
    Rule("dynamic batch and token budget", _SLIME, _needs("use-dynamic-batch-size", "max-tokens-per-gpu")),
    Rule("balance by flops", _SLIME, _needs("balance-by-flops", "use-dynamic-batch-size"), since=(0, 3, 1)),
    Rule("rollouts are counted", _SLIME, _rollouts),
    Rule("evaluation and its data", _SLIME, _evaluation),
    Rule("save interval and folder", _SLIME, _needs("save-interval", "save"), since=(0, 2, 0)),
    Rule("MTP training and layers", _SLIME, _needs("enable-mtp-training", "mtp-num-layers"), since=(0, 2, 0)),
    Rule("on-policy distillation", _SLIME, _distillation, since=(0, 2, 3)),
    Rule(
        "trained or frozen parameters",
        _SLIME,
        _excludes("only-train-params-name-list", "freeze-params-name-list", "a ValueError"),
        since=(0, 2, 3),
    ),
    Rule("bshd and dynamic batch", _SLIME, _padded_batches, since=(0, 2, 2), until=(0, 3, 0)),
    Rule("weights by disk", _SLIME, _disk, since=(0, 3, 0)),
    Rule("delta weight updates", _SLIME, _delta, since=(0, 3, 0)),
    Rule("released trainers", _SLIME, _released, since=(0, 3, 1)),
    Rule("temperature", _SLIME, _greedy, since=(0, 3, 2)),
    Rule("engine DP and DP attention", _SGLANG, _attention_ranks),
    Rule("engine GPUs by its stages", _SGLANG, _engine_stages, since=(0, 2, 3)),
    Rule(
        "engine config and prefill servers",
        _SGLANG,
        _excludes("sglang-config", "prefill-num-servers"),
        since=(0, 2, 3),
    ),
    *MEGATRON,
)
"""In the order in which a start would stop by them."""

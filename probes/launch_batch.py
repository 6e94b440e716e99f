"""Whether the batch sizes add up, before a job is started to find out.

slime: global_batch_size = rollout_batch_size x n_samples_per_prompt / num_steps_per_rollout (utils/arguments.py; both
may be given, and must agree). Every trainer refuses a global batch that micro batch x data-parallel size does not
divide (Megatron core/num_microbatches_calculator.py, called by slime's initialize.py in every release), also where
--use-dynamic-batch-size packs by tokens, for then --micro-batch-size is still 1. Data-parallel size: the trainer's GPUs
by TP x PP x CP. Up to v0.2.1 a rollout had to be a multiple of the global batch; later the rest is dropped.
"""

from __future__ import annotations

from probes.launch_parallel_layout import model_size, runs_megatron, world
from probes.launch_rules import Asked, Broken, Rule, jobs_of, judge
from probes.settings import no_command
from runbook.evidence import Evidence
from runbook.finding import Finding, not_applicable
from runbook.probe import Progress, probe


@probe(
    "launch.batch",
    needs="launch|log",
    answers=("consistent", "inconsistent"),
    en="Do the batch sizes agree with each other and with the data-parallel size?",
    zh="各个 batch size 彼此一致，并能被数据并行度整除吗？",
)
def batch(evidence: Evidence, report: Progress) -> Finding:
    """Check the arithmetic of every job."""
    jobs = jobs_of(evidence)
    if not jobs:
        return no_command()
    trains = tuple(settings for settings in jobs if runs_megatron(settings))
    if not trains:
        return not_applicable("Nothing is trained (--debug-rollout-only).", "不进行训练（--debug-rollout-only）。")
    return judge(RULES, evidence, report, trains, ("consistent", "inconsistent"), ("the batch sizes", "batch size"))


def _samples(asked: Asked) -> float:
    return asked.number("rollout-batch-size", 0) * asked.number("n-samples-per-prompt", 1)


def _global(asked: Asked) -> float | None:
    """Return samples of one optimizer step, None when it is left to Megatron."""
    steps = asked.maybe("num-steps-per-rollout")
    return _samples(asked) // steps if steps else asked.maybe("global-batch-size")


def _steps(asked: Asked) -> Broken | None:
    steps, whole = asked.maybe("num-steps-per-rollout"), asked.maybe("global-batch-size")
    if not steps or whole is None or asked.settings.table is not None:
        return None
    expected = _samples(asked) // steps
    if whole == expected:
        return None
    return Broken(
        f"--global-batch-size is {whole:g}, but rollout_batch_size x n_samples_per_prompt // num_steps_per_rollout is "
        f"{expected:g}: slime stops with an AssertionError.",
        f"--global-batch-size 为 {whole:g}，而 rollout_batch_size x n_samples_per_prompt // num_steps_per_rollout 为 "
        f"{expected:g}：slime 以 AssertionError 退出。",
    )


def _multiple(asked: Asked) -> Broken | None:
    samples, whole = _samples(asked), _global(asked)
    if not whole or samples % whole == 0:
        return None
    return Broken(
        f"One rollout has {samples:g} samples, no multiple of the global batch {whole:g}: slime stops with an "
        "AssertionError.",
        f"一次 rollout 有 {samples:g} 个样本，不是 global batch {whole:g} 的整数倍：slime 以 AssertionError 退出。",
    )


def _enough(asked: Asked) -> Broken | None:
    samples, whole = _samples(asked), _global(asked)
    if not whole or samples >= whole or asked.on("use-dynamic-global-batch-size"):
        return None
    own = any(asked.given(flag) for flag in ("rollout-function-path", "custom-generate-function-path"))
    return Broken(
        f"One rollout has {samples:g} samples, fewer than the global batch of {whole:g}: no step can be made.",
        f"一次 rollout 只有 {samples:g} 个样本，少于 global batch {whole:g}：凑不出一个 step。",
        proven=not own,
    )


def _division(asked: Asked) -> Broken | None:
    whole = _global(asked)
    if not whole or asked.given("rampup-batch-size") or asked.on("decrease-batch-size-if-needed"):
        return None
    data = world(asked) // model_size(asked)
    share = asked.number("micro-batch-size", 1) * data
    if share <= 0 or whole % share == 0:
        return None
    return Broken(
        f"The global batch of {whole:g} cannot be divided by micro batch x data-parallel size {share:g}: every trainer "
        "stops while it sets up.",
        f"global batch {whole:g} 不能被 micro batch x 数据并行度 {share:g} 整除：每个训练进程在初始化时退出。",
    )


def _oversampling(asked: Asked) -> Broken | None:
    over, plain = asked.maybe("over-sampling-batch-size"), asked.number("rollout-batch-size", 0)
    if over is None or over >= plain:
        return None
    return Broken(
        f"--over-sampling-batch-size {over:g} is below --rollout-batch-size {plain:g}: slime stops with an "
        "AssertionError.",
        f"--over-sampling-batch-size {over:g} 小于 --rollout-batch-size {plain:g}：slime 以 AssertionError 退出。",
    )


def _prompt_length(asked: Asked) -> Broken | None:
    whole, prompt = asked.maybe("rollout-max-context-len"), asked.maybe("rollout-max-prompt-len")
    if whole is None or prompt is None or prompt <= whole - 1:
        return None
    return Broken(
        f"--rollout-max-prompt-len {prompt:g} leaves no token of --rollout-max-context-len {whole:g} to generate: "
        "slime stops with an AssertionError.",
        f"--rollout-max-prompt-len {prompt:g} 没有给 --rollout-max-context-len {whole:g} 留下可生成的 token：slime 以 "
        "AssertionError 退出。",
    )


_SLIME = "slime utils/arguments.py"
RULES = (
    Rule("global batch by steps", _SLIME, _steps),
    Rule("rollout by global batch", _SLIME, _multiple, until=(0, 2, 1)),
    Rule("rollout holds a global batch", "slime ray/rollout.py, utils/dp_schedule.py", _enough),
    Rule("global batch by micro batch x DP", "Megatron num_microbatches_calculator.py", _division),
    Rule("oversampling", _SLIME, _oversampling),
    Rule("prompt within context", _SLIME, _prompt_length, since=(0, 2, 1)),
)

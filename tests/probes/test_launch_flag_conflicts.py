"""Flags that exclude each other or lack a partner, one sample for each rule that breaks and one that holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_flag_conflicts import MEGATRON, RULES, flag_conflicts
from tests.helpers import evidence_of
from tests.probes.asking import ask_of, rollout, step, word
from tests.probes.scripts import RAY_START, ask_script, cited, script, write

MAX = ',\\n    \\"CUDA_DEVICE_MAX_CONNECTIONS\\": \\"{}\\"'
ROLLOUTS = "--num-rollout 100"
NEW = "slime==0.4.0\n"

BROKEN = {
    "kl-coef and kl-loss-coef": ("--kl-coef 0.1", "--kl-loss-coef 0.01"),
    "reinforce++ and normalisation": ("--advantage-estimator reinforce_plus_plus",),
    "rollout log-probs and TIS": ("--use-rollout-logprobs", "--use-tis"),
    "mismatch metrics and TIS function": ("--get-mismatch-metrics",),
    "dynamic batch and token budget": ("--use-dynamic-batch-size",),
    "balance by flops": ("--balance-by-flops",),
    "evaluation and its data": ("--eval-interval 20",),
    "save interval and folder": ("--save-interval 20",),
    "on-policy distillation": ("--use-opd",),
    "trained or frozen parameters": ("--only-train-params-name-list a", "--freeze-params-name-list b"),
    "weights by disk": ("--update-weight-transport disk",),
    "delta weight updates": (
        "--update-weight-mode delta",
        "--update-weight-transport disk",
        "--update-weight-disk-dir /d",
        "--colocate",
    ),
    "released trainers": ("--release-train", "--save /s"),
    "temperature": ("--rollout-temperature 0",),
    "engine DP and DP attention": ("--sglang-dp-size 2",),
    "engine GPUs by its stages": ("--rollout-num-gpus-per-engine 3", "--sglang-pp-size 2"),
    "engine config and prefill servers": ("--sglang-config a.yaml", "--prefill-num-servers 1"),
    "recompute granularity": ("--recompute-granularity full",),
    "save folder and interval": ("--save /s",),
    "optimizer offload": ("--optimizer-cpu-offload",),
}
"""By name of the rule, flags that break it and, in the newest release, no other."""

HELD = (
    ("--kl-coef 0.00", "--kl-loss-coef 0.01", "--use-kl-loss"),
    ("--advantage-estimator reinforce_plus_plus", "--normalize-advantages"),
    ("--use-rollout-logprobs",),
    ("--get-mismatch-metrics", "--custom-tis-function-path a.b"),
    ("--use-dynamic-batch-size", "--max-tokens-per-gpu 4096", "--balance-by-flops"),
    ("--eval-interval 20", "--eval-prompt-data a b"),
    ("--eval-interval 20", "--eval-config e.yaml"),
    ("--save-interval 20", "--save /s"),
    ("--use-opd", "--opd-type megatron", "--opd-teacher-load /t"),
    ("--use-opd", "--opd-type sglang"),
    ("--update-weight-transport disk", "--update-weight-disk-dir /d"),
    ("--release-train", "--save /s", "--update-weight-transport disk", "--update-weight-disk-dir /d"),
    ("--sglang-dp-size 2", "--sglang-enable-dp-attention"),
    ("--rollout-num-gpus-per-engine 4", "--sglang-pp-size 2"),
    ("--recompute-granularity full", "--recompute-method uniform", "--recompute-num-layers 1"),
    ("--recompute-granularity selective",),
    ("--optimizer-cpu-offload", "--use-precision-aware-optimizer"),
)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(tmp_path: Path, name: str) -> None:
    """The finding is a problem, cites the flags and has the rule first in its table."""
    versions = write(tmp_path, "v.txt", NEW)
    finding = ask_script(flag_conflicts, tmp_path, script(ROLLOUTS, *BROKEN[name]), versions=versions)
    assert word(finding) == "problem:conflict"
    assert [row[1] for row in finding.tables[0].rows if row[0] == "BROKEN"] == [name]
    assert BROKEN[name][0].split()[0] in " ".join(cited(finding))


@pytest.mark.parametrize("flags", HELD)
def test_partners_satisfy_a_rule(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """The same flags with what they need, or without what they exclude, are silent in the newest release."""
    versions = write(tmp_path, "v.txt", NEW)
    assert word(ask_script(flag_conflicts, tmp_path, script(ROLLOUTS, *flags), versions=versions)) == "ok:none"


def test_every_rule_has_a_broken_sample() -> None:
    """No rule stands without a test of its own here or below."""
    elsewhere = {
        "KL term and reference",
        "rollouts are counted",
        "MTP training and layers",
        "bshd and dynamic batch",
        "DeepEP and its dispatcher",
        "CUDA_DEVICE_MAX_CONNECTIONS with TP or CP",
    }
    assert {rule.name for rule in RULES} == set(BROKEN) | elsewhere
    assert set(MEGATRON) <= set(RULES)


@pytest.mark.parametrize(
    ("flags", "versions", "expected"),
    [
        (("--use-rollout-logprobs", "--use-tis"), "slime==0.1.0\n", "ok:none"),
        (("--use-rollout-logprobs", "--use-tis"), "torch==2\n", "ok:none"),
        (("--rollout-temperature 0",), "slime==0.3.1\n", "ok:none"),
        (
            ("--qkv-format bshd", "--use-dynamic-batch-size", "--max-tokens-per-gpu 1"),
            "slime==0.2.4\n",
            "problem:conflict",
        ),
        (("--qkv-format bshd", "--use-dynamic-batch-size", "--max-tokens-per-gpu 1"), "slime==0.3.1\n", "ok:none"),
        (("--update-weight-transport disk",), "slime==0.2.4\n", "ok:none"),
    ],
)
def test_rules_of_some_releases(tmp_path: Path, flags: tuple[str, ...], versions: str, expected: str) -> None:
    """A rule binds only the releases that have it; where the release is unknown it is only mentioned."""
    path = write(tmp_path, "v.txt", versions)
    assert word(ask_script(flag_conflicts, tmp_path, script(ROLLOUTS, *flags), versions=path)) == expected


def test_a_kl_term_needs_a_reference(tmp_path: Path) -> None:
    """os.path.exists(None) is a TypeError; without a KL term the flag may be left out."""
    text = script(ROLLOUTS, "--use-kl-loss").replace("--ref-load /models/toy_torch_dist", "")
    assert word(ask_script(flag_conflicts, tmp_path, text)) == "problem:conflict"
    assert word(ask_script(flag_conflicts, tmp_path, text.replace("--use-kl-loss", ""))) == "ok:none"


def test_rollouts_are_counted_somehow(tmp_path: Path) -> None:
    """Neither --num-rollout nor --num-epoch, or epochs without a data set, stop slime."""
    assert word(ask_script(flag_conflicts, tmp_path, script())) == "problem:conflict"
    assert word(ask_script(flag_conflicts, tmp_path, script("--num-epoch 1"))) == "ok:none"
    broken = script("--num-epoch 1", "--disable-rollout-global-dataset")
    assert word(ask_script(flag_conflicts, tmp_path, broken)) == "problem:conflict"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--enable-mtp-training", "--num-layers 2", "--mtp-num-layers 1"), "ok:none"),
        (("--enable-mtp-training", "--num-layers 2"), "problem:conflict"),
        (("--enable-mtp-training",), "unknown"),
        (("--moe-enable-deepep", "--num-layers 2"), "problem:conflict"),
        (("--moe-enable-deepep", "--moe-token-dispatcher-type flex"), "ok:none"),
        (("--moe-enable-deepep",), "unknown"),
    ],
)
def test_partners_in_the_model_script(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """What a model script may give is only missing where that script is at hand."""
    versions = write(tmp_path, "v.txt", NEW)
    assert word(ask_script(flag_conflicts, tmp_path, script(ROLLOUTS, *flags), versions=versions)) == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (MAX.format("1"), "ok:none"),
        (MAX.format("8"), "warning:conflict"),
        ("", "unknown"),
        (MAX.format("${N}"), "unknown"),
    ],
)
def test_connections_of_tensor_parallel_jobs(tmp_path: Path, env: str, expected: str) -> None:
    """TP wants one connection on GPUs before Blackwell; what the image sets is not known."""
    text = script(ROLLOUTS, "--tensor-model-parallel-size 2", env=env)
    assert word(ask_script(flag_conflicts, tmp_path, text)) == expected


def test_trainers_that_do_not_start_have_no_rules(tmp_path: Path) -> None:
    """With --debug-rollout-only Megatron's checks are not made, and slime's are."""
    assert (
        word(ask_script(flag_conflicts, tmp_path, script(ROLLOUTS, "--debug-rollout-only", "--save /s"))) == "ok:none"
    )
    text = script(ROLLOUTS, "--debug-rollout-only", "--use-dynamic-batch-size")
    assert word(ask_script(flag_conflicts, tmp_path, text)) == "problem:conflict"


@pytest.mark.parametrize("text", ["", "\x00\x1b[2J", RAY_START, "python3 train.py --kl-coef"])
def test_strange_scripts_leave_it_open(tmp_path: Path, text: str) -> None:
    """Nothing that is not a whole command proves anything."""
    assert word(ask_script(flag_conflicts, tmp_path, text)) == "unknown"


def test_a_job_that_trained_was_not_stopped(tmp_path: Path) -> None:
    """What a release would stop at its start is a warning where the log beside the script shows training steps."""
    path = tmp_path / "run.sh"
    path.write_text(script("--kl-coef 0.1", "--kl-loss-coef 0.01", ROLLOUTS))
    alone = ask_of(flag_conflicts, evidence_of(("launch", path)))
    log = tmp_path / "job.log"
    log.write_text("".join(f"{rollout(number, raw_reward=0.5)}\n{step(number, loss=0.1)}\n" for number in range(3)))
    beside = ask_of(flag_conflicts, evidence_of(("launch", path), ("log", log)))
    assert word(alone) == "problem:conflict"
    assert word(beside) == "warning:conflict"
    assert beside.summary.en.endswith("The log shows training steps, so the job that ran was not stopped by it.")

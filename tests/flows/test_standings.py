"""Tests of what the shipped flows conclude from given findings: what must be confirmed, and above all what must not.

The findings are made up (`made_up`), the flows and the triage are the real ones.
"""

from __future__ import annotations

import pytest

from tests.flows.made_up import FLOWS, HEALTHY, HEALTHY_LAUNCH, HEALTHY_LOG, confirmed, report


def test_a_healthy_run_ends_clear() -> None:
    """With everything at hand and healthy nothing is confirmed and every flow ends clear."""
    whole = report(HEALTHY)
    assert [cause.cause for cause in whole.confirmed] == []
    assert {flow for flow, _ in whole.clear} == set(FLOWS)


def test_saved_rollouts_alone_end_clear() -> None:
    """A healthy run that saves its rollouts ends clear without a train dump: the metrics say that the halves agree."""
    said = {name: word for name, word in HEALTHY.items() if not name.startswith("dump.")}
    whole = report({**said, "launch.dump_flags": "fine", "dump.readable": "readable"})
    assert ("separate", "halves-well") in whole.clear


def test_a_flow_whose_evidence_is_not_at_hand_does_not_end_clear() -> None:
    """Without a driver nothing is said of the debugger, and without tensor content nothing of the checkpoint."""
    said = {name: word for name, word in HEALTHY.items() if name not in ("ray_debugger.driver", "hf.content_sample")}
    assert set(FLOWS) - {flow for flow, _ in report(said).clear} == {"ray-debugger", "int4"}


@pytest.mark.parametrize("said", [HEALTHY_LOG, HEALTHY_LAUNCH, {}], ids=["log", "launch", "nothing"])
def test_half_of_a_healthy_run_confirms_nothing(said: dict[str, str]) -> None:
    """Missing evidence is not a fault."""
    assert confirmed(said) == []


PROVEN = {
    "random-weights": ({"megatron.load_log": "random-init!"}, "checkpoint-not-loaded"),
    "no-tracker": ({"megatron.checkpoint_dir": "no-tracker!"}, "checkpoint-not-loaded"),
    "absent-iteration": ({"megatron.checkpoint_dir": "incomplete!"}, "checkpoint-incomplete"),
    "skipped-keys": ({"megatron.load_log": "partial!"}, "checkpoint-incomplete"),
    "lost-resume": ({"launch.load_fallback": "fell-back!"}, "checkpoint-not-loaded"),
    "model-args": ({"launch.model_args": "mismatch!"}, "model-args-mismatch"),
    "other-checkpoint": ({"megatron.names": "differs!"}, "model-args-mismatch"),
    "lost-parameters": ({"megatron.names": "missing!"}, "checkpoint-incomplete"),
    "refused-args": ({"megatron.args_in_log": "mismatch!"}, "model-args-mismatch"),
    "update-failed": ({"engine.in_log": "update-failed!"}, "weight-update-failed"),
    "gap": ({"metrics.logprob_gap": "large!"}, "train-rollout-logprob-gap"),
    "gap-of-dumps": ({"dump.logprob_gap": "large!", "dump.join": "everywhere!"}, "train-rollout-logprob-gap"),
    "nan": ({"metrics.nan": "nan!"}, "nan-loss-or-grad"),
    "grad-norm": ({"metrics.grad_norm": "large!", "metrics.grad_size": "impossible!"}, "grad-norm-abnormal"),
    "grad-norm-of-moe": (
        {"metrics.grad_norm": "large!", "metrics.grad_size": "impossible!", "launch.moe_permute_fusion": "missing?"},
        "grad-norm-abnormal",
    ),
    "oom-train": ({"memory.oom_in_log": "train-step!"}, "oom-train-step"),
    "oom-switch": ({"memory.oom_in_log": "colocate-switch!"}, "oom-colocate-switch"),
    "oom-rollout": ({"memory.oom_in_log": "rollout!"}, "oom-rollout"),
    "oom-host": ({"memory.oom_in_log": "host!"}, "oom-host-memory"),
    "pending": ({"ray.in_log": "pending!"}, "ray-placement-pending"),
    "trainer-died": ({"ray.in_log": "actor-died!"}, "trainer-died"),
    "engine-died": ({"ray.in_log": "engine-died!"}, "engine-unreachable"),
    "no-workers": ({"engine.in_log": "no-workers!"}, "router-no-workers"),
    "proxy": ({"engine.in_log": "forbidden!"}, "http-proxy-interference"),
    "gpu-count": ({"launch.gpu_count": "mismatch!"}, "gpu-count-mismatch"),
    "layout": ({"launch.parallel_layout": "invalid!"}, "parallel-layout-invalid"),
    "reward": ({"metrics.reward": "all-zero!"}, "reward-degenerate"),
    "template": ({"launch.dump_flags": "no-template!"}, "debug-dump-template"),
    "conflict": ({"launch.dump_flags": "conflict!"}, "debug-flags-conflict"),
    "sft": ({"launch.dump_flags": "sft-without-debug-train-only!"}, "debug-flags-conflict"),
    "zero-router": ({"hf.content_sample": "zero!"}, "zero-weights"),
    "nan-weight": ({"hf.content_sample": "nonfinite!"}, "nonfinite-weights"),
    "core-worker": ({"ray_debugger.no_core_worker": "no-core-worker!"}, "ray-debugger-core-worker"),
    "breakpoint": ({"ray_debugger.driver": "breakpoint-without-init!"}, "ray-debugger-core-worker"),
    "misspelt": ({"ray_debugger.env": "misspelt!"}, "ray-debugger-not-enabled"),
    "left-behind": ({"ray_debugger.driver": "left-behind!"}, "ray-debugger-left-behind"),
    "device-assert": ({"cuda.ima_in_log": "device-assert!"}, "device-side-assert"),
    "lost-shard": ({"hf.shards": "missing!"}, "shard-missing"),
    "cut-shard": ({"hf.shards": "corrupt!"}, "shard-corrupt"),
    "poor-index": ({"hf.shards": "index-incomplete!"}, "index-incomplete"),
    "poor-layer": ({"hf.expected_names": "layer-keys-missing!"}, "layer-keys-missing"),
    "foreign-config": ({"hf.expected_names": "wrong-shape!"}, "config-not-of-weights"),
    "router": ({"quant.kind": "compressed-tensors", "quant.router": "not-ignored!"}, "quant-router-not-ignored"),
    "embedding": (
        {"quant.kind": "compressed-tensors", "quant.nonlinear": "not-covered!"},
        "quant-nonlinear-not-ignored",
    ),
    "quant-config": ({"quant.kind": "fp8", "quant.config": "invalid!"}, "quant-config-invalid"),
    "launch-failure": ({"cuda.ima_in_log": "launch-failure!"}, "kernel-launch-failure"),
    "no-routing": ({"routing_replay.in_log": "missing!"}, "routing-replay-missing"),
    "other-routing": ({"routing_replay.in_log": "misfit!"}, "routing-replay-missing"),
    "compile-cache": ({"inductor_cache.in_log": "broken!"}, "inductor-cache-race"),
    "nccl": ({"nccl.in_log": "error!"}, "nccl-failure"),
    "address": ({"port.in_log": "taken!"}, "port-conflict"),
    "converter": ({"converter.in_log": "unsupported!"}, "unsupported-model"),
    "nccl-timeout": ({"nccl.in_log": "timeout!"}, "nccl-failure"),
    "debug-mode": ({"launch.dump_flags": "fine", "debug_mode.in_log": "broken!"}, "debug-mode-bug"),
    "hangs-in-step": ({"hang.phase": "train-step!"}, "hang-train-step"),
    "hangs-in-update": ({"hang.phase": "weight-update!"}, "hang-weight-update"),
    "hangs-in-save": ({"hang.phase": "checkpoint-save!"}, "hang-checkpoint-save"),
}
"""Faults that one finding proves, and the cause each must confirm, whatever else is healthy or unknown."""

COHERENT_ONLY = {"grad-norm", "grad-norm-of-moe"}
"""What the guide asks only once the text is coherent."""

GARBLED_ONLY = {"no-tracker", "absent-iteration", "model-args", "other-checkpoint", "lost-parameters"}
"""What the guide asks only when the text is not coherent."""


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_fault_is_confirmed_when_nothing_else_is_known(name: str) -> None:
    """The finding alone confirms its cause, and only that."""
    said, cause = PROVEN[name]
    assert confirmed(said) == [cause]


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_fault_is_confirmed_beside_a_healthy_log_and_launch(name: str) -> None:
    """A log and a launch script that are healthy otherwise do not hide it."""
    said, cause = PROVEN[name]
    assert confirmed({**HEALTHY_LOG, **HEALTHY_LAUNCH, **said})[0] == cause


@pytest.mark.parametrize("name", [name for name in PROVEN if name not in GARBLED_ONLY])
def test_a_proven_fault_is_confirmed_though_the_text_is_coherent(name: str) -> None:
    """Coherent text hides no fault that the guide asks about further on, or that ends the job."""
    said, cause = PROVEN[name]
    assert confirmed({**HEALTHY, **said})[0] == cause


@pytest.mark.parametrize("name", [name for name in PROVEN if name not in COHERENT_ONLY])
def test_a_proven_fault_is_confirmed_though_the_text_is_garbled(name: str) -> None:
    """Garbled text hides no fault that explains it, or that ends the job."""
    said, cause = PROVEN[name]
    assert cause in confirmed({**HEALTHY_LOG, **HEALTHY_LAUNCH, "rollout.coherence": "garbled?", **said})


@pytest.mark.parametrize("word", ["garbled?", "empty?", "partly-garbled?"])
def test_garbled_text_alone_confirms_nothing(word: str) -> None:
    """That the text is garbled says that something is wrong and not what."""
    assert confirmed({"rollout.coherence": word}) == []
    assert confirmed({**HEALTHY, "rollout.coherence": word, "dump.engine_split": "spread"}) == []


def test_garbled_text_on_which_both_agree_is_sampling_at_most() -> None:
    """When engine and trainer agree on garbled text, no weight is blamed, and temperature stays possible."""
    whole = report({"rollout.coherence": "garbled?", "dump.logprob_gap": "agree"})
    assert [cause.cause for cause in whole.confirmed] == []
    possible = {cause.cause for cause in whole.possible}
    assert "sampling-temperature" in possible
    assert not possible & {"pp-layer-ids-wrong", "ep-expert-ids-wrong", "released-buffer", "stale-kv-cache"}


def test_one_engine_is_named_when_all_garbled_samples_are_its_own() -> None:
    """A split by engine is the one cause that partly garbled text can confirm."""
    said = {"rollout.coherence": "partly-garbled?", "dump.engine_split": "one-engine?"}
    assert confirmed(said) == ["one-engine-at-fault"]


@pytest.mark.parametrize("word", ["differ?", "far?", "differ!", "far!"])
def test_an_unequal_reference_alone_confirms_nothing(word: str) -> None:
    """Which of kernels, checkpoint and configuration makes the difference takes an experiment or a person."""
    assert confirmed({"metrics.ref_logprobs": word}) == []
    assert confirmed({**HEALTHY, "dump.ref_logprobs": word, "metrics.ref_logprobs": word}) == []


def test_kl_that_is_not_zero_at_the_first_step_is_not_explained_by_several_steps() -> None:
    """The first step is on-policy however many follow, so several steps confirm nothing there."""
    said = {**HEALTHY, "metrics.kl_first_step": "nonzero?", "launch.steps_per_rollout": "several"}
    assert confirmed(said) == []


def test_several_steps_a_rollout_are_no_fault() -> None:
    """KL that leaves zero after the first of several steps keeps the run clear."""
    said = {**HEALTHY, "metrics.kl_first_step": "off-policy", "launch.steps_per_rollout": "several"}
    whole = report(said)
    assert [cause.cause for cause in whole.confirmed] == []
    assert ("precision", "all-aligned") in whole.clear


def test_a_base_model_is_not_blamed_without_its_twin() -> None:
    """That the model is a pretrain one explains garbled text only after the instruct twin was tried."""
    assert confirmed({**HEALTHY, "rollout.coherence": "garbled?", "rollout.model_kind": "base"}) == []


def test_a_jump_of_the_gradient_is_for_a_person_to_judge() -> None:
    """One jump in an otherwise healthy run confirms nothing and does not end clear either."""
    whole = report({**HEALTHY, "metrics.grad_norm": "spike?"})
    assert [cause.cause for cause in whole.confirmed] == []
    assert "precision" not in {flow for flow, _ in whole.clear}
    assert "grad-spikes" in {each.node for each in whole.unknown}


def test_a_missing_permute_fusion_is_settled_by_an_experiment() -> None:
    """A large grad_norm without the fusion is confirmed as such; the flag is the next thing to try."""
    large = {"metrics.grad_norm": "large!", "metrics.grad_size": "impossible!"}
    whole = report({**HEALTHY, **large, "launch.moe_permute_fusion": "missing?"})
    assert [cause.cause for cause in whole.confirmed] == ["grad-norm-abnormal"]
    assert "moe-permute-fusion-missing" in {cause.cause for cause in whole.possible}
    assert "fusion-on-for-grad" in {each.node for each in whole.unknown if each.experiment}


def test_a_missing_permute_fusion_is_no_fault_while_numbers_are_good() -> None:
    """A flag alone is not blamed when KL is zero and grad_norm is small."""
    assert confirmed({**HEALTHY, "launch.moe_permute_fusion": "missing?"}) == []


def test_a_difference_that_only_an_update_would_show_is_not_confirmed() -> None:
    """A sound checkpoint that slime's updates might spoil leaves the cause possible and the experiment open."""
    said = {"quant.kind": "compressed-tensors", "quant.config": "valid", "quant.router": "no-router"}
    whole = report({**HEALTHY, **said, "quant.nonlinear": "update-differs?"})
    assert [cause.cause for cause in whole.confirmed] == []
    assert "quant-nonlinear-not-ignored" in {cause.cause for cause in whole.possible}
    assert ("int4", "update-spoils") in {(each.flow, each.node) for each in whole.unknown if each.experiment}


@pytest.mark.parametrize("lead", ["cuda-graph", "speculative", "deepep"])
def test_a_lead_of_an_asynchronous_trace_is_not_a_cause(lead: str) -> None:
    """A frame seen without launch blocking leads to the experiments; a trusted one confirms."""
    ima = {"cuda.ima_in_log": "ima!", "cuda.ima_process": "rollout!"}
    cause = {"cuda-graph": "ima-cuda-graph", "speculative": "ima-speculative-decoding", "deepep": "ima-deepep"}[lead]
    assert confirmed({**ima, "cuda.ima_frames": f"{lead}?"}) == []
    assert cause in {each.cause for each in report({**ima, "cuda.ima_frames": f"{lead}?"}).possible}
    assert confirmed({**ima, "cuda.ima_frames": f"{lead}!"}) == [cause]


def test_an_access_error_that_nothing_names_is_still_one() -> None:
    """Without any lead the access error itself is confirmed; whose it is stays open, and the experiments to be done."""
    said = {"cuda.ima_in_log": "ima!", "cuda.ima_frames": "unlocalised?"}
    whole = report({**HEALTHY_LAUNCH, **said})
    assert [cause.cause for cause in whole.confirmed] == ["ima-unlocalised"]
    assert "ima-train-side" in {cause.cause for cause in whole.possible}
    assert {"graph-off", "core-dump", "blocking-run"} <= {each.node for each in whole.unknown if each.experiment}


def test_the_named_kernel_and_the_trainer_stand_for_themselves() -> None:
    """A kernel that a dump names, and a fault in the Megatron process, are confirmed alone."""
    ima = {"cuda.ima_in_log": "ima!", "cuda.ima_process": "train!"}
    assert confirmed({**ima, "cuda.ima_frames": "kernel-named!"}) == ["ima-kernel-named"]
    assert confirmed({**ima, "cuda.ima_frames": "unlocalised?"}) == ["ima-train-side"]


def test_a_debugger_spelt_as_in_the_guide_is_not_enabled() -> None:
    """The guide's spelling confirms that the debugger is off, with a driver that is otherwise right."""
    said = {
        "ray_debugger.driver": "init-before-breakpoint",
        "ray_debugger.env": "misspelt!",
        "ray_debugger.debugpy": "right",
    }
    assert confirmed(said) == ["ray-debugger-not-enabled"]


def test_a_job_that_waits_for_a_rollout_may_only_be_slow() -> None:
    """A long rollout is no fault of the engines; whether they still decode is for a person to see."""
    whole = report({**HEALTHY, "hang.phase": "rollout?"})
    assert [cause.cause for cause in whole.confirmed] == []
    assert ("hang", "rollout-stuck") in {(each.flow, each.node) for each in whole.unknown}


def test_nccl_is_not_blamed_beside_a_fault_that_it_follows_from() -> None:
    """Where memory ran out, what NCCL says afterwards is no cause of its own."""
    assert confirmed({"nccl.in_log": "timeout!", "memory.oom_in_log": "train-step!"}) == ["oom-train-step"]


def test_a_template_that_never_sets_the_switch_is_ordinary() -> None:
    """A script that passes the switch on with 0 is not being debugged."""
    said = {**HEALTHY, "ray_debugger.env": "not-exported", "ray_debugger.driver": "no-breakpoint"}
    assert confirmed(said) == []


def test_the_root_stands_before_its_consequence() -> None:
    """GPUs that do not fit come before the placement group that waits for them; zero rewards follow from NaN."""
    assert confirmed({"launch.gpu_count": "mismatch!", "ray.in_log": "pending!"}) == [
        "gpu-count-mismatch",
        "ray-placement-pending",
    ]
    assert confirmed({"metrics.nan": "nan!", "metrics.reward": "all-zero!"}) == [
        "nan-loss-or-grad",
        "reward-degenerate",
    ]


@pytest.mark.parametrize("word", ["truncated!", "unsafe!", "empty!", "foreign!"])
def test_a_dump_that_does_not_open_is_named(word: str) -> None:
    """An unreadable dump is confirmed when it is all there is."""
    assert confirmed({"dump.readable": word}) == ["debug-dump-unreadable"]


def test_a_failed_load_waits_for_the_kind_of_error() -> None:
    """A load that failed may have any of six causes, so all stay possible until the error is known."""
    whole = report({"megatron.load_log": "failed!"})
    assert [cause.cause for cause in whole.confirmed] == []
    assert {"checkpoint-incomplete", "model-args-mismatch", "unsupported-model"} <= {c.cause for c in whole.possible}
    assert confirmed({"megatron.load_log": "failed!", "megatron.load_error": "model-type!"}) == ["unsupported-model"]

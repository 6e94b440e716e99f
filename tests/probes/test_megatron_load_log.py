"""The load lines of Megatron and slime, good, silent and loud."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.megatron_load_log import load_log
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, step, word

ACTOR = "(MegatronTrainRayActor pid=19389) "
LOADED = ACTOR + "  successfully loaded checkpoint from /ckpt/x [ t 1/2, p 1/1 ] at iteration 0"


@pytest.mark.parametrize(
    ("name", "expected", "line"),
    [
        ("loaded", "ok:loaded", 9),
        ("random-init", "problem:random-init", 6),
        ("taken-for-hf", "problem:failed", 21),
        ("iteration-absent", "problem:failed", 21),
    ],
)
def test_real_loads_are_judged_by_the_line_that_tells(name: str, expected: str, line: int) -> None:
    """Each real ending of a load is named and cited at the line that ends it."""
    finding = ask(load_log, DATA / f"{name}.log")
    assert word(finding) == expected
    assert finding.citations[0].line == line


def test_a_folder_taken_for_hugging_face_is_explained() -> None:
    """The summary says why a Megatron folder went the Hugging Face way, and both lines are cited."""
    finding = ask(load_log, DATA / "taken-for-hf.log")
    assert "Hugging Face" in finding.summary.en
    assert "Unrecognized model" in finding.citations[0].excerpt
    assert "Load checkpoint from HuggingFace" in finding.citations[1].excerpt


@pytest.mark.parametrize(
    "line",
    [
        "megatron.core.CheckpointingException: Global shape mismatch for loaded (torch.Size([1])) and expected ((2)) x",
        "KeyError: \"decoder.x.weight from model not in state dict: ['a', 'b']\"",
        "Unable to load optimizer from checkpoint /c/iter_0000019. Specify --no-load-optim or --finetune, exiting ...",
        "AssertionError: num_layers value from checkpoint (36) is not equal to the input argument value (28).",
        "AssertionError: args.load='/c' does not exist or is an empty directory. Did you specify the wrong folder?",
        "FileNotFoundError: ref_load /c does not exist, please check the path.",
        "KeyError: \"HuggingFace checkpoint does not contain 'model.layers.3.mlp.gate_proj.weight'\"",
        "ValueError: Unsupported HuggingFace model type: gemma3",
        "FileNotFoundError: No safetensors checkpoint found in /models/x",
        "ValueError: Shape mismatch loading module.module.x.weight: HuggingFace (151936, 256), Megatron (152064, 256)",
        "ERROR: Invalid metadata file /c/latest_checkpointed_iteration.txt. Exiting",
        ">> '--exit-on-missing-checkpoint' set ... exiting. <<",
    ],
)
def test_every_known_error_ends_a_load(tmp_path: Path, line: str) -> None:
    """A load that ends in an error is failed, though the other role's load succeeded."""
    finding = ask_text(load_log, tmp_path, LOADED, ACTOR + line)
    assert word(finding) == "problem:failed"
    assert finding.citations[0].excerpt.endswith(line.strip()[-40:])


@pytest.mark.parametrize(
    "line",
    [
        "could not find arguments in the checkpoint ...",
        "Job sharding has changed: Rerun state will be ignored",
        "(TP, PP) mismatch after resume ((2, 1) vs (1, 1) from checkpoint): RNG state will be ignored",
        " checkpoint version 3.0",
        "ref_load /r does not have latest_checkpointed_iteration.txt, please make sure it is valid.",
        "decoder.layers.mlp.linear_fc1._extra_state/shard_0_1 from model not in state dict, will skip",
    ],
)
def test_alarming_lines_that_are_harmless_change_nothing(tmp_path: Path, line: str) -> None:
    """Beside a successful load these lines mean nothing."""
    assert word(ask_text(load_log, tmp_path, ACTOR + line, LOADED)) == "ok:loaded"


def test_skipped_keys_are_counted_once_each(tmp_path: Path) -> None:
    """A key that several processes skip is one key; the success line that follows does not make it good."""
    keys = ("decoder.a.weight", "decoder.b.weight", "decoder.a.weight", "decoder.c._extra_state/shard_0_1")
    lines = [f"{ACTOR}{key} from model not in state dict, will skip" for key in keys]
    finding = ask_text(load_log, tmp_path, *lines, LOADED)
    assert word(finding) == "problem:partial"
    assert finding.citations[0].count == 2


def test_a_critic_head_that_is_reinitialised_is_meant(tmp_path: Path) -> None:
    """Slime says that it will make the critic's output layer anew; its absence is no partial load."""
    lines = [
        "[2026-08-21 10:00:00] model.py:161 - Will reinitialize critic output_layer.weight after checkpoint load",
        ACTOR + "output_layer.weight from model not in state dict, will skip",
        LOADED,
    ]
    assert word(ask_text(load_log, tmp_path, *lines)) == "ok:loaded"


def test_a_hugging_face_load_succeeds_when_training_goes_on(tmp_path: Path) -> None:
    """The native loader prints no success line; a train step behind it shows that it returned."""
    start = ACTOR + "Load checkpoint from HuggingFace model into Megatron (path=/models/x)"
    assert word(ask_text(load_log, tmp_path, start)) == "unknown"
    assert word(ask_text(load_log, tmp_path, start, step(0, loss=0.0))) == "ok:loaded"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_log_without_load_lines_is_unknown(name: str) -> None:
    """No load line at all proves neither success nor failure."""
    assert word(ask(load_log, DATA / f"{name}.log")) == "unknown"


def test_an_exception_elsewhere_is_not_a_failed_load(tmp_path: Path) -> None:
    """A traceback that does not pass through the loader has nothing to do with it."""
    lines = [
        "Traceback (most recent call last):",
        '  File "/root/Megatron-LM/megatron/training/checkpointing.py", line 9, in save_checkpoint',
        "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/iter_0000500'",
    ]
    assert word(ask_text(load_log, tmp_path, LOADED, *lines)) == "ok:loaded"

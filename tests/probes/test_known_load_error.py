"""Which kind of error ended a load: each line that the programs print, and the kind it must be sorted into."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_load_error import load_error
from tests.probes.asking import DATA, ask, ask_text, word

SHAPE = "megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch for loaded "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Unable to load optimizer from checkpoint /c. Specify --no-load-optim or --finetune", "problem:optimizer"),
        ("Unable to load rng state from checkpoint /c. Specify --no-load-rng", "problem:optimizer"),
        ("ValueError: Unsupported HuggingFace model type: gemma3", "problem:model-type"),
        (
            f"{SHAPE}(torch.Size([151936, 2560])) and expected ((1, 2560)) tensor for key output_layer.weight",
            "problem:critic-head",
        ),
        (f"{SHAPE}(torch.Size([9, 8])) and expected ((9, 7)) tensor for key embedding", "problem:shape"),
        ("ValueError: Shape mismatch loading module.x: HuggingFace (9, 8), Megatron (9, 7)", "problem:shape"),
        (
            "AssertionError: num_layers value from checkpoint (36) is not equal to the input argument value (28).",
            "problem:shape",
        ),
        (
            "AssertionError: args.load='/c' does not exist or is an empty directory. Did you specify the wrong folder?",
            "problem:folder",
        ),
        ("FileNotFoundError: ref_load /ckpt/ref does not exist, please check the path.", "problem:folder"),
        (">> '--exit-on-missing-checkpoint' set ... exiting. <<", "problem:folder"),
        ("FileNotFoundError: No safetensors checkpoint found in /models/Qwen3-4B", "problem:files"),
        ("ERROR: Invalid metadata file /c/latest_checkpointed_iteration.txt. Exiting", "problem:files"),
        (
            "KeyError: \"HuggingFace checkpoint does not contain 'model.layers.3.mlp.gate_proj.weight'\"",
            "problem:files",
        ),
        ("KeyError: \"decoder.x from model not in state dict: ['decoder.y']\"", "warning:other"),
    ],
)
def test_each_line_is_of_its_kind(line: str, expected: str, tmp_path: Path) -> None:
    """The kind of a line is the one its cure depends on; a line of no kind is a warning and no proof."""
    finding = ask_text(load_error, tmp_path, line)
    assert word(finding) == expected
    assert finding.citations[0].line == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("taken-for-hf", "problem:folder"),
        ("iteration-absent", "problem:files"),
        ("loaded", "not_applicable"),
        ("random-init", "not_applicable"),
        ("healthy", "unknown"),
    ],
)
def test_real_logs_are_sorted(name: str, expected: str) -> None:
    """Two loads that failed, one that succeeded, one that started from random, and a log that says nothing of it."""
    assert word(ask(load_error, DATA / f"{name}.log")) == expected

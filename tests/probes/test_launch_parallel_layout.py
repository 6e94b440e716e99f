"""Parallel sizes that divide, or not, the model and the GPUs; the expected verdicts follow Megatron's own checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.launch_parallel_layout import parallel_layout
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write

DENSE = (
    "--num-layers 36",
    "--hidden-size 4096",
    "--num-attention-heads 32",
    "--group-query-attention",
    "--num-query-groups 8",
)
MOE = (*DENSE, "--num-experts 128")


@pytest.mark.parametrize(
    "flags",
    [
        ("--tensor-model-parallel-size 2",),
        ("--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 4"),
        ("--context-parallel-size 4", "--tensor-model-parallel-size 2"),
        (
            "--pipeline-model-parallel-size 8",
            "--decoder-first-pipeline-num-layers 3",
            "--decoder-last-pipeline-num-layers 3",
        ),
        ("--pipeline-model-parallel-size 2", "--num-layers 47", "--decoder-last-pipeline-num-layers 23"),
        ("--pipeline-model-parallel-size 2", "--num-layers 35", "--account-for-loss-in-pipeline-split"),
        ("--pipeline-model-parallel-size 4", "--num-layers-per-virtual-pipeline-stage 3"),
        ("--pipeline-model-parallel-size 4", "--num-virtual-stages-per-pipeline-rank 3"),
        ("--pipeline-model-parallel-size 8", "--pipeline-model-parallel-layout 'Et*5|t*31L'"),
        ("--num-attention-heads 6", "--hidden-size 100", "--kv-channels 64"),
    ],
)
def test_a_dense_layout_that_holds(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Every division has its rest of zero, or the flags that lift the rule are given."""
    assert word(ask_script(parallel_layout, tmp_path, script(*DENSE, *flags))) == "ok:valid"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--tensor-model-parallel-size 3",), "GPU count 8 cannot be divided by 3"),
        (("--context-parallel-size 3", "--actor-num-gpus-per-node 6"), "--seq-length 4096 cannot be divided by 6"),
        (("--tensor-model-parallel-size 8", "--num-attention-heads 36", "--num-query-groups 4"), "heads 36"),
        (("--tensor-model-parallel-size 4", "--num-query-groups 6"), "6 query groups and TP 4"),
        (("--pipeline-model-parallel-size 8",), "layers 36 cannot be divided by 8"),
        (("--pipeline-model-parallel-size 4", "--decoder-first-pipeline-num-layers 2"), "stage 34"),
        (("--pipeline-model-parallel-size 4", "--num-layers-per-virtual-pipeline-stage 4"), "stage 9"),
        (("--num-virtual-stages-per-pipeline-rank 2",), "2 virtual stages need a pipeline"),
        (("--expert-model-parallel-size 2",), "has no experts"),
        (("--num-attention-heads 5",), "hidden_size 4096 cannot be divided by 5"),
    ],
)
def test_a_dense_layout_that_stops(tmp_path: Path, flags: tuple[str, ...], words: str) -> None:
    """Each rule names what cannot be divided by what."""
    finding = ask_script(parallel_layout, tmp_path, script(*DENSE, *flags))
    assert word(finding) == "problem:invalid"
    assert words in finding.summary.en


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--expert-model-parallel-size 8",), "ok:valid"),
        (("--expert-model-parallel-size 8", "--num-experts 60"), "problem:invalid"),
        (("--tensor-model-parallel-size 4",), "problem:invalid"),
        (("--tensor-model-parallel-size 4", "--sequence-parallel"), "ok:valid"),
        (("--expert-model-parallel-size 8", "--pipeline-model-parallel-size 2"), "problem:invalid"),
        (("--expert-model-parallel-size 4", "--pipeline-model-parallel-size 2"), "ok:valid"),
        (
            (
                "--tensor-model-parallel-size 2",
                "--sequence-parallel",
                "--expert-model-parallel-size 8",
                "--expert-tensor-parallel-size 1",
            ),
            "ok:valid",
        ),
        (
            ("--tensor-model-parallel-size 2", "--sequence-parallel", "--expert-model-parallel-size 8"),
            "problem:invalid",
        ),
    ],
)
def test_experts_are_spread_over_all_gpus(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """ETP x EP x PP divides the GPUs, where ETP is TP unless it is given; TP wants sequence parallelism."""
    assert word(ask_script(parallel_layout, tmp_path, script(*MOE, *flags))) == expected


@pytest.mark.parametrize(
    ("versions", "expected"),
    [("", "ok:valid"), ("slime==0.2.4\n", "problem:invalid"), ("slime==0.3.0\n", "ok:valid")],
)
def test_fewer_groups_than_tp_depend_on_the_release(tmp_path: Path, versions: str, expected: str) -> None:
    """Megatron up to slime v0.2.4 wants the groups to be a multiple of TP; later a divisor will do."""
    text = script(*DENSE, "--num-query-groups 4", "--tensor-model-parallel-size 8")
    more = {"versions": write(tmp_path, "v.txt", versions)} if versions else {}
    assert word(ask_script(parallel_layout, tmp_path, text, **more)) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--decoder-first-pipeline-num-layers 2",), "problem:invalid"),
        (("--pipeline-model-parallel-size 2", "--decoder-first-pipeline-num-layers 17"), "ok:valid"),
    ],
)
def test_ends_of_a_pipeline_of_one_stage(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """They are refused from v0.2.2 on."""
    versions = write(tmp_path, "v.txt", "slime==0.3.1\n")
    assert word(ask_script(parallel_layout, tmp_path, script(*DENSE, *flags), versions=versions)) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--tensor-model-parallel-size 3", "--debug-rollout-only"), "not_applicable"),
        (("--tensor-model-parallel-size 3", "--train-backend fsdp"), "not_applicable"),
        (("--tensor-model-parallel-size 2",), "unknown"),
        (("--tensor-model-parallel-size 3",), "problem:invalid"),
        (("--actor-num-nodes ${N:-1}", "--tensor-model-parallel-size 3"), "warning:invalid"),
        (("--actor-num-nodes ${N}", "--tensor-model-parallel-size 3"), "unknown"),
    ],
)
def test_what_the_model_script_does_not_tell(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """Without MODEL_ARGS only the GPUs can be judged, and only a fault in them is an answer."""
    assert word(ask_script(parallel_layout, tmp_path, script(*flags))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(parallel_layout, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"


def test_a_table_tells_all(tmp_path: Path) -> None:
    """The arguments table has every default, so it alone answers."""
    rows = {
        "actor_num_nodes": 1,
        "actor_num_gpus_per_node": 8,
        "tensor_model_parallel_size": 2,
        "pipeline_model_parallel_size": 1,
        "context_parallel_size": 1,
        "expert_model_parallel_size": 1,
        "expert_tensor_parallel_size": 2,
        "num_layers": 36,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "kv_channels": 128,
        "num_query_groups": 8,
        "group_query_attention": True,
        "num_experts": None,
        "sequence_parallel": True,
    }
    assert word(ask(parallel_layout, log=write(tmp_path, "job.log", table(**rows)))) == "ok:valid"
    rows["num_attention_heads"] = 31
    assert word(ask(parallel_layout, log=write(tmp_path, "job.log", table(**rows)))) == "problem:invalid"


@pytest.mark.parametrize(
    ("config", "flags", "expected"),
    [
        ({"num_attention_heads": 32, "num_key_value_heads": 8}, (), "ok:valid"),
        ({"num_attention_heads": 32, "num_key_value_heads": 6}, (), "problem:invalid"),
        ({"num_attention_heads": 33, "num_key_value_heads": 33}, (), "problem:invalid"),
        ({"num_attention_heads": 32, "num_experts": 6}, ("--sequence-parallel",), "ok:valid"),
        ({"num_attention_heads": 32, "num_experts": 6}, (), "problem:invalid"),
        ({"num_attention_heads": 32, "num_key_value_heads": 6, "kv_lora_rank": 512}, (), "ok:valid"),
    ],
)
def test_config_json_tells_what_the_model_script_would(
    tmp_path: Path, config: dict[str, int], flags: tuple[str, ...], expected: str
) -> None:
    """MODEL_ARGS must agree with the checkpoint, so its sizes serve where the model script is not there."""
    model = {"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "head_dim": 128, **config}
    path = Path(write(tmp_path, "hf/config.json", json.dumps(model))).parent
    text = script("--tensor-model-parallel-size 4", *flags)
    assert word(ask_script(parallel_layout, tmp_path, text, hf_checkpoint=str(path))) == expected

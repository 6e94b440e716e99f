"""GPU counts of the flags against the Ray that the script starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_gpu_count import gpu_count
from tests.probes.asking import word
from tests.probes.scripts import RAY_START, ask_script, cited, script, write

TWO_NODES = ("--actor-num-nodes 2", "--actor-num-gpus-per-node 8", "--colocate")
APART = ("--actor-num-nodes 1", "--actor-num-gpus-per-node 4", "--rollout-num-gpus 4")


@pytest.mark.parametrize(
    "flags",
    [
        ("--actor-num-nodes 1", "--actor-num-gpus-per-node 8", "--colocate"),
        ("--colocate",),
        APART,
        ("--actor-num-gpus-per-node 8", "--rollout-num-gpus 64", "--debug-train-only"),
        ("--actor-num-gpus-per-node 8", "--rollout-num-gpus 64", "--load-debug-rollout-data /d/{rollout_id}.pt"),
        ("--actor-num-gpus-per-node 8", "--rollout-external-engine-addrs h:1"),
    ],
)
def test_counts_that_fit(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Colocated, apart, training only and external engines each need what slime's placement group asks for."""
    finding = ask_script(gpu_count, tmp_path, script(*flags))
    assert word(finding) == "ok:fits"
    assert finding.measurements[0].value == 8


@pytest.mark.parametrize(
    ("flags", "needed"),
    [
        (TWO_NODES, 16),
        (("--actor-num-gpus-per-node 8", "--rollout-num-gpus 8"), 16),
        (("--actor-num-gpus-per-node 16", "--colocate"), 16),
    ],
)
def test_a_closed_ray_that_is_too_small(tmp_path: Path, flags: tuple[str, ...], needed: int) -> None:
    """One machine under a loopback address cannot be joined, so too few GPUs there are a fault."""
    finding = ask_script(gpu_count, tmp_path, script(*flags))
    assert word(finding) == "problem:mismatch"
    assert (finding.measurements[0].value, finding.measurements[1].value) == (needed, 8)
    assert cited(finding)[-1] == RAY_START


@pytest.mark.parametrize(
    "start",
    [
        "ray start --head --node-ip-address ${MASTER_ADDR} --num-gpus 8",
        "M=${M:-127.0.0.1}\nray start --head --node-ip-address $M --num-gpus 8",
        "ray start --head --num-gpus 8",
        RAY_START + '\nfor W in $(cat hosts); do ssh $W "ray start --address=h:6379 --num-gpus 8"; done',
        RAY_START + "\nssh other 'ray start --address=h:6379'",
        "mpirun -np 2 " + RAY_START,
        "if [ $RANK -eq 0 ]; then\n" + RAY_START + "\nfi",
        "",
        "ray start --head --node-ip-address 127.0.0.1",
        "ray start --head --node-ip-address 127.0.0.1 --num-gpus ${N:-8}",
    ],
)
def test_where_other_machines_may_join_nothing_is_said(tmp_path: Path, start: str) -> None:
    """An open address, workers by ssh or mpirun, a condition, or no count at all leave the question open."""
    assert word(ask_script(gpu_count, tmp_path, script(*TWO_NODES, before=start))) == "unknown"


@pytest.mark.parametrize(
    "flags",
    [
        ("--actor-num-nodes $N", "--colocate"),
        ("--actor-num-gpus-per-node 8", "--rollout-num-gpus ${R}"),
        ("--actor-num-gpus-per-node 4", "--colocate", "--advantage-estimator ppo", "--critic-num-nodes 2"),
        ("--actor-num-gpus-per-node 8", "--rollout-num-gpus 16", "--colocate"),
    ],
)
def test_unknown_or_version_dependent_needs_stay_open(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Unknown counts, and forms that slime versions treat differently, prove nothing."""
    assert word(ask_script(gpu_count, tmp_path, script(*flags))) == "unknown"


def test_quoted_flags_prove_no_mismatch(tmp_path: Path) -> None:
    """A few flags without the rest may lack --colocate and the like."""
    assert (
        word(ask_script(gpu_count, tmp_path, script("--actor-num-nodes 2", "--rollout-num-gpus 8", whole=False)))
        == "unknown"
    )


@pytest.mark.parametrize(
    ("flags", "needed"),
    [(("--debug-rollout-only", "--rollout-num-gpus 2"), 2), (("--debug-rollout-only", "--colocate"), 8)],
)
def test_rollout_alone_needs_its_own_share(tmp_path: Path, flags: tuple[str, ...], needed: int) -> None:
    """With --debug-rollout-only only rollout's GPUs are asked for; colocated without a count, the actor's."""
    finding = ask_script(gpu_count, tmp_path, script(*flags))
    assert word(finding) == "ok:fits"
    assert finding.measurements[0].value == needed


@pytest.mark.parametrize(
    ("versions", "expected"),
    [("slime==0.2.4\n", "problem:mismatch"), ("slime==0.3.0\n", "ok:fits"), ("torch==2\n", "unknown")],
)
def test_a_critic_had_gpus_of_its_own(tmp_path: Path, versions: str, expected: str) -> None:
    """PPO on eight colocated GPUs takes sixteen up to v0.2.4."""
    text = script("--actor-num-gpus-per-node 8", "--colocate", "--advantage-estimator ppo")
    path = write(tmp_path, "v.txt", versions)
    assert word(ask_script(gpu_count, tmp_path, text, versions=path)) == expected


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--actor-num-gpus-per-node 8",), "Neither --colocate nor --rollout-num-gpus"),
        (
            ("--actor-num-gpus-per-node 4", "--colocate", "--rollout-num-gpus-per-engine 8"),
            "no engine can be completed",
        ),
        (("--actor-num-gpus-per-node 4", "--rollout-num-gpus 2", "--rollout-num-gpus-per-engine 4"), "rollout has 2"),
        (("--actor-num-nodes 3", "--colocate", "--rollout-num-gpus-per-engine 16"), "some engine stays incomplete"),
        (("--actor-num-nodes 3", "--colocate", "--rollout-num-gpus-per-engine 12"), "some engine stays incomplete"),
    ],
)
def test_engines_that_cannot_be_made(tmp_path: Path, flags: tuple[str, ...], words: str) -> None:
    """Rollout must hold whole engines, and one that spans nodes takes whole nodes."""
    finding = ask_script(gpu_count, tmp_path, script(*flags))
    assert word(finding) == "problem:mismatch"
    assert words in finding.summary.en


@pytest.mark.parametrize(
    "flags",
    [
        ("--actor-num-gpus-per-node 4", "--rollout-num-gpus 3", "--rollout-num-gpus-per-engine 2"),
        ("--actor-num-gpus-per-node 8", "--colocate", "--rollout-num-gpus 0"),
        ("--actor-num-gpus-per-node 8", "--debug-train-only", "--rollout-num-gpus-per-engine 16"),
        ("--actor-num-gpus-per-node 8", "--colocate", "--rollout-num-gpus-per-engine 16", "--sglang-config c.yaml"),
    ],
)
def test_engines_that_leave_gpus_over_or_are_not_started(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """An idle GPU, a trainer alone and engines that a file describes are no fault."""
    assert word(ask_script(gpu_count, tmp_path, script(*flags))) == "ok:fits"

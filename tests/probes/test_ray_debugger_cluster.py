"""Which cluster the driver took, by its own lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.ray_debugger_cluster import cluster
from tests.probes.asking import DATA, ask, ask_text, rollout, word
from tests.probes.scripts import script, write

JOINED = (
    "2026-11-30 11:06:19,509\tINFO worker.py:1841 -- Connecting to existing Ray cluster at address: 10.0.0.1:6379..."
)
OWN = "2026-11-30 10:52:46,904\tINFO worker.py:2038 -- Started a local Ray instance."


def asked(folder: Path, nodes: str, *lines: str) -> str:
    """Return the answer for a log and a launch script that asks for so many nodes."""
    path = folder / "job.log"
    path.write_text("\n".join(("Running entrypoint for job raysubmit_x: python3 train.py", *lines)) + "\n")
    text = script(f"--actor-num-nodes {nodes}", "--actor-num-gpus-per-node 8")
    return word(ask(cluster, path, launch=write(folder, "run.sh", text)))


@pytest.mark.parametrize(
    ("nodes", "lines", "expected"),
    [
        ("4", (JOINED,), "ok:existing"),
        ("4", (OWN,), "problem:private"),
        ("1", (OWN,), "ok:own"),
        ("${NODES}", (OWN,), "ok:own"),
        ("4", (OWN, JOINED), "ok:existing"),
        ("4", (), "unknown"),
        ("4", (f"(Trainer pid=3) {OWN}",), "unknown"),
        ("4", (OWN, *(rollout(number, raw_reward=0.5) for number in (1, 2, 3))), "ok:own"),
    ],
)
def test_only_a_cluster_that_is_too_small_is_a_fault(
    tmp_path: Path, nodes: str, lines: tuple[str, ...], expected: str
) -> None:
    """A private cluster of one machine is a fault for a job of several, unless the job went on all the same."""
    assert asked(tmp_path, nodes, *lines) == expected


def test_without_a_script_nothing_is_a_fault(tmp_path: Path) -> None:
    """The log alone does not tell how many machines the job wants."""
    assert word(ask_text(cluster, tmp_path, OWN)) == "ok:own"


def test_a_real_log_joined_its_cluster() -> None:
    """A job that was submitted takes the cluster of the job."""
    assert word(ask(cluster, DATA / "ray-ok.log")) == "ok:existing"

"""Over a real Ray cluster of three nodes the scan says what it says alone, and nodes need no package of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from probes.content_ray import ray_engine
from probes.readers.tensor_scan import Piece, scan_file
from tests.probes.tiny_models import QWEN3_MOE, tensors_of, write_checkpoint

ROOT = Path(__file__).parents[2]
ROUTER = "model.layers.2.mlp.gate.weight"


@pytest.mark.ray
def test_three_nodes_say_what_one_process_says(tmp_path: Path) -> None:
    """Every node reads, hashes agree, and the probe finds the zero router, or that all is finite."""
    tensors = tensors_of(QWEN3_MOE)
    good = write_checkpoint(tmp_path / "good", QWEN3_MOE, tensors, shards=9)
    tensors[ROUTER] = (*tensors[ROUTER][:2], bytes(len(tensors[ROUTER][2])))
    bad = write_checkpoint(tmp_path / "bad", QWEN3_MOE, tensors, shards=9)
    with tempfile.TemporaryDirectory(prefix="r") as short:  # Ray's sockets do not fit into a longer path
        Path(short, "ray").mkdir()
        environment = {**os.environ, "RAY_TMPDIR": short, "RAY_USAGE_STATS_ENABLED": "0"}
        command = [sys.executable, "-m", "tests.probes.ray_scan", str(Path(short, "ray")), str(good), str(bad)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False
        )
    assert done.returncode == 0, done.stderr[-3000:]
    healthy, faulty = json.loads(done.stdout.splitlines()[-1])
    for said in (healthy, faulty):
        assert said["same"]
        assert said["tensors"] == len(tensors)
        assert (said["nodes"], said["here"]) == (3, 0)
        assert "Ray of 3 nodes" in said["summary"] or said["answer"] == "zero"
    assert (healthy["answer"], faulty["answer"]) == ("finite", "zero")


def test_a_node_needs_no_package_of_ours(tmp_path: Path) -> None:
    """The pickled function runs in a process that cannot import probes or runbook."""
    data = tmp_path / "shard"
    data.write_bytes(b"\x80\x3f" * 40 + b"\xc0\x7f" * 3)
    piece = Piece("a", "BF16", 2, 86)
    pickled = tmp_path / "task"
    write = """
import sys
import ray
from probes.readers import tensor_scan
ray.cloudpickle.register_pickle_by_value(tensor_scan)
open(sys.argv[1], "wb").write(ray.cloudpickle.dumps(tensor_scan.answer))
"""
    load = """
import importlib.abc, json, pickle, sys
class Refusal(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("probes", "runbook", "flows", "msgspec"):
            raise ImportError(name)
sys.meta_path.insert(0, Refusal())
print(json.dumps(pickle.load(open(sys.argv[1], "rb"))(sys.argv[2], 86, [json.loads(sys.argv[3])])))
"""
    subprocess.run([sys.executable, "-c", write, str(pickled)], cwd=ROOT, check=True, timeout=60)
    done = subprocess.run(
        [sys.executable, "-c", load, str(pickled), str(data), json.dumps(piece)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows, why = json.loads(done.stdout)
    assert (why, [tuple(row) for row in rows]) == ("", scan_file(str(data), 86, [piece]))
    assert rows[0][3] == 3


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://head:8265", "dashboard"),
        ("https://head", "dashboard"),
        ("127.0.0.1:1", "nothing answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:1", "nothing answers at 127.0.0.1:1"),
        ("ray://head:many", "no Ray address"),
        ("head:99999", "no Ray address"),
        ("\x1b[2J", "nothing answers"),
        ("", "no Ray address"),
    ],
)
def test_an_address_that_cannot_be_used_is_said(address: str, why: str) -> None:
    """No exception, no wait of minutes and no escape sequence comes out of a wrong address."""
    engine, words = ray_engine(address)
    assert engine is None
    assert why in words
    assert words.isprintable()

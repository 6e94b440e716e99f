"""A program: starts a Ray cluster of three nodes, scans checkpoints over it, and prints what came out as JSON.

Run by `test_content_ray` in a process of its own, as Ray leaves threads and signal handlers behind. The nodes have
loopback addresses other than 127.0.0.1, which Ray would replace by the machine's own; everything it writes goes into
the folder given first. Arguments: that folder, then checkpoint folders.
"""

from __future__ import annotations

import json
import sys

from probes import content_ray, content_scan
from probes.content_state import State
from probes.hf_checkpoint import open_checkpoint
from probes.hf_content import content
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import evidence_of

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
STORE_BYTES = 80 << 20


def main(temp: str, folders: list[str]) -> None:
    """Scan each folder here and over the cluster, and ask the probe with the cluster's address."""
    from ray.cluster_utils import Cluster

    common = {"num_cpus": 0, "object_store_memory": STORE_BYTES}
    head = {**common, "node_ip_address": HOSTS[0], "include_dashboard": False, "temp_dir": temp}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for host in HOSTS[1:]:
            cluster.add_node(node_ip_address=host, **common)
        said = [one(folder, cluster.address) for folder in folders]
    finally:
        cluster.shutdown()
    print(json.dumps(said))


def one(folder: str, address: str) -> dict[str, object]:
    """Return whether both scans agree, how many nodes read, and what the probe says."""
    checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", folder)), silent)
    assert not isinstance(checkpoint, Finding)
    pieces = content_scan.pieces_of(checkpoint)
    local = content_scan.scan(checkpoint, pieces, content_scan.here, silent, State())
    engine, where = content_ray.ray_engine(address)
    assert engine is not None, where
    spread = content_scan.scan(checkpoint, pieces, engine, silent, State())
    finding = content.run(evidence_of(("hf_checkpoint", folder), ("ray", address)), silent)
    return {
        "same": spread.looked == local.looked and spread.failures == local.failures,
        "tensors": len(spread.looked),
        "nodes": len([name for name in spread.readers if name]),
        "here": spread.readers[""],
        "answer": finding.answer,
        "summary": finding.summary.en,
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

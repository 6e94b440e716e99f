"""Tests of the order of questions: what evidence can prove is not asked behind what evidence leaves open.

With everything at hand, a walk that takes what evidence decides reaches whatever the flow confirms, or stops at a
question that needs a person first: one without a probe, an experiment, or one on which the probes disagree.
"""

from __future__ import annotations

import pytest

from runbook.walk import How, decide, position
from tests.flows.made_up import CATALOG, FLOWS, HEALTHY, confirmed_in, findings, walked

AT_HAND = {
    **HEALTHY,
    "cuda.ima_frames": "unlocalised?",
    "cuda.ima_process": "rollout?",
    "dump.engine_split": "not-split",
    "megatron.load_error": "other?",
    "quant.config": "valid",
    "quant.nonlinear": "covered",
    "quant.router": "ignored",
    "ray_debugger.cluster": "existing",
    "ray_debugger.debugpy": "right",
    "rollout.change": "steady",
    "weights.compare": "equal",
    "weights.update_check": "not-run",
}
"""An answer of every probe that a flow asks."""

LEFT_BY_A_FAULT = {"cuda.core_dump", "cuda.sanitizer", "ray.startup"}
"""Probes of what only a fault leaves behind, or a live start, so that a sound run has nothing to ask them about."""

RUNS = {
    "healthy": {},
    "garbled": {"rollout.coherence": "garbled!"},
    "apart": {"dump.logprob_gap": "large!", "metrics.logprob_gap": "large!"},
    "garbled-apart": {"rollout.coherence": "garbled!", "dump.logprob_gap": "large!", "metrics.logprob_gap": "large!"},
    "debugged": {"launch.dump_flags": "fine"},
    "quantised": {"quant.kind": "compressed-tensors"},
    "access-error": {"cuda.ima_in_log": "ima!"},
    "breakpoint": {"ray_debugger.driver": "init-before-breakpoint"},
}
"""Kinds of runs: what differs from a healthy one."""


def probes(name: str) -> list[str]:
    """Return the probes that a flow asks, each once."""
    return list(dict.fromkeys(probe for node in FLOWS[name].nodes.values() for probe in node.probes))


def test_every_probe_of_a_flow_has_its_answer() -> None:
    """What is at hand here is what the flows ask, in words that the probes declare."""
    assert set(AT_HAND) | LEFT_BY_A_FAULT == {probe for name in FLOWS for probe in probes(name)}
    assert all(found.answer in CATALOG.answers[probe] for probe, found in findings(AT_HAND).items())


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", sorted(FLOWS))
def test_a_proof_is_reached_or_waits_for_a_person(name: str, run: str) -> None:
    """Whatever one probe proves, the walk ends at a cause the flow confirms or at a question for a person."""
    flow = FLOWS[name]
    short = []
    for probe in probes(name):
        for word in CATALOG.answers[probe]:
            said = {**AT_HAND, **RUNS[run], probe: f"{word}!"}
            causes = confirmed_in(flow, said)
            here = position(flow, walked(flow, said))
            node = flow.nodes[here]
            asks = node.kind == "experiment" or not node.probes or decide(node, findings(said)).how is How.DISAGREE
            if causes and node.cause not in causes and not (asks and not node.is_leaf):
                short.append((probe, word, here))
    assert short == []

"""Made-up findings for the shipped flows, and walks that take what they decide: the real engine without any probe.

A finding is written as "answer" (verdict ok), "answer?" (warning) or "answer!" (problem).
"""

from __future__ import annotations

from collections.abc import Mapping

from runbook.catalog import load_catalog
from runbook.finding import Citation, Finding, Verdict
from runbook.flow.model import Flow
from runbook.text import Text
from runbook.triage import Report, Standing, evaluate, triage
from runbook.walk import By, How, Step, Walk, answer, decide, position

CATALOG = load_catalog()
FLOWS = CATALOG.flows

VERDICTS = {"?": Verdict.WARNING, "!": Verdict.PROBLEM}

HEALTHY_LOG = {
    "converter.in_log": "clean",
    "cuda.ima_in_log": "none",
    "debug_mode.in_log": "none",
    "engine.in_log": "none",
    "hang.phase": "none",
    "inductor_cache.in_log": "none",
    "job.last_words": "none",
    "known.in_log": "none",
    "megatron.args_in_log": "no-complaint",
    "megatron.load_log": "loaded",
    "memory.oom_arithmetic": "none",
    "memory.oom_in_log": "none",
    "memory.saver_in_log": "none",
    "memory.timeline": "steady",
    "metrics.drift": "steady",
    "metrics.first_step": "small",
    "metrics.grad_norm": "small",
    "metrics.grad_size": "explainable",
    "metrics.kl_first_step": "zero",
    "metrics.logprob_gap": "agree",
    "metrics.nan": "none",
    "metrics.overview": "complete",
    "metrics.ref_logprobs": "equal",
    "metrics.reward": "varied",
    "metrics.rollout_change": "steady",
    "nccl.in_log": "none",
    "phases.at_end": "between",
    "port.in_log": "free",
    "ray.in_log": "none",
    "ray_debugger.no_core_worker": "none",
    "ray_debugger.paused": "none",
    "resume.start": "not-resumed",
    "routing_replay.in_log": "none",
}
"""What the probes say of the log of a healthy run."""

HEALTHY_LAUNCH = {
    "launch.alloc_conf": "not-set",
    "launch.attention_backend": "flash",
    "launch.batch": "consistent",
    "launch.core_dump": "off",
    "launch.deepep": "off",
    "launch.dump_flags": "none",
    "launch.flag_conflicts": "none",
    "launch.gpu_count": "fits",
    "launch.launch_blocking": "off",
    "launch.load_fallback": "no-load",
    "launch.model_args": "match",
    "launch.moe_permute_fusion": "dense",
    "launch.offload": "released",
    "launch.parallel_layout": "valid",
    "launch.proxy": "not-set",
    "launch.speculative_and_graph": "graph-only",
    "launch.steps_per_rollout": "one",
    "ray_debugger.env": "not-debugging",
    "separate.plan": "planned",
}
"""What the probes say of an ordinary launch script."""

HEALTHY = {
    **HEALTHY_LOG,
    **HEALTHY_LAUNCH,
    "dump.join": "agree",
    "dump.logprob_gap": "agree",
    "dump.readable": "readable",
    "dump.ref_logprobs": "equal",
    "hf.content_sample": "finite",
    "hf.expected_names": "complete",
    "hf.shards": "complete",
    "quant.kind": "none",
    "megatron.checkpoint_dir": "complete",
    "megatron.names": "match",
    "ray_debugger.driver": "no-breakpoint",
    "rollout.coherence": "coherent",
    "rollout.model_kind": "instruct",
    "separate.dump_match": "matches",
    "template.loss_mask": "right",
    "template.prompts": "matches",
    "template.stop_tokens": "configured",
}
"""What the probes say when log, launch script, driver, checkpoints and dumps are all at hand and healthy."""

WORLDS: dict[str, dict[str, str]] = {"nothing": {}, "log": HEALTHY_LOG, "healthy": HEALTHY}
"""What else is known, by name."""


def findings(said: Mapping[str, str]) -> dict[str, Finding]:
    """Return the findings that `said` writes down, by probe id; a problem cites a line."""
    found = {}
    for probe, word in said.items():
        verdict = VERDICTS.get(word[-1], Verdict.OK)
        citations = (Citation("job.log", 1, 0, word),) if verdict is Verdict.PROBLEM else ()
        found[probe] = Finding(verdict, word.rstrip("?!"), Text(word, word), citations, probe=probe)
    return found


def report(said: Mapping[str, str]) -> Report:
    """Return the triage of all flows."""
    return triage(FLOWS.values(), CATALOG.vocabulary, findings(said))


def confirmed(said: Mapping[str, str]) -> list[str]:
    """Return the confirmed causes in rank order."""
    return [cause.cause for cause in report(said).confirmed]


def confirmed_in(flow: Flow, said: Mapping[str, str] | Mapping[str, Finding]) -> set[str]:
    """Return the causes that one flow confirms."""
    verdicts, _, _ = evaluate(flow, _found(said), {})
    return {verdict.cause for verdict in verdicts if verdict.standing is Standing.CONFIRMED}


def walked(flow: Flow, said: Mapping[str, str] | Mapping[str, Finding]) -> Walk:
    """Return the walk that takes every answer that evidence decides, up to the first node where it decides none."""
    known = _found(said)
    walk = Walk(flow.flow)
    while True:
        here = position(flow, walk)
        node = flow.nodes[here]
        decision = decide(node, known if node.kind == "check" else {})
        if node.is_leaf or decision.how is not How.DECIDED or decision.answer is None:
            return walk
        walk = answer(flow, walk, Step(here, decision.answer, By.PROBE))


def _found(said: Mapping[str, str] | Mapping[str, Finding]) -> dict[str, Finding]:
    words = {probe: word for probe, word in said.items() if isinstance(word, str)}
    return {**{probe: word for probe, word in said.items() if isinstance(word, Finding)}, **findings(words)}

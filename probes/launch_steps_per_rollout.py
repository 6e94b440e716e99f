"""How many optimizer steps one rollout feeds: KL is only bound to be zero when it is one.

slime: global_batch_size = rollout_batch_size x n_samples_per_prompt / num_steps_per_rollout, and either of the two
is given.
"""

from __future__ import annotations

from probes.settings import not_told, number, read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Measurement, Verdict, found
from runbook.probe import Progress, probe


@probe(
    "launch.steps_per_rollout",
    needs="launch|log",
    answers=("one", "several"),
    en="How many train steps use one rollout?",
    zh="一次 rollout 对应几个训练 step？",
)
def steps_per_rollout(evidence: Evidence, report: Progress) -> Finding:
    """Compute the steps from the batch sizes."""
    del report
    settings = read_settings(evidence)
    batch, batch_line = number(settings, "rollout-batch-size")
    samples, samples_line = number(settings, "n-samples-per-prompt", 1)
    whole, whole_line = number(settings, "global-batch-size")
    steps, steps_line = number(settings, "num-steps-per-rollout")
    if steps is None and batch and samples and whole:
        steps = batch * samples / whole
    if steps is None or steps <= 0:
        return not_told(
            "The batch sizes are not all known, so the steps of one rollout are not either.",
            "批大小不全可知，因此不知道一次 rollout 对应几个 step。",
        )
    lines = (steps_line,) if steps_line is not None else (batch_line, samples_line, whole_line)
    return found(
        Verdict.OK,
        "one" if steps <= 1 else "several",
        f"One rollout feeds {steps:g} train step(s).",
        f"一次 rollout 对应 {steps:g} 个训练 step。",
        citations=tuple(line.citation for line in lines if line is not None),
        measurements=(
            Measurement("train steps per rollout", steps, "steps", 1, "guide 1.3: num_steps_per_rollout == 1"),
        ),
    )

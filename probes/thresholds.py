"""Every number that a probe judges by, in one place, each with its source.

Invariant: a threshold that no program and no published run fixes says so in its source ("chosen: ..."), so that nobody
takes our choice for slime's.
"""

from __future__ import annotations

from dataclasses import dataclass

from runbook.finding import Measurement


@dataclass(frozen=True)
class Threshold:
    """A limit, its unit and where it comes from."""

    value: float
    unit: str
    source: str

    def measure(self, name: str, value: float) -> Measurement:
        """Return `value` as a measurement that is judged by this threshold."""
        return Measurement(name, value, self.unit, self.value, self.source)


LOGPROB_EQUAL = Threshold(
    1e-8, "nat/token", "slime's CI: |log_probs - ref_log_probs| < 1e-8 at rollout 0 (train_metric_utils.py, v0.2.4 on)"
)
"""Actor and reference of the same weights may differ by this much at step one; before v0.2.4 CI asked for equality."""
KL_ZERO = Threshold(1e-8, "nat/token", "slime's CI: kl_loss and ppo_kl < 1e-8 at step 0 (model.py)")
LOGPROB_FAR = Threshold(
    0.1,
    "nat/token",
    "slime's CI lets even two different engines differ by 0.1 at most (arguments.py); kernels alone never do",
)
LOGPROB_MAGNITUDE = Threshold(
    0.8, "nat/token", "debug guide 1.2: an instruct model at 0.8 is slightly too large; slime's CI asserts below 1"
)
LOGPROB_EXTREME = Threshold(
    3.0,
    "nat/token",
    "chosen: twenty equally likely tokens; the guide says 'extremely large', healthy runs print 0.1 to 0.5",
)
GAP_AGREE = Threshold(
    0.04, "nat/token", "public slime runs in bf16: 0.011 to 0.018 at step 0, drifting to about 0.04 (slime#1136)"
)
GAP_CI = Threshold(0.1, "nat/token", "slime's CI: --ci-train-rollout-logprob-abs-diff-threshold 0.1 (arguments.py)")
GAP_PROVEN = Threshold(0.2, "nat/token", "chosen: twice slime's CI limit; fp8 rollouts reach 0.07 (miles#2722)")
GRAD_LARGE = Threshold(
    30.0, "", "chosen: public slime runs print 0.05 to 1 (slime#1136) and call far above 10 abnormal"
)
GRAD_UNUSUAL = Threshold(10.0, "", "public slime runs print 0.05 to 1; far above 10 is abnormal")
GRAD_LARGE_SFT = Threshold(1000.0, "", "chosen: a supervised loss starts with gradients of tens")
GRAD_SPIKE = Threshold(
    10.0, "times the median before", "chosen: a policy gradient norm keeps within a few times its median"
)
TRUNCATED_BROKEN = Threshold(0.9, "of the samples", "chosen: text that never ends; a hard data set may truncate half")
TRUNCATED_HEALTHY = Threshold(0.5, "of the samples", "public slime run: 0.46 in a healthy first rollout (slime#1837)")
REPETITION_BROKEN = Threshold(0.5, "of the samples", "chosen: half the samples loop; healthy runs print 0.0")

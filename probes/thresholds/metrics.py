"""Limits of metrics that logs print, and of log-probs in dumps."""

from __future__ import annotations

from probes.thresholds import Threshold

LOGPROB_EQUAL = Threshold(
    1e-8, "nat/token", "slime's CI: |log_probs - ref_log_probs| < 1e-8 at rollout 0 (train_metric_utils.py, v0.2.4 on)"
)
"""Actor and reference of the same weights may differ by this much at step one; before v0.2.4 CI asked for equality."""
KL_ZERO = Threshold(1e-8, "nat/token", "slime's CI: kl_loss and ppo_kl < 1e-8 at step 0 (model.py)")
REF_CLOSE = Threshold(
    1e-5, "nat/token", "chosen: float32 sums in another order move logits near 20 by 2e-6; kernels in bf16 by 1e-3"
)
LOGPROB_FAR = Threshold(
    0.1,
    "nat/token",
    "slime's CI lets even two different engines differ by 0.1 at most (arguments.py); kernels alone never do",
)
KL_ESTIMATE = Threshold(
    0.1,
    "nat/token",
    "slime's CI lets two engines differ by 0.1 at most (arguments.py); k2 and k3 are half its square (ppo_utils.py)",
)
LOGPROB_BASE = Threshold(
    1.5, "nat/token", "chosen: a pretrain model is less certain than the instruct model that the guide's 0.8 is for"
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
GAP_WIDE = Threshold(
    0.07, "nat/token", "public runs with fp8 or a mixture of experts: 0.041 in bf16, 0.067 in fp8 (miles#2722)"
)
GAP_ALIGNED = Threshold(
    1e-6, "nat/token", "slime's CI with aligned kernels (GLM-5.2): the two must agree to 1e-6 (arguments.py)"
)
GAP_CI = Threshold(0.1, "nat/token", "slime's CI: --ci-train-rollout-logprob-abs-diff-threshold 0.1 (arguments.py)")
GAP_PROVEN = Threshold(
    0.2,
    "nat/token",
    "slime's CI fails above 0.1 (arguments.py); twice that counts as proof, since fp8 rollouts reach 0.07 (miles#2722)",
)
NAN_SHARE = Threshold(
    0.01, "of the tokens", "chosen: one in a hundred log-probs that is no number is no accident of a single sample"
)
GAP_LASTING = Threshold(
    2, "lines", "chosen: one line above the limit may be one odd batch, unless it is the first or last of the run"
)
GRAD_UNUSUAL = Threshold(
    10.0, "", "public slime runs print 0.05 to 1 (slime#1136); the guide calls what is far above abnormal"
)
GRAD_LARGE = Threshold(
    30.0, "", "chosen: three times what is unusual already; public slime runs print 0.05 to 1 (slime#1136)"
)
GRAD_LARGE_SFT = Threshold(1000.0, "", "chosen: a supervised loss starts with gradients of tens")
GRAD_IMPOSSIBLE = Threshold(
    1e7,
    "",
    "beyond doubt: public slime runs print 0.05 to 1 before clipping (slime#1136), and even a loss that is summed over "
    "the million tokens of a step instead of averaged gives a million times that; broken runs print 1.5e7 (slime#2073) "
    "and 3e9",
)
GRAD_SPIKE = Threshold(
    10.0, "times the median before", "chosen: a policy gradient norm keeps within a few times its median"
)
GRAD_FIRST = Threshold(3, "steps", "chosen: large in each of the first steps is large from the start, not a jump")
GRAD_HISTORY = Threshold(50, "steps", "chosen: the past that a jump is told from; longer drifts are no jump")
INF_ISOLATED = Threshold(
    0.05, "of the steps", "chosen: a loss scaler that looks for its scale skips a step in hundreds"
)
"""Share of steps with a gradient of infinity, each followed by healthy ones, that loss scaling explains."""
LEARNS = Threshold(
    1e-6, "", "chosen: without a reward that differs advantages are 0, and pg_loss is 0 but for float32 rounding"
)
DRIFT_FIRST = Threshold(20, "steps", "chosen: the window that a series is compared with; warm-up steps lie before it")
DRIFT_WARM_UP = Threshold(5, "steps", "chosen: first steps, in which Adam and learning-rate warm-up settle")
DRIFT_LASTS = Threshold(8, "steps", "chosen: a shift that does not last as long is a spike or an odd batch")
DRIFT_SIGMAS = Threshold(
    8.0, "spreads", "chosen: 1.4826 times the median absolute deviation; noise and slow trends stay below"
)
DRIFT_STEEP = Threshold(
    4.0, "spreads", "chosen: by how much the medians of the windows on either side of a step differ at a break"
)
DRIFT_SHOWN = Threshold(12, "series", "chosen: what one screen shows")
TRUNCATED_BROKEN = Threshold(0.9, "of the samples", "chosen: text that never ends; a hard data set may truncate half")
REPETITION_BROKEN = Threshold(0.5, "of the samples", "chosen: half the samples loop; healthy runs print 0.0")
BROKEN_SIGNS = Threshold(2, "signs", "chosen: one sign alone is ordinary (long answers, a hot temperature)")
ZERO_REWARDS = Threshold(
    20,
    "rollouts",
    "beyond doubt: twenty batches in a row without a single point give the policy gradient nothing to learn from, "
    "whatever the reason; public runs with rewards print a point within the first few (slime#1527 never does)",
)
DRIFT_NORM = Threshold(2.0, "", "chosen: public slime runs print 0.05 to 1 (slime#1136)")
DRIFT_KL = Threshold(0.1, "nat/token", "chosen: fifty times what a public run prints after eleven steps (slime#1136)")
DRIFT_CUT = Threshold(0.5, "of the samples", "chosen: a hard data set may truncate half")
DRIFT_REWARD = Threshold(0.5, "of the reward before", "chosen: rewards rise and wave, they do not halve in a step")
GAPS_SHOWN = Threshold(6, "gaps", "chosen: what one sentence can name")

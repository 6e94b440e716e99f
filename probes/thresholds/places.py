"""Limits from which a difference of log-probs, or routing that is missing, sits at one place rather than everywhere."""

from __future__ import annotations

from probes.thresholds import Threshold

PLACE_SHARE = Threshold(
    0.5, "of all |diff|", "chosen: a place that holds less than half of the difference does not explain it"
)
PLACE_RATIO = Threshold(5.0, "times the rest", "chosen: bf16 noise differs between places of a sample by less than two")
PLACE_CHANCE = Threshold(
    1e-6, "probability", "chosen: under chance so many tokens of one place are far apart in one dump of a million"
)
PLACE_TOKENS = Threshold(8, "tokens", "chosen: fewer may be one odd sample")
FEW_SAMPLES = Threshold(0.1, "of the samples", "chosen: up to one in ten is few, more are many")
SHIFTED = Threshold(
    0.2, "of the unshifted difference", "chosen: text has no period, so a shift that fits is no coincidence"
)
ONE_TOKEN = Threshold(
    0.1,
    "nat",
    "slime's CI lets the mean differ by 0.1 (arguments.py); single tokens of healthy runs pass it at times",
)
UNROUTED = Threshold(
    0.25,
    "of the layers",
    "beyond doubt: published mixtures have a few dense layers first (DeepSeek-V3: 3 of 61) or one every n-th; beside "
    "layers that all route, no quarter of them in a row at one end is dense",
)
"""Share of the layers from which a block without routed experts at one end is no prefix of dense layers."""
DENSE_FIRST = Threshold(4, "layers", "chosen: one more than the dense layers that DeepSeek-V3 begins with")

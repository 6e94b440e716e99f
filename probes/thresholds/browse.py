"""Limits by which single tokens are marked where a person looks at them; no verdict rests on them."""

from __future__ import annotations

from probes.thresholds import Threshold

TOKEN_DIFFERS = Threshold(
    0.2, "nat", "chosen: ten times the mean gap of healthy bf16 runs (0.011 to 0.018 at step 0, slime#1136)"
)
TOKEN_DISAGREES = Threshold(
    1.0, "nat", "chosen: the two sides give the same token probabilities that are a factor of e apart"
)

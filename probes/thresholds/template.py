"""Limits from which flaws of single prompts or masks are a flaw of the run."""

from __future__ import annotations

from probes.thresholds import Threshold

FLAWED_SHARE = Threshold(
    0.5,
    "of the samples",
    "beyond doubt: single prompts may quote a template, but what holds for half of them is how they were made",
)
SOME_SHARE = Threshold(0.05, "of the samples", "chosen: more than 1 in 20 samples is not one odd prompt")
FEW = Threshold(2, "samples", "chosen: one sample is one odd prompt")
RUN_ON = Threshold(
    0.5,
    "of the long samples",
    "beyond doubt: a model that writes its end token and is not stopped in half of the samples has no such stop token",
)
SILENT_SPAN = Threshold(
    8, "tokens", "chosen: so many tokens in a row with a log-prob of exactly 0 were not drawn by the engine"
)
SILENT_SHARE = Threshold(
    0.9, "of the span", "chosen: slime's examples give tokens that the engine did not draw the log-prob 0"
)

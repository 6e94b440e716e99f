"""Limits from which the judged samples of a rollout make the whole rollout garbled, and who is at fault for it."""

from __future__ import annotations

from probes.thresholds import Threshold

GARBLED_SHARE = Threshold(0.7, "of the judged", "chosen: so many that the whole rollout counts as garbled")
PARTLY_SHARE = Threshold(0.05, "of the judged", "chosen: more than 1 in 20 garbled samples is not one odd prompt")
MISJUDGED = Threshold(
    3 / 2900,
    "of healthy samples",
    "measured: none of 2,900 healthy texts is called garbled; the rule of three gives this as the 95 % bound",
)
BY_MISTAKE = Threshold(
    1e-4,
    "probability",
    "beyond doubt: that so many healthy samples are called garbled has this probability at most, by MISJUDGED",
)
"""One garbled sample never reaches it, two of 14 do, three of 80 do."""
LONE_SAMPLE = Threshold(4, "samples", "chosen: among more than these a single garbled sample is one odd prompt")
EMPTY_SHARE = Threshold(0.5, "of all responses", "chosen: half the responses hold nothing")
EMPTY_SURE = Threshold(
    0.9, "of all responses", "beyond doubt: nine in ten responses hold nothing, and there are at least EMPTY_COUNT"
)
EMPTY_COUNT = Threshold(
    8, "samples", "chosen: fewer samples may be one prompt that a model rightly answers with nothing"
)
SPLIT_BALANCE = Threshold(
    0.9, "of a group", "chosen: a group or position counts as garbled from this share, and as fine below its complement"
)
SPLIT_CHANCE = Threshold(
    1e-4, "probability", "chosen: under chance a pattern of garbled samples is as likely as this at most"
)
SPLIT_SURE = Threshold(
    1e-6, "probability", "beyond doubt: one dump in a million splits so by chance, all fields tried counted in"
)

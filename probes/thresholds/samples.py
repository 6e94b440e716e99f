"""Limits from which the judged samples of a rollout make the whole rollout garbled, and who is at fault for it."""

from __future__ import annotations

from probes.thresholds import Threshold

GARBLED_SHARE = Threshold(0.7, "of the judged", "chosen: so many that the whole rollout counts as garbled")
PARTLY_SHARE = Threshold(0.05, "of the judged", "chosen: more than 1 in 20 garbled samples is not one odd prompt")
MISJUDGED = Threshold(
    2e-3,
    "of healthy samples",
    "measured: of 5,566 healthy texts that no limit was chosen on, 4 are called garbled; 95 % bound 9.2, rounded up",
)
BY_MISTAKE = Threshold(
    1e-4,
    "probability",
    "beyond doubt: that so many healthy samples are called garbled has this probability at most, by MISJUDGED",
)
"""One garbled sample never reaches it, two of 7 do, three of 40 do."""
LONE_SAMPLE = Threshold(4, "samples", "chosen: among more than these a single garbled sample is one odd prompt")
EMPTY_SHARE = Threshold(0.5, "of all responses", "chosen: half the responses hold nothing")
EMPTY_SURE = Threshold(
    0.9, "of all responses", "beyond doubt: nine in ten responses hold nothing, and there are at least EMPTY_COUNT"
)
EMPTY_COUNT = Threshold(
    8, "samples", "chosen: fewer samples may be one prompt that a model rightly answers with nothing"
)
TAIL_WINDOW = Threshold(64, "tokens", "chosen: over which log-probs are averaged to find where they break down")
TAIL_TOKENS = Threshold(128, "tokens", "chosen: an end with extremely low log-probs that is judged by itself")
FALL = Threshold(
    0.5, "nat/token", "chosen: from one rollout to the next; a training step moves the mean by 0.01 to 0.1"
)
FALL_FAR = Threshold(1.0, "nat/token", "chosen: a fall that counts without a second sign")
FALL_SIGMA = Threshold(5.0, "standard errors", "chosen: other prompts alone move the mean by two or three")
FALL_SAMPLES = Threshold(8, "samples", "chosen: with fewer the spread is not known")
TRUNCATED_RISE = Threshold(0.5, "of the samples", "chosen: other prompts do not make half of the samples endless")
LENGTH_FACTOR = Threshold(3.0, "times", "chosen: mean length, longer or shorter, from one rollout to the next")
CHANGE_SIGNS = Threshold(2, "signs", "chosen: one sign alone is ordinary (harder prompts, a hot temperature)")
SPLIT_BALANCE = Threshold(
    0.9, "of a group", "chosen: a group or position counts as garbled from this share, and as fine below its complement"
)
SPLIT_CHANCE = Threshold(
    1e-4, "probability", "chosen: under chance a pattern of garbled samples is as likely as this at most"
)
SPLIT_SURE = Threshold(
    1e-6, "probability", "beyond doubt: one dump in a million splits so by chance, all fields tried counted in"
)

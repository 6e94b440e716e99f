"""Limits of memory: when the numbers of an out-of-memory message tell one story, and when memory over cycles drifts."""

from __future__ import annotations

from probes.thresholds import Threshold

LOGITS_MATCH = Threshold(
    0.01,
    "of the tokens",
    "beyond doubt: memory did run out, and the request has the size of these tokens to within what torch's two "
    "decimals (c10 format_size) and the padding of a packed micro batch (128 x TP tokens at most, slime "
    "megatron_utils/data.py) leave open",
)
"""A count of tokens that explains an allocation may differ this much from the one that is known."""
LOGITS_LEAST = Threshold(512, "tokens", "chosen: any small tensor has the size of the logits of some few tokens")
"""Tokens below which a request of that size says nothing."""
RESPONSE_MATCH = Threshold(0.1, "of the tokens", "chosen: the metrics know the response alone; its prompt adds to it")
MICRO_BATCH = Threshold(0.5, "of the limit", "chosen: slime fills a micro batch, rarely by less than half of its limit")
PIECES = Threshold(
    1.0,
    "times the request",
    "beyond doubt: torch gives its free cached blocks back and tries once more before it raises "
    "(CUDACachingAllocator.cpp), so what is still reserved and unallocated lies in pieces that are too small",
)
SLACK = Threshold(0.05, "of what torch reserved", "chosen: a few per cent in pieces are ordinary in a full GPU")
FITS = Threshold(1.0, "of the GPU", "chosen: SGLang takes its static fraction of what was free at its start")
OTHERS_LARGE = Threshold(
    0.1, "of the GPU", "chosen: a released engine and CUDA's own contexts keep 1 to 5 GiB, below 0.1 of 80 GiB"
)
WARM = Threshold(2, "cycles", "chosen: buffers, caches and communicators are made in the first ones")
"""Cycles at the beginning that are left out."""
CYCLES = Threshold(4, "cycles", "chosen: below this a rise may be the first use of a buffer")
GROWTH = Threshold(2.0, "GiB", "chosen: caches of kernels and of NCCL settle within a GiB")
RISING = Threshold(0.75, "of the cycles", "chosen: a leak rises in almost every cycle, a cache once")
HOST_LEFT = Threshold(
    0.1, "of the node", "chosen: twice what Ray's memory monitor leaves (0.05), since lines are printed between peaks"
)
HOST_FELL = Threshold(0.1, "of the node", "chosen: rollout data of one cycle come and go within a few per cent")

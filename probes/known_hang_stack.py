"""What a stack dump of a trainer says about where it waits: the frames that py-spy or faulthandler print.

A dump counts when its innermost frames wait for the other ranks (a collective of torch.distributed) and the frames
around them belong to one phase of slime's trainer. A dump shows one moment, so the phase's own success line behind it
takes it back. Sources: slime/backends/megatron_utils/actor.py and model.py, megatron/training/checkpointing.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes.known import known
from probes.logs import Scanned
from probes.readers import joblog
from probes.readers.joblog import Frame
from probes.readers.logscan import Hit

WAITS = known("stack-waits")
"""py-spy prints `gather (torch/distributed/distributed_c10d.py:4264)`; faulthandler, unlike a traceback, no comma."""
SAVED = known("saved")

_PHASES = (
    ("checkpoint-save", re.compile(r"save_checkpoint|save_model|save_hf_model\w*|save_state_dict\w*")),
    ("weight-update", re.compile(r"update_weights\w*|_update_bucket_weights\w*|update_bucket_weights\w*")),
    (
        "train-step",
        re.compile(
            r"train_actor|train_critic|train_one_step|train_step|forward_backward\w*|forward_only|compute_log_prob"
        ),
    ),
)
_OWN = re.compile(r"(?:^|/)(?:slime|megatron|core|training)/")
"""Where a phase's frames lie; py-spy shortens megatron/core/… to core/…."""
_TORCH = re.compile(r"(?:^|/)torch/")
_LOOKED_AT = 200


def waits_in(scanned: Scanned) -> tuple[str, Hit, Frame] | None:
    """Return the phase in which a dumped trainer waits, the waiting line and the frame that names the phase."""
    for hit in scanned.of(WAITS.label)[:_LOOKED_AT]:
        found = _phase(hit)
        if found is None:
            continue
        phase, frame = found
        later = scanned.of(SAVED.label) if phase == "checkpoint-save" else ()
        if not any(done.file == hit.file and done.line > hit.line for done in later):
            return phase, hit, frame
    return None


def _phase(hit: Hit) -> tuple[str, Frame] | None:
    """Read the frames outwards from the waiting one; a dump that waits inside anything but torch is of no phase."""
    outwards = _outwards(hit)
    inner = [frame for frame in outwards if frame.place.number == hit.line]
    if not inner or not all(_TORCH.search(frame.file) for frame in outwards[: outwards.index(inner[0])]):
        return None
    for name, functions in _PHASES:
        for frame in outwards:
            if functions.fullmatch(frame.function) and _OWN.search(frame.file):
                return name, frame
    return None


def _outwards(hit: Hit) -> Sequence[Frame]:
    """Return the frames of the dump that a hit is of, innermost first as dumps print them: an unbroken run of lines."""
    frames = joblog.frames(joblog.context(hit))
    at = next((number for number, frame in enumerate(frames) if frame.place.number == hit.line), None)
    if at is None:
        return ()
    first = last = at
    while first > 0 and frames[first - 1].place.number == frames[first].place.number - 1:
        first -= 1
    while last + 1 < len(frames) and frames[last + 1].place.number == frames[last].place.number + 1:
        last += 1
    return frames[first : last + 1]

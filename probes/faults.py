"""The lines in which CUDA, torch, torch_memory_saver, SGLang, Ray and the kernel report a fault, and whose fault it is.

Several probes ask about the same lines, so they stand here once. Invariants: a signature names the fault itself,
never a hint that follows it (torch's "Search for `cudaErrorIllegalAddress'", Ray's list of possible reasons, the
memory saver's "may not be an issue") and never source code that a traceback quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from probes.known import Asked, known
from probes.readers import joblog, logplace
from probes.readers.joblog import Frame, Placed
from probes.readers.logscan import Hit

IMA = known("ima")
ASSERT = known("device-assert")
LAUNCH = known("launch-failure")
FP8_SCALE = known("fp8-scale")
CUDA_OOM = known("cuda-oom")
SAVER = known("saver")
ENGINE_OOM = known("engine-oom")
HOST_OOM = known("host-oom")
ENGINE_EXCEPTION = known("engine-exception")

CUDA = (IMA, ASSERT, LAUNCH, FP8_SCALE)
OOM = (CUDA_OOM, SAVER, ENGINE_OOM, HOST_OOM)

_ROLLOUT_ACTOR = re.compile(r"^SGLang|^RolloutRayActor$|Engine$")
_TRAIN_ACTOR = re.compile(r"Train")
_MANAGER = re.compile(r"^Rollout(?:Manager|Controller)|^Buffer$|Reward|^(?:Tool|Sandbox|Code)")
_OF_THE_JOB = re.compile(r"(?:^|/)(?:slime|sglang|sgl_kernel|megatron|ray|torch|transformer_engine)/")
_OF_ANY_PROGRAM = frozenset(
    {each.label for each in (*CUDA, *OOM, ENGINE_EXCEPTION)}
    | {"traceback", "address-taken", "cuda-gdb", "cuda-sanitizer", "core-progress", "core-written", "xid"}
)
"""Labels of what any program may print, so that a model's words may well hold it."""
_KNOWN = Asked("known.in_log")
_REMOTE = re.compile(r"\bray::(?P<actor>\w+)(?:\.(?P<method>\w+))?")
_ROLLOUT_FILE = re.compile(r"(?:^|/)sglang/|sgl_kernel")
_TRAIN_FILE = re.compile(r"(?:^|/)megatron/|megatron_utils/|transformer_engine/|fsdp_utils/")
_SGLANG_RANK = re.compile(r"^(?:DP|TP|EP|PP)\d+")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt)\b(?::|$)")


def side(hit: Hit, breath: Sequence[Placed]) -> tuple[str | None, Placed]:
    """Return which half of the job a hit belongs to ("rollout", "train" or None) and the line that says so.

    Told, in this order, by Ray's prefix, by the actor a RayTaskError names, by the innermost frame that is SGLang's or
    Megatron's, by SGLang's own stamp, and by the head of a worker's own log file.
    """
    own = Placed(hit.line, hit.offset, hit.raw)
    return next(_told(hit, own, breath), (None, own))


def _told(hit: Hit, own: Placed, breath: Sequence[Placed]) -> Iterator[tuple[str, Placed]]:
    """Yield every sign of whose fault a hit is, the strongest first."""
    if kind := actor_side(joblog.parse(hit.raw).actor):
        yield kind, own
    for place in breath:
        if (remote := _REMOTE.search(joblog.parse(place.raw).message)) and (kind := actor_side(remote["actor"])):
            yield kind, place
    for frame in innermost_first(breath):
        if _ROLLOUT_FILE.search(frame.file):
            yield "rollout", frame.place
        if _TRAIN_FILE.search(frame.file):
            yield "train", frame.place
    for place in (own, *breath):
        if _SGLANG_RANK.match(joblog.parse(place.raw).rank or ""):
            yield "rollout", place
    if kind := actor_side(logplace.file_actor(hit.file)):
        yield kind, own


def actor_side(actor: str | None) -> str | None:
    """Return which half of the job a Ray actor class belongs to, None for the manager and all others."""
    if actor and _ROLLOUT_ACTOR.search(actor):
        return "rollout"
    return "train" if actor and _TRAIN_ACTOR.search(actor) else None


def only_told(hit: Hit) -> bool:
    """Whether a fault is only words: quoted as in a mail (`> …`), or printed by the rollout manager for somebody else.

    A sample, a tool's output or a reward may begin like any program's error, and hold tracebacks of the code that a
    model wrote. The manager has no GPU: a fault that it does report comes with a logger's stamp, with the actor that it
    asked (`ray::`), or with frames of the programs of the job.
    """
    if hit.raw.lstrip().startswith(b"> "):  # Megatron begins lines so too, and none of them is a fault
        return True
    line = joblog.parse(hit.raw)
    if line.time is not None or (hit.label not in _OF_ANY_PROGRAM and hit.label not in _KNOWN.entries()):
        return False
    actor = line.actor or logplace.file_actor(hit.file)
    if actor is None or not _MANAGER.search(actor):
        return False
    breath = joblog.context(hit)
    remote = any(_REMOTE.search(joblog.parse(place.raw).message) for place in breath)
    return not (remote or any(_OF_THE_JOB.search(frame.file) for frame in joblog.frames(breath)))


def remote_methods(breath: Iterable[Placed]) -> tuple[str, ...]:
    """Return the methods of remote actors that a traceback names, as in `ray::MegatronTrainRayActor.train()`."""
    found = (_REMOTE.search(joblog.parse(place.raw).message) for place in breath)
    return tuple(match["method"] for match in found if match and match["method"])


def exception(breath: Iterable[Placed], after: int = 0) -> Placed | None:
    """Return the last line of a traceback, the exception itself, that stands behind line `after`."""
    for place in breath:
        if place.number > after and _EXCEPTION.match(joblog.parse(place.raw).message):
            return place
    return None


def innermost_first(breath: Sequence[Placed]) -> tuple[Frame, ...]:
    """Return the frames of a traceback from the one that raised outwards."""
    return tuple(reversed(joblog.frames(breath)))

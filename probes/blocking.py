"""How far CUDA_LAUNCH_BLOCKING=1 reaches, by the launch script: only then is the stack trace of a fault trustworthy.

A worker inherits the environment of its node's `ray start` and what the runtime env adds; an export after `ray start`
reaches neither. `--train-env-vars` (slime) reaches the trainers only. Invariant: the answer comes from what the script
does, never from text in it, so a comment, an `echo` and another value such as 10 say nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from enum import Enum

from probes.readers.environment import Reach, exported, passed, reach
from probes.settings import Settings, given
from runbook.finding import Citation

NAME = "CUDA_LAUNCH_BLOCKING"


class Blocking(Enum):
    """Which processes launch kernels one at a time.

    EVERYWHERE: all that Ray starts. HEAD: those on the node whose `ray start --head` follows the export. TRAINERS:
    slime's trainers. PERHAPS: a condition or the caller's environment decides. NOT_PASSED: it is set and nobody
    sees it. OFF: it is not set to 1. UNKNOWN: there is no training command to tell.
    """

    EVERYWHERE = "everywhere"
    HEAD = "head"
    TRAINERS = "trainers"
    PERHAPS = "perhaps"
    NOT_PASSED = "not-passed"
    OFF = "off"
    UNKNOWN = "unknown"


def blocking(settings: Settings) -> tuple[Blocking, tuple[Citation, ...]]:
    """Return how far the variable gets for the job of `settings`, with the lines that say so."""
    launch, job = settings.launch, settings.job
    if launch is None or job is None:
        return Blocking.UNKNOWN, ()
    state, citations = reach(launch, job, NAME, "1")
    if state in (Reach.RUNTIME_ENV, Reach.BEFORE_RAY):
        decides = passed(job, NAME) if state is Reach.RUNTIME_ENV else exported(launch, job, NAME)
        if decides is None or decides.default or not decides.sure:
            return Blocking.PERHAPS, citations
        return (Blocking.EVERYWHERE if state is Reach.RUNTIME_ENV else Blocking.HEAD), citations
    trainers = given(settings, "train-env-vars")
    if trainers is not None and trainers.value and _value(trainers.value) == "1":
        sure = trainers.sure and not trainers.default
        return (Blocking.TRAINERS if sure else Blocking.PERHAPS), (trainers.citation,)
    return (Blocking.NOT_PASSED if state is Reach.EXPORTED else Blocking.OFF), citations


def of_every_job(settings: Settings) -> Blocking:
    """Return how far it gets in each training command of the launch scripts; OFF when they do not agree.

    A log does not say which of several commands it is of.
    """
    states = {blocking(replace(settings, launch=launch, job=job))[0] for launch, job in settings.jobs}
    return states.pop() if len(states) == 1 else Blocking.OFF if states else Blocking.UNKNOWN


def _value(text: str) -> str:
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return str(decoded.get(NAME, "")) if isinstance(decoded, dict) else ""

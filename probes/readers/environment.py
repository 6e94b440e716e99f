"""How a variable of a launch script reaches the processes that Ray starts.

Ray: a worker gets the environment of the raylet on its node, which is that of `ray start`, plus env_vars of the
runtime env. A shell variable exported after `ray start`, or in front of `ray job submit`, is seen by neither.
"""

from __future__ import annotations

from enum import Enum

from probes.readers.launch_model import Job, Launch, Setting, cite_place
from runbook.finding import Citation


class Reach(Enum):
    """The furthest that a variable gets."""

    NOWHERE = 0
    OTHER_VALUE = 1
    EXPORTED = 2
    BEFORE_RAY = 3
    RUNTIME_ENV = 4


def passed(job: Job, name: str) -> Setting | None:
    """Return the variable as the runtime env has it."""
    return job.runtime_env.get(name)


def exported(launch: Launch, job: Job, name: str) -> Setting | None:
    """Return the variable as the shell has it: exported, or set in front of the command."""
    return launch.exports.get(name) or job.env.get(name)


def reach(launch: Launch, job: Job, name: str, value: str) -> tuple[Reach, tuple[Citation, ...]]:
    """Return how far `name=value` gets, with the lines that say so."""
    inside, outside = passed(job, name), exported(launch, job, name)
    lines = tuple(cite_place(one.place) for one in (inside, outside) if one is not None)
    if inside is not None and inside.value is not None:
        return (Reach.RUNTIME_ENV if inside.value == value else Reach.OTHER_VALUE), lines
    if outside is None or outside.value != value:
        return (Reach.NOWHERE if not lines else Reach.OTHER_VALUE), lines
    head = next((start for start in launch.ray_starts if start.head), None)
    before = head is not None and head.place.path == outside.place.path and outside.place.offset < head.place.offset
    return (Reach.BEFORE_RAY if before else Reach.EXPORTED), lines

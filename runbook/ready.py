"""What a probe package has done once in the fork server, so that every job's process starts with it done.

A job's process is forked from one that has the probe modules loaded; whatever these have worked out by then, and keep
in memory, costs nothing more. A value of `Ready` at module level of a probe module says what to work out. It must be
quick, read nothing of a run and start no thread, for the fork server waits for it and forks afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ready:
    """Something to do before the first job. run: does it, and keeps what it gives where the jobs will look."""

    run: Callable[[], object]

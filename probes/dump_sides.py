"""The rollouts of which a train dump exists, each put together from its ranks and joined with its rollout dump.

What every probe of log-probs compares, so that all of them measure the same. Invariants: at most MAX_ROLLOUTS rollouts
are read, the first two and the last among them; of one rollout all ranks, up to MAX_RANKS files; what cannot be read is
reported in `Read` and never counts as an answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from probes import dumps
from probes.dump_ranks import Whole, whole
from probes.dump_twins import Joined, join
from probes.dumps import Read
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump, DumpFile, read_dump
from runbook.evidence import Evidence
from runbook.probe import Progress

MAX_ROLLOUTS = 4
MAX_RANKS = 64


@dataclass(frozen=True)
class Sides:
    """One rollout. rollout_path: of its rollout dump, None when it was not needed or is not there."""

    whole: Whole
    joined: Joined
    rollout_path: str | None = None


def sides(
    evidence: Evidence,
    report: Progress,
    read: Read,
    *,
    at: int | None = None,
    cp_size: int | None = None,
    beside: str = "always",
) -> Iterator[Sides]:
    """Yield the rollouts in order.

    at: only this rollout, and files whose number only their content tells. cp_size: of the run's arguments. beside:
    read the rollout dump "always", "never", or "needed" where the train dump lacks the engine's log-probs.
    """
    groups = _groups(evidence, read, at)
    rollouts = dumps.spread(tuple(groups), MAX_ROLLOUTS)
    began, files = time.monotonic(), [file for key in rollouts for file in groups[key][:MAX_RANKS]]
    done = 0
    for key in rollouts:
        parts: list[Dump] = []
        for file in groups[key][:MAX_RANKS]:
            report(done, len(files), "dump")
            done += 1
            if time.monotonic() - began > dumps.SECONDS:
                break
            try:
                parts.append(read_dump(file))
                read.opened += 1
            except DumpError as error:
                read.faults.append(error)
        parts = [part for part in parts if at is None or part.rollout_id in (None, at)]
        if parts:
            try:
                yield _sides(evidence, read, whole(parts, cp_size), beside)
            except DumpError as error:
                read.faults.append(error)
    report(len(files), len(files), "dump")


def _groups(evidence: Evidence, read: Read, at: int | None) -> dict[str, list[DumpFile]]:
    """Return the train dumps by rollout; one whose number is not known stands alone."""
    groups: dict[str, list[DumpFile]] = {}
    for file in dumps.files_of(evidence, "train"):
        if at is None or file.rollout_id in (None, at):
            key = file.path if file.rollout_id is None else str(file.rollout_id)
            groups.setdefault(key, []).append(file)
            read.listed += 1
    return groups


def _sides(evidence: Evidence, read: Read, train: Whole, beside: str) -> Sides:
    lacks = beside == "needed" and any(
        sample.get("rollout_log_probs") is None and sample.get("log_probs") is not None for sample in train.samples
    )
    if beside == "always" or lacks:
        for file in dumps.files_of(evidence, "rollout"):
            if file.evaluation or train.rollout is None or file.rollout_id != train.rollout:
                continue
            try:
                return Sides(train, join(train.samples, read_dump(file).samples), file.path)
            except DumpError as error:
                read.faults.append(error)
    return Sides(train, join(train.samples, []))

"""Which of a cluster's jobs is slime's, and its command as a file that the launch reader reads.

Ray tells the entrypoint of every job as it was submitted, and the runtime env. A job is slime's when the launch reader
finds a training command in its entrypoint. Of several the newest that runs is meant, else the newest; where two began
in the same second nobody can tell, and none is. The command is written down as `ray job submit` would take it, so that
experiments can change it like any script; where its words would not survive that, the record is written down as Ray
told it, which the launch reader knows too.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from probes.readers.launch import read_launch_text
from probes.readers.ray_http import Address
from probes.readers.ray_state import Record
from runbook.text import sanitise

READ = 200
"""Newest jobs whose entrypoints are read."""
SAME_SECONDS = 1.0
_LIVE = ("RUNNING", "PENDING")
_SHELL = re.compile(r"[\n;&|<>()`$\\*?~#!\[\]{}]")


@dataclass(frozen=True)
class Job:
    """A job of a cluster.

    id: by which Ray's commands know it. submission: id of a submitted job, "" for a driver that was started by hand.
    job: id that its actors carry, "" before its driver began. started, ended: seconds since the epoch, 0 for not yet.
    training: the launch reader finds a training command in it.
    """

    record: Record
    id: str
    submission: str
    job: str
    status: str
    entrypoint: str
    started: float
    ended: float
    training: bool

    @property
    def live(self) -> bool:
        """Whether it waits for its driver or runs."""
        return self.status in _LIVE


def read_jobs(records: Sequence[Record]) -> list[Job]:
    """Return the newest jobs, the newest first."""
    found = sorted((_job(record) for record in records), key=lambda job: -job.started)[:READ]
    return [job for job in found if job.id]


def _job(record: Record) -> Job:
    submission, job = record.text("submission_id"), record.text("job_id")
    entrypoint = record.text("entrypoint")
    return Job(
        record,
        submission or job,
        submission if record.text("type") != "DRIVER" else "",
        job,
        record.text("status"),
        entrypoint,
        record.number("start_time") / 1000,
        record.number("end_time") / 1000,
        bool(read_launch_text("entrypoint", entrypoint.encode("utf-8", "replace")).jobs),
    )


def choose(jobs: Sequence[Job], wanted: str = "") -> tuple[Job | None, list[Job]]:
    """Return the job that is meant, None where nobody can tell, and the others that may be.

    jobs: candidates, the newest first. wanted: id of the job that a person named; then only that one counts.
    """
    if wanted:
        return next((job for job in jobs if wanted in (job.submission, job.job)), None), []
    pool = [job for job in jobs if job.live] or list(jobs)
    if not pool:
        return None, []
    if len(pool) > 1 and pool[0].started - pool[1].started < SAME_SECONDS:
        return None, pool
    return pool[0], pool[1:]


def written(job: Job, address: Address) -> bytes:
    """Return the job's command as the content of a launch script."""
    runtime = job.record.inner("runtime_env")
    head = f"# Job {sanitise(job.id, 200)}, as Ray's dashboard at {address.url} tells it.\n"
    if job.submission and not _SHELL.search(re.sub(r"'[^']*'", "", job.entrypoint)):
        options = f"--address={address.url} --runtime-env-json={shlex.quote(json.dumps(runtime))}"
        return f"{head}ray job submit {options} \\\n  -- {job.entrypoint}\n".encode("utf-8", "replace")
    kept = {"entrypoint": job.entrypoint, "runtime_env": runtime}
    return json.dumps(kept, indent=1).encode() + b"\n"

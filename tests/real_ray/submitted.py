"""A program: runs driver scripts on a real Ray cluster of its own as `ray job submit` does, and waits to be let go.

Ray's job supervisor is an actor that starts the driver as a child: the driver inherits a worker's environment, with
PYTHONBREAKPOINT in it, and gets RAY_ADDRESS and the job's runtime env (ray/dashboard/modules/job/job_supervisor.py).
The actor here does that without the dashboard, which plain `ray` does not ship. One line of JSON goes to stdout once
every driver has ended or waits for a debugger; after a line on stdin, another tells what each ended with.
Arguments: Ray's temporary folder, then folders with a train.py and an env.json; each gets a job.log.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

NODE = "127.0.0.2"
"""A loopback address other than 127.0.0.1, which Ray would replace by the machine's own."""
STORE_BYTES = 80 << 20
PATIENCE = 75.0
"""Seconds until a driver has ended or paused, on a loaded machine."""
WAITS = b"Waiting for debugger to attach"


class Supervisor:
    """What Ray's JobSupervisor does to start a driver."""

    def start(self, folder: str, address: str) -> None:
        """Start the driver of a folder; its output goes into the folder's job.log."""
        import os
        import subprocess

        passed = json.loads(Path(folder, "env.json").read_text())
        job = {"runtime_env": {"env_vars": passed}, "metadata": {"job_submission_id": "raysubmit_0123456789abcdef"}}
        environment = {
            **os.environ,
            **passed,
            "RAY_ADDRESS": address,
            "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps(job),
            "PYTHONUNBUFFERED": "1",
        }
        with Path(folder, "job.log").open("wb") as log:
            self.child = subprocess.Popen(
                [sys.executable, str(Path(folder, "train.py"))],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ended(self) -> int | None:
        """Return the driver's exit status, None while it runs."""
        return self.child.poll()

    def stop(self) -> None:
        """Kill the driver, if it still runs, with what it started (debugpy's adapter)."""
        import os
        import signal

        if self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()


def main(temporary: str, folders: list[str]) -> None:
    """Start the cluster, the drivers, and wait."""
    import ray

    context: Any = ray.init(
        num_cpus=len(folders),
        include_dashboard=False,
        object_store_memory=STORE_BYTES,
        log_to_driver=False,
        _temp_dir=temporary,
        _node_ip_address=NODE,
    )
    address = context.address_info["gcs_address"]
    actor = ray.remote(num_cpus=0)(Supervisor)
    jobs = {folder: actor.remote() for folder in folders}
    try:
        ray.get([job.start.remote(folder, address) for folder, job in jobs.items()], timeout=PATIENCE)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not all(_settled(job, folder) for folder, job in jobs.items()):
            time.sleep(0.2)
        print(json.dumps(_ended(jobs)), flush=True)
        sys.stdin.readline()
        print(json.dumps(_ended(jobs)), flush=True)
    finally:
        ray.get([job.stop.remote() for job in jobs.values()], timeout=20)
        ray.shutdown()


def _settled(job: Any, folder: str) -> bool:
    """Whether a driver has ended, or its log says that something waits for a debugger."""
    import ray

    return WAITS in Path(folder, "job.log").read_bytes() or ray.get(job.ended.remote()) is not None


def _ended(jobs: dict[str, Any]) -> dict[str, int | None]:
    """Return what each driver ended with, by the name of its folder."""
    import ray

    return {Path(folder).name: ray.get(job.ended.remote()) for folder, job in jobs.items()}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

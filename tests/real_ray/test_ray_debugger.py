"""The debugger on a real Ray: what a job prints is read rightly, and the address it gives is the one that listens.

One cluster runs all drivers, each started as `ray job submit` starts it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from probes.ray_debugger_cluster import cluster
from probes.ray_debugger_driver import driver
from probes.ray_debugger_no_core_worker import no_core_worker
from probes.ray_debugger_paused import paused
from probes.readers import logfiles
from probes.readers.debugger_lines import SIGNATURES, Stop, stops
from probes.readers.joblog import scan_job
from probes.readers.logscan import Coverage
from tests.probes.asking import ask, word
from tests.real_ray.dap import attach

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None or importlib.util.find_spec("debugpy") is None,
        reason="ray or debugpy is not installed",
    ),
]

ROOT = Path(__file__).parents[2]
STARTS = 150.0
"""Seconds until the cluster is up and every driver has ended or waits, on a loaded machine."""

BEFORE_INIT = """\
def train():
    import ray

    ray.init()


if __name__ == "__main__":
    breakpoint()
    train()
"""
IN_DRIVER = """\
import ray

if __name__ == "__main__":
    ray.init()
    breakpoint()
"""
IN_TASK = """\
import ray


@ray.remote
def step(value):
    breakpoint()
    return value + 1


if __name__ == "__main__":
    ray.init()
    assert ray.get(step.remote(1)) == 2
    print("the step is done")
"""
RAISES = """\
import ray


@ray.remote
class Trainer:
    def train(self):
        raise ValueError("the loss is bad")


if __name__ == "__main__":
    ray.init()
    ray.get(Trainer.remote().train.remote())
"""
JOBS: dict[str, tuple[str, dict[str, str]]] = {
    "before-init": (BEFORE_INIT, {}),
    "in-driver": (IN_DRIVER, {}),
    "in-task": (IN_TASK, {"RAY_DEBUG": "1"}),
    "post-mortem": (RAISES, {"RAY_DEBUG_POST_MORTEM": "1"}),
    "guide-spelling": (RAISES, {"RAY_DEBUG_POSTMORTEM": "1"}),
    "switched-off": (IN_TASK, {"RAY_DEBUG": "0"}),
}


class Ran(NamedTuple):
    """The jobs' folders, and what each had ended with when all had ended or paused (None: it waits)."""

    folders: dict[str, Path]
    ended: dict[str, int | None]

    def log(self, name: str) -> Path:
        """Return the log of a job."""
        return self.folders[name] / "job.log"

    def driver(self, name: str) -> str:
        """Return the driver of a job."""
        return str(self.folders[name] / "train.py")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Run every job on one cluster, and let the cluster live until the tests are done."""
    folders = {name: tmp_path_factory.mktemp(name, numbered=False) for name in JOBS}
    for name, (text, environment) in JOBS.items():
        (folders[name] / "train.py").write_text(text)
        (folders[name] / "env.json").write_text(json.dumps(environment))
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as short:
        # Ray's sockets do not fit into a longer path, and its token would else go into the home folder.
        Path(short, "ray").mkdir()
        token = Path(short, "token")
        token.write_text(uuid.uuid4().hex)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONBREAKPOINT"))}
        environment = {
            **own,
            "RAY_TMPDIR": short,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        command = [sys.executable, "-m", "tests.real_ray.submitted", str(Path(short, "ray"))]
        with Path(short, "err").open("wb") as err:
            program = subprocess.Popen(
                [*command, *map(str, folders.values())],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                start_new_session=True,
            )
        try:
            yield Ran(folders, _told(program, Path(short, "err")))
        finally:
            _end(program)


def _told(program: subprocess.Popen[bytes], err: Path) -> dict[str, int | None]:
    """Return the program's line of JSON."""
    assert program.stdout is not None
    until = time.monotonic() + STARTS
    while time.monotonic() < until:
        if not select.select([program.stdout], [], [], max(until - time.monotonic(), 0))[0]:
            break
        line = program.stdout.readline()
        if not line:
            break
        if line.startswith(b"{"):
            ended: dict[str, int | None] = json.loads(line)
            return ended
    raise AssertionError(f"the cluster did not come up: {err.read_text(errors='replace')[-2000:]}")


def _end(program: subprocess.Popen[bytes]) -> None:
    """Let the program end its cluster; where it does not, end its own processes."""
    try:
        program.communicate(b"\n", timeout=40)
    except (subprocess.TimeoutExpired, OSError):
        os.killpg(program.pid, signal.SIGKILL)
        program.wait(20)


def stop_in(log: Path) -> Stop:
    """Return the only stop that a log tells of."""
    (one,) = stops(scan_job(logfiles.expand([str(log)])[0], SIGNATURES, Coverage()))
    return one


def triage(folder: Path) -> Any:
    """Return what the command line says of a folder, as JSON."""
    command = [sys.executable, "-m", "runbook.cli.main", "triage", str(folder), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return json.loads(done.stdout)


def test_a_breakpoint_before_ray_init_ends_the_job(ran: Ran) -> None:
    """The driver really dies of the AttributeError, and triage of its log and driver confirms why, and only that."""
    assert ran.ended["before-init"] == 1
    assert word(ask(no_core_worker, ran.log("before-init"))) == "problem:no-core-worker"
    said = triage(ran.folders["before-init"])
    confirmed = [cause for cause in said["causes"] if cause["standing"] == "confirmed"]
    assert [cause["cause"] for cause in confirmed] == ["ray-debugger-core-worker"]
    cited = {Path(one["path"]).name: one["excerpt"].strip() for one in confirmed[0]["citations"]}
    assert cited["train.py"] == "breakpoint()"
    assert cited["job.log"] == "AttributeError: 'Worker' object has no attribute 'core_worker'"


def test_a_breakpoint_behind_ray_init_pauses_the_driver(ran: Ran) -> None:
    """The driver waits, and the bare ray.init() of a submitted job takes the job's cluster, not one of its own."""
    assert ran.ended["in-driver"] is None
    log = ran.log("in-driver")
    assert word(ask(driver, driver=ran.driver("in-driver"))) == "ok:init-before-breakpoint"
    assert word(ask(cluster, log)) == "ok:existing"
    finding = ask(paused, log)
    assert word(finding) == "warning:paused"
    assert "the driver" in finding.summary.en
    assert stop_in(log).host == "127.0.0.2"


def test_the_address_is_the_one_that_listens_and_the_job_goes_on(ran: Ran) -> None:
    """A debug adapter answers at the address read from the log; it stops in the task and, let go, the job goes on."""
    log = ran.log("in-task")
    assert ran.ended["in-task"] is None
    assert word(ask(driver, driver=ran.driver("in-task"))) == "ok:breakpoint-in-worker"
    stop = stop_in(log)
    finding = ask(paused, log)
    assert word(finding) == "warning:paused"
    assert f"{stop.host}:{stop.port}" in finding.summary.en
    assert (stop.actor, stop.attached) == ("step", None)
    client = attach(stop.host, stop.port)
    try:
        thread = client.wait("event", "stopped")["body"]["threadId"]
        client.send("stackTrace", threadId=thread)
        frames = client.wait("response", "stackTrace")["body"]["stackFrames"]
        assert frames[0]["name"] == "step"
        client.send("continue", threadId=thread)
        assert client.wait("response", "continue")["success"]
        until = time.monotonic() + 40
        while b"the step is done" not in log.read_bytes() and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        client.close()
    assert b"the step is done" in log.read_bytes()
    assert word(ask(paused, log)) == "ok:attached"
    assert stop_in(log).attached is not None


def test_only_rays_spelling_pauses_at_an_exception(ran: Ran) -> None:
    """With Ray's name the actor waits and no traceback is printed; with the guide's the job simply fails."""
    assert ran.ended["post-mortem"] is None
    assert word(ask(paused, ran.log("post-mortem"))) == "warning:paused"
    assert stop_in(ran.log("post-mortem")).actor == "Trainer"
    assert b"the loss is bad" not in ran.log("post-mortem").read_bytes()
    assert ran.ended["guide-spelling"] == 1
    assert word(ask(paused, ran.log("guide-spelling"))) == "ok:none"
    assert b"ValueError: the loss is bad" in ran.log("guide-spelling").read_bytes()


def test_another_value_of_ray_debug_passes_the_breakpoint(ran: Ran) -> None:
    """RAY_DEBUG=0 makes breakpoint() do nothing, without a word in the log."""
    assert ran.ended["switched-off"] == 0
    assert word(ask(paused, ran.log("switched-off"))) == "ok:none"

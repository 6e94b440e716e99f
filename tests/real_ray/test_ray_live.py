"""A live cluster, asked over HTTP alone: what its dashboard really answers is read rightly, and flows decide by it.

One cluster of three raylets with a dashboard, behind a token, runs all jobs; one of its nodes is killed.
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
from typing import Any

import pytest

from probes.ray_actors import actors
from probes.ray_in_log import ray_in_log
from probes.ray_job import job
from probes.ray_nodes import nodes
from probes.ray_placement import placement
from probes.ray_tasks import tasks
from probes.readers import ray_log
from probes.slots_ray import follow_command, follow_output
from runbook.evidence import Item, Reference
from runbook.finding import Finding
from runbook.text import Text
from tests.probes.asking import ask, word

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(280),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("ray", "aiohttp", "debugpy")),
        reason="ray[default] or debugpy is not installed",
    ),
]

ROOT = Path(__file__).parents[2]
STARTS = 200.0
"""Seconds until the cluster stands as it shall, on a loaded machine."""
FLAGS = (
    "--actor-num-nodes 1 --actor-num-gpus-per-node 8 --rollout-batch-size 32 --num-rollout 3 --hf-checkpoint /m "
    "--colocate"
)

HEAD = """\
import os, signal, time
import ray

@ray.remote(num_cpus=0)
class RolloutManager:
    def ready(self):
        return True

ray.init(namespace="slime")
stamp = time.strftime("[%Y-%m-%d %H:%M:%S] ")
print(stamp + "placement_group.py:125 - Creating placement group with 8 GPUs...", flush=True)
"""
DRIVERS = {
    "ends": """
print("[2026-08-21 10:00:00] model.py:918 - step 0: {'train/loss': 0.1, 'train/grad_norm': 0.2, 'train/step': 0}")
""",
    "dies": """
@ray.remote(num_cpus=0)
class MegatronTrainRayActor:
    def train(self):
        os.kill(os.getpid(), signal.SIGKILL)

manager = RolloutManager.remote()
ray.get(manager.ready.remote())
trainer = MegatronTrainRayActor.remote()
trainer.train.remote()  # nobody asks for the result, so the driver never hears of the death
time.sleep(600)
""",
    "engine": """
@ray.remote(num_cpus=0)
class SGLangEngine:
    def __init__(self):
        raise ValueError("the model path is no folder")

engine = SGLangEngine.remote()
time.sleep(600)
""",
    "node": """
@ray.remote(num_cpus=0, resources={"goes": 0.1})
class MegatronTrainRayActor:
    def train(self):
        time.sleep(600)

trainer = MegatronTrainRayActor.remote()
trainer.train.remote()
time.sleep(600)
""",
    "paused": """
@ray.remote(num_cpus=0)
def step():
    breakpoint()

ray.get(step.remote())
""",
    "waits": """
from ray.util.placement_group import placement_group

group = placement_group([{"GPU": 1, "CPU": 1}] * 8)
ray.get(group.ready())
""",
}


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file with the cluster's token."""
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(uuid.uuid4().hex)
    return path


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, token: Path) -> Iterator[str]:
    """Run every job on one cluster, and let the cluster live until the tests are done."""
    folder = tmp_path_factory.mktemp("jobs")
    for name, text in DRIVERS.items():
        place = folder / f"job-{name}"
        place.mkdir()
        (place / "train.py").write_text(HEAD + text)
        (place / "job.json").write_text(json.dumps({"entrypoint": f"{sys.executable} {place}/train.py {FLAGS}"}))
    with tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as short:
        # Ray's sockets do not fit into a longer path.
        own = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONBREAKPOINT"))}
        environment = {**own, "RAY_TMPDIR": short, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        with Path(short, "err").open("wb") as err:
            program = subprocess.Popen(
                [sys.executable, "-m", "tests.real_ray.cluster", short, str(folder)],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                start_new_session=True,
            )
        try:
            told = [_line(program, Path(short, "err")) for _ in range(2)]
            yield told[0]["url"]
        finally:
            _end(program)


def _line(program: subprocess.Popen[bytes], err: Path) -> dict[str, Any]:
    """Return the program's next line of JSON."""
    assert program.stdout is not None
    until = time.monotonic() + STARTS
    while select.select([program.stdout], [], [], max(until - time.monotonic(), 0))[0]:
        line = program.stdout.readline()
        if line.startswith(b"{"):
            told: dict[str, Any] = json.loads(line)
            return told
        if not line:
            break
    raise AssertionError(f"the cluster did not come up: {err.read_text(errors='replace')[-2000:]}")


def _end(program: subprocess.Popen[bytes]) -> None:
    """Let the program end its cluster; where it does not, end it."""
    try:
        program.communicate(b"\n", timeout=60)
    except (subprocess.TimeoutExpired, OSError):
        os.killpg(program.pid, signal.SIGKILL)
        program.wait(20)


@pytest.fixture(autouse=True)
def _as_its_user(token: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the token in the environment, and a cache of the test's own."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")


def named(url: str, name: str) -> str:
    """Return the address of a job's page."""
    return f"{url}/#/jobs/job-{name}"


def fetched(address: str) -> Path:
    """Return the log that discovery fetches."""
    (one,) = [each for each in follow_output(Item("ray", address, Text("", ""))) if isinstance(each, Reference)]
    return Path(one.path)


def asked(probe: Any, url: str, name: str) -> Finding:
    """Ask a probe of a job's live state alone."""
    return ask(probe, ray=named(url, name))


def triage(address: str) -> Any:
    """Return what the command line says with an address alone."""
    command = [sys.executable, "-m", "runbook.cli.main", "triage", "--ray", address, "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def confirmed(said: Any) -> list[str]:
    """Return the confirmed causes in order."""
    return [cause["cause"] for cause in said["causes"] if cause["standing"] == "confirmed"]


def test_an_address_alone_confirms_a_placement_group_that_never_comes(url: str) -> None:
    """Eight GPUs are asked, three are left: triage fetches command and log, and names what is asked and there."""
    said = triage(named(url, "waits"))
    assert confirmed(said) == ["ray-placement-pending"]
    assert {item["slot"] for item in said["evidence"]} >= {"ray", "launch", "log"}
    (finding,) = [each for each in said["findings"] if each["probe"] == "ray.placement"]
    assert (finding["verdict"], finding["answer"]) == ("problem", "pending")
    assert "waits for 8 GPU" in finding["summary"]
    assert "3 are registered" in finding["summary"]
    (count,) = [each for each in said["findings"] if each["probe"] == "launch.batch"]
    assert count["answer"] == "consistent"


def test_a_death_that_the_log_does_not_tell_is_confirmed(url: str) -> None:
    """A trainer was killed and nobody asked it anything: its cause is named from Ray's own record."""
    said = triage(named(url, "dies"))
    assert confirmed(said) == ["trainer-died"]
    finding = asked(actors, url, "dies")
    assert word(finding) == "warning:trainer-died"
    assert "SYSTEM_ERROR" in finding.summary.en


def test_a_constructor_that_raised_is_told_with_its_exception(url: str) -> None:
    """The exception is read from the text of its traceback; the pickle around it is not opened."""
    finding = asked(actors, url, "engine")
    assert word(finding) == "warning:engine-died"
    assert "ValueError: the model path is no folder" in finding.summary.en
    assert word(asked(tasks, url, "engine")) == "warning:failed"
    assert word(asked(placement, url, "engine")) == "ok:none"


def test_a_killed_node_is_told_and_is_no_trainers_fault(url: str) -> None:
    """Ray's reason for the node stands in the answer; the trainer that died with it is no cause of its own."""
    finding = asked(nodes, url, "node")
    assert word(finding) == "warning:dead"
    assert "127.0.0.7" in finding.summary.en
    assert "heartbeats" in finding.summary.en
    alone = asked(ray_in_log, url, "node")
    assert word(alone) == "unknown"
    assert "127.0.0.7" in alone.summary.en


def test_the_debuggers_address_is_the_one_that_the_task_printed(url: str) -> None:
    """The worker that a debugger holds is found among all, with the port at which it listens."""
    finding = asked(tasks, url, "paused")
    assert word(finding) == "warning:paused"
    (printed,) = [line for line in fetched(named(url, "paused")).read_text().splitlines() if "is listening on" in line]
    assert printed.rpartition(" ")[2] in finding.summary.en


def test_a_job_that_ended_is_fetched_once_and_whole(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file holds what the driver printed; the second look asks nothing about the log and finds the same file."""
    first = fetched(named(url, "ends"))
    text = first.read_text()
    assert text.endswith("step 0: {'train/loss': 0.1, 'train/grad_norm': 0.2, 'train/step': 0}\n")
    assert word(asked(job, url, "ends")) == "ok:succeeded"

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(ray_log, "get", refuse)
    assert fetched(named(url, "ends")) == first
    assert first.read_text() == text


def test_a_log_is_brought_up_to_date_where_it_joins_on(url: str) -> None:
    """Of a log that was cut off in the midst of a line, only what is missing is appended."""
    path = fetched(named(url, "waits"))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert fetched(named(url, "waits")) == path
    assert path.read_bytes().startswith(whole)


def test_the_command_is_written_down_as_it_was_submitted(url: str) -> None:
    """The launch script holds the flags of the entrypoint behind `ray job submit`."""
    (one,) = [
        each for each in follow_command(Item("ray", named(url, "ends"), Text("", ""))) if isinstance(each, Reference)
    ]
    text = Path(one.path).read_text()
    assert f"train.py {FLAGS}\n" in text
    assert text.splitlines()[1].startswith(f"ray job submit --address={url} ")


def test_without_the_token_nothing_is_known(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that wants a token is `unknown` with what to set, for every question."""
    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    for probe in (job, nodes, actors, placement, tasks, ray_in_log):
        finding = asked(probe, url, "waits")
        assert word(finding) == "unknown"
        assert "401" in finding.summary.en
        assert finding.settle_with is not None
        assert "RAY_AUTH_TOKEN" in finding.settle_with.en

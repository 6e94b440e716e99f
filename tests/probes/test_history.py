"""What holds for every probe of faults: what a job got past confirms nothing, and what is only told is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cuda_ima_in_log import ima_in_log
from probes.engine_in_log import engine_in_log
from probes.job_last_words import last_words
from probes.known_nccl import nccl_in_log
from probes.known_port import port_in_log
from probes.known_routing_replay import routing_replay_in_log
from probes.megatron_args_in_log import args_in_log
from probes.memory_oom_in_log import oom_in_log
from probes.ray_in_log import ray_in_log
from runbook.probe import Probe
from tests.probes import asking
from tests.probes.asking import STAMP, ask, table, word

START = ["Running entrypoint for job slime_1: python train.py", *table(load="/x", rank=0)]
TRAINER = "(MegatronTrainRayActor pid=7) "
ENGINE = "(SGLangEngine pid=9) "


def _works(*numbers: int) -> list[str]:
    """Return the lines of rollouts that were trained on."""
    return [line for n in numbers for line in (asking.rollout(n, rewards=0.5), asking.step(n, loss=0.5))]


DEATH = [
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "\tclass_name: MegatronTrainRayActor",
    "\tpid: 7",
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR",
]
FAULTS = [
    pytest.param(ima_in_log, [f"{TRAINER}CUDA error: an illegal memory access was encountered"], "ima", id="ima"),
    pytest.param(
        oom_in_log,
        [
            f"{STAMP}timer.py:24 - Timer actor_train start",
            f"{TRAINER}torch.OutOfMemoryError: CUDA out of memory. Tried",
        ],
        "train-step",
        id="oom",
    ),
    pytest.param(ray_in_log, DEATH, "actor-died", id="death"),
    pytest.param(
        engine_in_log,
        [
            f"{STAMP}http_utils.py:184 - Error: Status/503, retrying... (attempt 31/60, url=http://10.0.0.1:3000/generate)"
        ],
        "no-workers",
        id="router",
    ),
    pytest.param(
        engine_in_log, [f"{ENGINE}[2026-08-21 10:00:00 TP0] Scheduler hit an exception: x"], "crashed", id="sglang"
    ),
    pytest.param(port_in_log, ["OSError: [Errno 98] Address already in use"], "taken", id="port"),
    pytest.param(
        nccl_in_log,
        [f"{TRAINER}[rank0]:[E1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)"],
        "timeout",
        id="nccl",
    ),
    pytest.param(routing_replay_in_log, [f"{TRAINER}KeyError: 'routed_experts'"], "missing", id="routing"),
    pytest.param(
        args_in_log, ["AssertionError: hf_validate_args failed: hidden_size is 1, not 2"], "mismatch", id="args"
    ),
]
"""Probes, a fault of each, and its answer."""


def _word_of(probe: Probe, folder: Path, *lines: str) -> str:
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return word(ask(probe, path))


def _silent(probe: Probe) -> str:
    return probe.answers[0] if probe.answers[0] in ("none", "free", "clean", "no-complaint") else "none"


@pytest.mark.parametrize(("probe", "fault", "answer"), FAULTS)
def test_a_fault_of_an_earlier_attempt_is_history(tmp_path: Path, probe: Probe, fault: list[str], answer: str) -> None:
    """It is told as a warning under the answer that nothing is wrong now, and the lines of both are cited."""
    assert _word_of(probe, tmp_path, *START, *_works(0), *fault) == f"problem:{answer}"
    path = tmp_path / "job.log"
    path.write_text("\n".join([*START, *_works(0), *fault, *START, *_works(0)]) + "\n")
    finding = ask(probe, path)
    assert word(finding) == f"warning:{_silent(probe)}"
    assert "earlier attempt" in finding.summary.en
    begins = len(START) + 2 + len(fault) + 1
    assert begins in [citation.line for citation in finding.citations]


@pytest.mark.parametrize(("probe", "fault", "answer"), FAULTS)
def test_a_new_attempt_without_progress_takes_nothing_back(
    tmp_path: Path, probe: Probe, fault: list[str], answer: str
) -> None:
    """The death of the one before is still the news."""
    assert _word_of(probe, tmp_path, *START, *_works(0), *fault, *START) == f"problem:{answer}"


@pytest.mark.parametrize(("probe", "fault", "answer"), FAULTS)
def test_a_fault_after_which_the_job_went_on_did_not_end_it(
    tmp_path: Path, probe: Probe, fault: list[str], answer: str
) -> None:
    """Two further rollouts make it a warning, one does not, and the same fault at the end is a problem again."""
    before = [*START, *_works(0), *fault]
    assert _word_of(probe, tmp_path, *before, *_works(1)) == f"problem:{answer}"
    assert _word_of(probe, tmp_path, *before, *_works(1, 2)) == f"warning:{_silent(probe)}"
    assert _word_of(probe, tmp_path, *before, *_works(1, 2), *fault) == f"problem:{answer}"


def test_mixed_weights_stay_although_the_job_goes_on(tmp_path: Path) -> None:
    """An engine that took half an update is at fault until the job is started again."""
    fault = f"{ENGINE}[2026-08-21 10:00:00 TP0] Failed to update parameter online: x. The full weights are partially"
    lines = [*START, *_works(0), fault, *_works(1, 2, 3)]
    assert _word_of(engine_in_log, tmp_path, *lines) == "problem:update-failed"
    assert _word_of(engine_in_log, tmp_path, *lines, *START, *_works(0)) == "warning:none"


def test_a_fault_of_an_earlier_attempt_explains_no_later_death(tmp_path: Path) -> None:
    """A trainer that vanishes now did not die of what another attempt got past."""
    memory = f"{TRAINER}torch.OutOfMemoryError: CUDA out of memory. Tried"
    lines = [*START, *_works(0), memory, *START, *_works(0), *DEATH]
    assert _word_of(ray_in_log, tmp_path, *lines) == "problem:actor-died"


SAYS = "(RolloutManager pid=3) "


@pytest.mark.parametrize(
    "lines",
    [
        ["RuntimeError: CUDA error: an illegal memory access was encountered"],
        ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"],
        ["Traceback (most recent call last):", '  File "/tmp/run_7.py", line 3, in <module>',
         "RuntimeError: CUDA error: an illegal memory access was encountered"],
        ["Out of memory: Killed process 7 (python)"],
        ["OSError: [Errno 98] Address already in use"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("probe", [ima_in_log, oom_in_log, port_in_log, engine_in_log, ray_in_log, last_words])
def test_a_models_words_and_a_tools_output_are_no_fault(tmp_path: Path, probe: Probe, lines: list[str]) -> None:
    """What the rollout manager prints without a stamp is a sample, a tool's output or a reward's."""
    told = [f"{SAYS}{line}" for line in lines]
    assert _word_of(probe, tmp_path, *START, *_works(0), *told).startswith("ok:")


def test_what_the_manager_reports_itself_is_a_fault(tmp_path: Path) -> None:
    """An engine's fault that reached the manager comes with the actor it asked, or with frames of the job's code."""
    ima = f"{SAYS}RuntimeError: CUDA error: an illegal memory access was encountered"
    asked = f"{SAYS}ray.exceptions.RayTaskError(RuntimeError): ray::SGLangEngine.generate() (pid=9, ip=10.0.0.1)"
    opening, frame = (
        f"{SAYS}Traceback (most recent call last):",
        f'{SAYS}  File "/root/slime/ray/rollout.py", line 9, in f',
    )
    assert _word_of(ima_in_log, tmp_path, *START, opening, asked, ima) == "problem:ima"
    assert _word_of(ima_in_log, tmp_path, *START, opening, frame, ima) == "problem:ima"


def test_a_quoted_fault_is_only_told(tmp_path: Path) -> None:
    """A fault of another job that somebody pasted as a quotation, before or behind a healthy run, confirms nothing."""
    fault = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB."
    quoted = [f"> {line}" for line in ("Traceback (most recent call last):", fault)]
    healthy = (asking.DATA / "healthy.log").read_text()
    log = tmp_path / "job.log"
    for text in (healthy + "\n".join(quoted) + "\n", "\n".join(f"> {line}" for line in quoted) + "\n" + healthy):
        log.write_text(text)
        assert word(ask(oom_in_log, log)) == "ok:none"
    log.write_text(healthy + f"(MegatronTrainRayActor pid=9) {fault}\n")
    assert word(ask(oom_in_log, log)) != "ok:none"

"""With what words a job ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.job_last_words import last_words
from runbook.finding import Finding
from tests.probes import asking
from tests.probes.asking import DATA, HEALTHY, ask, word

START = [
    "Running entrypoint for job slime_1: python train.py",
    "[2026-08-21 10:00:00] placement_group.py:125 - Creating placement group with 8 GPUs...",
]
OPENING = "Traceback (most recent call last):"
DRIVER = ['  File "/root/slime/train.py", line 9, in <module>', "    main()"]
PACKAGE = ['  File "/usr/lib/python3/dist-packages/ray/worker.py", line 3, in get', "    raise value"]
REWARD = ['  File "/root/my_reward.py", line 11, in score', "    return d[k]"]
REMOTE = (
    "ray.exceptions.RayTaskError(KeyError): ray::RolloutManager.generate() (pid=9, ip=10.0.0.1, actor_id=3, repr=<x>)"
)
FAILED = "2026-08-21 10:05:00,218\tERR cli.py:74 -- \x1b[31mJob 'raysubmit_1' failed\x1b[39m"
SUCCEEDED = "2026-08-21 10:05:00,218\tSUCC cli.py:66 -- \x1b[32mJob 'raysubmit_1' succeeded\x1b[39m"


def _of(folder: Path, *lines: str) -> Finding:
    path = folder / "job.log"
    path.write_text("\n".join([*START, *lines]) + "\n")
    return ask(last_words, path)


def test_the_innermost_exception_of_a_remote_call_is_named(tmp_path: Path) -> None:
    """Class and words of the exception, the actor that raised it, and the job's own frame; both lines are cited."""
    finding = _of(tmp_path, OPENING, *DRIVER, *PACKAGE, REMOTE, *REWARD, *PACKAGE, "KeyError: 'label'")
    assert word(finding) == "warning:exception"
    for said in ("KeyError: 'label'", "RolloutManager", "score (my_reward.py:11)"):
        assert said in finding.summary.en
        assert said in finding.summary.zh
    assert [citation.line for citation in finding.citations] == [13, 9]


@pytest.mark.parametrize(
    "chain",
    [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ],
)
def test_of_a_chain_the_first_exception_is_the_root(tmp_path: Path, chain: str) -> None:
    """What was raised while the first was handled is its consequence."""
    finding = _of(tmp_path, OPENING, *REWARD, "OSError: gone", "", chain, "", OPENING, *DRIVER, "ValueError: bad")
    assert "OSError: gone" in finding.summary.en
    assert "ValueError" not in finding.summary.en


def test_an_actor_of_an_actor_is_the_innermost(tmp_path: Path) -> None:
    """An exception that crossed two actors is told with the one that raised it."""
    inner = "ray.exceptions.RayTaskError(KeyError): ray::SGLangEngine.init() (pid=4, ip=10.0.0.1, actor_id=5, repr=<x>)"
    finding = _of(tmp_path, OPENING, *DRIVER, REMOTE, *DRIVER, inner, *REWARD, "KeyError: 7")
    assert "KeyError: 7, raised in SGLangEngine" in finding.summary.en


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([f"(RolloutManager pid=9) {line}" for line in (OPENING, *REWARD, "KeyError: 1")], id="an actor's"),
        pytest.param([f"[2026-08-21 10:00:01] rollout.py:3 - failed: {OPENING}", *REWARD, "KeyError: 1"], id="logged"),
        pytest.param([OPENING, *REWARD, "KeyError: 1", "[2026-08-21 10:00:02] train.py:3 - goes on"], id="handled"),
        pytest.param(["It prints ' failed and Segmentation fault in a sentence of a sample"], id="words"),
        pytest.param([SUCCEEDED.replace("succeeded", "stopped")], id="stopped"),
    ],
)
def test_what_may_have_been_handled_is_no_end(tmp_path: Path, lines: list[str]) -> None:
    """Tracebacks of loggers and of actors, one with later words of its process, and words in a text say nothing."""
    assert word(_of(tmp_path, *lines)) == "ok:none"


def test_with_the_jobs_end_told_an_actors_traceback_counts(tmp_path: Path) -> None:
    """Ray says that the job failed, and the last traceback is all there is."""
    lines = [f"(MegatronTrainRayActor pid=9) {line}" for line in (OPENING, *REWARD, "KeyError: 1")]
    finding = _of(tmp_path, *lines, FAILED)
    assert word(finding) == "warning:exception"
    assert "raised in MegatronTrainRayActor" in finding.summary.en


def test_the_end_alone_is_told(tmp_path: Path) -> None:
    """Ray's word on the job, for better or worse."""
    assert word(_of(tmp_path, FAILED)) == "warning:failed"
    assert word(_of(tmp_path, SUCCEEDED)) == "ok:succeeded"


@pytest.mark.parametrize(
    "line",
    [
        "*** SIGSEGV received at time=1787306400 on cpu 3 ***",
        "Fatal Python error: Segmentation fault",
        "(MegatronTrainRayActor pid=7) Fatal Python error: Aborted",
        "(SGLangEngine pid=7) !!!!!!! Segfault encountered !!!!!!!",
        "run.sh: line 9: 77 Segmentation fault (core dumped) python train.py",
        "[node7:77:0:77] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)",
        "terminate called after throwing an instance of 'c10::Error'",
    ],
)
def test_a_fatal_signal_is_told(tmp_path: Path, line: str) -> None:
    """As the handlers of CPython, absl, UCX and libstdc++, and the shell, print it."""
    finding = _of(tmp_path, line)
    assert word(finding) == "warning:signal"
    assert finding.citations[0].line == 3


def test_an_end_that_another_attempt_got_past_is_history(tmp_path: Path) -> None:
    """A job that was started again and trains has not ended."""
    lines = [FAILED, *START, asking.rollout(0, rewards=0.5)]
    finding = _of(tmp_path, *lines)
    assert word(finding) == "warning:none"
    assert "earlier attempt" in finding.summary.en
    assert word(_of(tmp_path, FAILED, *START)) == "warning:failed"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_does_not_end_in_words(name: str) -> None:
    """Nothing is said of a job that goes on or ended well."""
    assert word(ask(last_words, DATA / f"{name}.log")) in ("ok:none", "ok:succeeded")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ray-cuda-oom", "torch.OutOfMemoryError: CUDA out of memory"),
        ("ray-engine-dies", "ray.exceptions.ActorDiedError: The actor died unexpectedly"),
        ("device-assert", "torch.AcceleratorError: CUDA error: device-side assert triggered"),
        ("iteration-absent", "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated"),
    ],
)
def test_real_logs_end_in_their_exception(name: str, said: str) -> None:
    """The last line of the traceback that ended a real job."""
    finding = ask(last_words, DATA / f"{name}.log")
    assert word(finding) == "warning:exception"
    assert said in finding.summary.en

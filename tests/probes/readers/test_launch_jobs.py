"""The training command in what Ray says of its jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.launch import read_launch_text
from probes.readers.launch_jobs import has_entrypoint, read_jobs

COMMAND = "python3 train.py --actor-num-nodes 1 --rollout-batch-size 32 --hf-checkpoint /m --colocate"
REPR = (
    "[JobDetails(type=<JobType.SUBMISSION: 'SUBMISSION'>, submission_id='raysubmit_X', status='RUNNING', "
    f"entrypoint='{COMMAND}', message='Job is running.', runtime_env={{'env_vars': {{'NCCL_NVLS_ENABLE': '0'}}}})]"
)
JSON = (
    '[{"type": "SUBMISSION",\n  "entrypoint": "cd /root/slime && ' + COMMAND + '",\n'
    '  "runtime_env": {"env_vars": {"NCCL_NVLS_ENABLE": "0"}}}]'
)
QUOTED = '{"entrypoint": "python3 train.py --num-rollout 1 --prompt-data \'a b\' --extra \\"c d\\""}'


@pytest.mark.parametrize(("text", "line", "env"), [(REPR, 1, ["NCCL_NVLS_ENABLE"]), (JSON, 2, ["NCCL_NVLS_ENABLE"])])
def test_both_forms_give_flags_and_environment(text: str, line: int, env: list[str]) -> None:
    """The repr of `ray job list` and the dashboard's JSON give the same job, cited at the entrypoint's line."""
    launch = read_launch_text("/jobs.txt", text.encode())
    (job,) = launch.jobs
    assert (launch.kind, job.entry) == ("jobs", "train.py")
    assert list(job.flags) == ["actor-num-nodes", "rollout-batch-size", "hf-checkpoint", "colocate"]
    assert {one.place.line for ones in job.flags.values() for one in ones} == {line}
    assert (list(job.runtime_env), job.has_runtime_env) == (env, True)


def test_a_line_of_a_ticket_and_a_bare_command_are_read() -> None:
    """What people copy is the command, with or without the word before it."""
    for text, kind in ((f"entrypoint: {COMMAND}\n", "jobs"), (COMMAND + "\n", "bash")):
        launch = read_launch_text("/note", text.encode())
        assert (launch.kind, launch.jobs[0].flags["hf-checkpoint"][-1].text) == (kind, "/m")


def test_escapes_are_undone() -> None:
    """Quotes of the command line are its own, not those of the JSON around it."""
    (job,) = read_launch_text("/jobs.json", QUOTED.encode()).jobs
    assert job.flags["prompt-data"][-1].text == "a b"
    assert job.flags["extra"][-1].text == "c d"


def test_several_jobs_stay_apart() -> None:
    """Each entrypoint is a job with the runtime env that follows it; what trains nothing is passed over."""
    text = (
        REPR
        + "\n"
        + REPR.replace("--colocate", "--rollout-num-gpus 8").replace("'0'", "'1'")
        + "\nentrypoint='ls -la'\n"
    )
    jobs = read_launch_text("/jobs.txt", text.encode()).jobs
    assert [max(set(job.flags) - {"hf-checkpoint"}) for job in jobs] == [
        "rollout-batch-size",
        "rollout-num-gpus",
    ]
    assert [job.runtime_env["NCCL_NVLS_ENABLE"].value for job in jobs] == ["0", "1"]


@pytest.mark.parametrize("text", ["", "my-entrypoint: x", "entrypoint = {", "ENTRYPOINT ['python', 'train.py']"])
def test_what_is_no_entrypoint(text: str) -> None:
    """Other words and a Dockerfile's list give no job."""
    assert not read_launch_text("/x", text.encode()).jobs


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    """Hostile bytes behind the word give a list of jobs or none, never an exception."""
    assert isinstance(has_entrypoint(data), bool)
    assert isinstance(read_jobs("/x", b"entrypoint='" + data + b"', runtime_env={" + data).jobs, list)

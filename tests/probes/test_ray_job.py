"""How slime's job stands, in Ray's words."""

from __future__ import annotations

import pytest

from probes.ray_job import job as ray_job
from tests.probes.asking import ask, word
from tests.probes.dashboard import NOW, Dashboard, job


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("RUNNING", "ok:running"),
        ("PENDING", "ok:pending"),
        ("SUCCEEDED", "ok:succeeded"),
        ("FAILED", "warning:failed"),
        ("STOPPED", "ok:stopped"),
        ("SOMETHING", "unknown"),
    ],
)
def test_each_status_is_an_answer(dashboard: Dashboard, status: str, said: str) -> None:
    """A failed job is a lead and no cause; a status that Ray does not know today is unknown."""
    dashboard.jobs(job(status=status))
    assert word(ask(ray_job, ray=dashboard.url)) == said


def test_a_failed_job_is_told_with_its_last_words(dashboard: Dashboard) -> None:
    """How long it ran, the last line of Ray's message, its command and the other jobs are shown; no secret value is."""
    dashboard.jobs(
        job(
            status="FAILED",
            end_time=int((NOW + 7200) * 1000),
            message="exit code 1, last logs:\n\nValueError: no",
            runtime_env={"env_vars": {"WANDB_API_KEY": "secret-value"}},
        ),
        job("older", began=NOW - 99, status="SUCCEEDED", entrypoint="echo"),
    )
    finding = ask(ray_job, ray=dashboard.url)
    assert finding.summary.en == "Job raysubmit_a failed after 2.0 h: ValueError: no."
    command, jobs = finding.tables
    assert ("flags", "4 of slime and Megatron") in command.rows
    assert ("runtime env", "WANDB_API_KEY") in command.rows
    assert [row[:3] for row in jobs.rows] == [
        ("raysubmit_a", "this one", "FAILED"),
        ("older", "-", "SUCCEEDED"),
    ]
    assert "secret-value" not in str(finding.tables)

"""Which job is slime's, and its command as a launch script that says exactly what was submitted."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.launch import read_launch_text
from probes.readers.ray_http import read_address
from probes.readers.ray_jobs import Job, choose, read_jobs, written
from probes.readers.ray_state import Record
from tests.probes.dashboard import ENTRY, job

ADDRESS = read_address("http://head:8265")


def jobs(*fields: dict[str, Any]) -> list[Job]:
    """Return jobs of a dashboard's records."""
    return read_jobs([Record(each, "jobs.json", 2, 0, json.dumps(each)) for each in fields])


def test_a_training_command_is_told_from_others() -> None:
    """Only an entrypoint with a training command is slime's; a driver that was started by hand has no submission."""
    found = jobs(
        job("a", began=3.0),
        job("b", began=2.0, entrypoint="python3 serve.py --model x"),
        job("c", began=1.0, type="DRIVER", submission_id=None, job_id="0c000000"),
    )
    assert [(one.id, one.training, one.submission) for one in found] == [
        ("a", True, "a"),
        ("b", False, "b"),
        ("0c000000", True, ""),
    ]


def test_the_newest_that_runs_is_meant() -> None:
    """One that runs comes before a newer one that ended; of those that ended the newest counts."""
    ended: dict[str, Any] = {"status": "FAILED", "end_time": 9000}
    old, new, over = job("old", began=1.0), job("new", began=5.0), job("over", began=9.0, **ended)
    chosen, others = choose(jobs(old, new, over))
    assert chosen is not None
    assert (chosen.id, [one.id for one in others]) == ("new", ["old"])
    chosen, others = choose(jobs(over, job("older", began=2.0, **ended)))
    assert chosen is not None
    assert (chosen.id, [one.id for one in others]) == ("over", ["older"])


def test_two_that_began_together_are_not_told_apart() -> None:
    """Within a second neither is taken, but for one that a person names, by either id."""
    pair = jobs(job("a", began=5.0), job("b", "0b000000", began=5.4))
    assert choose(pair)[0] is None
    assert len(choose(pair)[1]) == 2
    for name in ("b", "0b000000"):
        named, others = choose(pair, name)
        assert named is not None
        assert (named.id, others) == ("b", [])
    assert choose(pair, "c") == (None, [])
    assert choose([]) == (None, [])


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY,
        "python3 train.py --rollout-batch-size 4 --prompt-data '/data/a b.jsonl' --num-rollout 2",
        "cd /root/slime && python3 train.py --rollout-batch-size 4 --num-rollout 2",
        "bash -c 'python3 train.py --rollout-batch-size 4 --num-rollout 2'",
        "python3 train.py --rollout-batch-size 4 --save-debug-rollout-data /d/{rollout_id}.pt --num-rollout 2",
    ],
)
def test_the_written_command_says_what_was_submitted(entry: str) -> None:
    """The launch reader finds the same flags and the runtime env in the file as in the entrypoint."""
    (one,) = jobs(job(entrypoint=entry, runtime_env={"env_vars": {"KEY": 'it\'s "x" $HOME'}, "working_dir": "gcs://x"}))
    read = read_launch_text("launch.sh", written(one, ADDRESS))
    direct = read_launch_text("entrypoint", entry.encode())
    assert len(read.jobs) == len(direct.jobs) == 1
    flags, wanted = read.jobs[0].flags, direct.jobs[0].flags
    assert {name: [each.shown for each in uses] for name, uses in flags.items()} == {
        name: [each.shown for each in uses] for name, uses in wanted.items()
    }
    assert read.jobs[0].runtime_env["KEY"].value == 'it\'s "x" $HOME'


def test_a_plain_command_is_a_command() -> None:
    """It is what `ray job submit` would take, so that an experiment can change it."""
    (one,) = jobs(job())
    text = written(one, ADDRESS).decode()
    assert shlex.split(text.partition("\n")[2].replace("\\\n", ""))[:5] == [
        "ray", "job", "submit", "--address=http://head:8265", '--runtime-env-json={"env_vars": {"A": "1"}}',
    ]  # fmt: skip


@given(st.text(max_size=80), st.text(max_size=20))
def test_hostile_records_are_written_without_harm(entry: str, name: str) -> None:
    """Whatever a server tells, the file can be read, and a name with a line break begins no second command."""
    for one in jobs(job(name or "x", entrypoint=entry), job("y\nrm -rf /", entrypoint=ENTRY)):
        content = written(one, ADDRESS)
        read_launch_text("launch.sh", content)
        assert b"\nrm -rf" not in content


@given(st.dictionaries(st.sampled_from(list(job())), st.none() | st.integers() | st.text() | st.lists(st.integers())))
def test_fields_of_other_types_break_nothing(fields: dict[str, Any]) -> None:
    """A record whose fields are of other types than Ray's is a job with what is left, or none."""
    for one in jobs({**job(), **fields}):
        written(one, ADDRESS)
        choose([one])

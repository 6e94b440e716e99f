"""Flags from the launch script and the arguments table, and when a flag is certainly absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.settings import given, number, read_settings, scripted, switched
from tests.helpers import evidence_of
from tests.probes.scripts import PLACED, script, table, write


def test_the_table_wins_over_the_script(tmp_path: Path) -> None:
    """What Megatron printed is what applied; a row of None means not given."""
    run = write(tmp_path, "run.sh", script("--load /a", "--num-rollout 5", *PLACED))
    log = write(tmp_path, "job.log", "first line\n" + table(load="/b", num_rollout=None, colocate=True))
    settings = read_settings(evidence_of(("launch", run), ("log", log)))
    load = given(settings, "load")
    assert load is not None
    assert (load.value, load.citation.path, load.citation.line) == ("/b", log, 4)
    assert given(settings, "num-rollout") is None
    script_load = scripted(settings, "load")
    assert script_load is not None
    assert script_load.value == "/a"
    assert switched(settings, "colocate")[0] is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (script(*PLACED), False),
        (script(*PLACED, whole=False), None),
        (script(*PLACED, "--colocate $EXTRA"), None),
        (script(*PLACED, before="source /nowhere/env.sh"), None),
        (script(*PLACED, before="source /nowhere/models/toy.sh"), False),
        (script("--debug-train-only"), True),
    ],
)
def test_absence_needs_a_whole_command(tmp_path: Path, text: str, expected: bool | None) -> None:
    """A few quoted flags, unknown words or an unread file leave a switch open; a missing model script does not."""
    settings = read_settings(evidence_of(("launch", write(tmp_path, "run.sh", text))))
    assert switched(settings, "debug-train-only")[0] is expected


def test_model_flags_are_only_absent_with_the_model_script(tmp_path: Path) -> None:
    """Without the sourced MODEL_ARGS nothing is said of the model's own switches."""
    missing = write(tmp_path, "a.sh", script(before="source /nowhere/models/toy.sh"))
    there = write(tmp_path, "b.sh", script("--num-layers 8"))
    assert switched(read_settings(evidence_of(("launch", missing))), "moe-permute-fusion", of_model=True)[0] is None
    assert switched(read_settings(evidence_of(("launch", there))), "moe-permute-fusion", of_model=True)[0] is False


def test_numbers_have_defaults_only_when_absence_is_certain(tmp_path: Path) -> None:
    """A default is taken for a flag that is not given, never for one whose value is unknown."""
    settings = read_settings(evidence_of(("launch", write(tmp_path, "run.sh", script("--num-rollout $N")))))
    assert number(settings, "actor-num-nodes", 1)[0] == 1
    assert number(settings, "num-rollout", 1)[0] is None


def test_a_trace_stands_in_for_the_script(tmp_path: Path) -> None:
    """Without a launch script the expanded command in the log is read."""
    log = write(tmp_path, "job.log", "+ ray job submit -- python3 train.py --hf-checkpoint /m --rollout-batch-size 8\n")
    settings = read_settings(evidence_of(("log", log)))
    found = given(settings, "hf-checkpoint")
    assert found is not None
    assert (found.value, found.citation.line) == ("/m", 1)
    assert settings.whole


def test_the_last_table_of_a_log_counts(tmp_path: Path) -> None:
    """A log that holds two jobs is read by its later table."""
    log = write(tmp_path, "job.log", table(lr=1) + "between\n" + table(lr=2))
    found = given(read_settings(evidence_of(("log", log))), "lr")
    assert found is not None
    assert found.value == "2"


def test_no_evidence_is_no_setting() -> None:
    """Nothing given means nothing known."""
    settings = read_settings(evidence_of(("launch", "/nowhere"), ("log", "/nowhere")))
    assert not settings.known
    assert given(settings, "load") is None
    assert switched(settings, "colocate") == (None, None)

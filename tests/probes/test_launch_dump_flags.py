"""Debug flags: templates, shared paths, flags that exclude each other, and SFT."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_dump_flags import dump_flags
from runbook.finding import Verdict
from tests.helpers import evidence_of
from tests.probes.asking import ask_of, word
from tests.probes.scripts import PLACED, ask_script, cited, script, write

SFT = "--rollout-function-path slime.rollout.sft_rollout.generate_rollout"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), "ok:none"),
        (("--save-debug-rollout-data /d/{rollout_id}.pt",), "ok:fine"),
        (
            ('--save-debug-rollout-data "/d/x_{rollout_id}.pt"', "--save-debug-train-data /d/t_{rollout_id}_{rank}.pt"),
            "ok:fine",
        ),
        (("--save-debug-rollout-data ${OUT}/{rollout_id}.pt",), "ok:fine"),
        (("--save-debug-rollout-data ${OUT}",), "unknown"),
        (("--save-debug-rollout-data /d/x.pt", "--num-rollout 1"), "ok:fine"),
        (("--dump-details /d", "--save-debug-rollout-data /d/x.pt"), "ok:fine"),
        (("--load-debug-rollout-data /d/one.pt",), "ok:fine"),
        ((SFT, "--debug-train-only"), "ok:fine"),
        ((SFT, "--rollout-num-gpus 0"), "ok:none"),
        (("--loss-type sft_loss", "--rollout-function-path mine.generate"), "ok:none"),
        (("--debug-rollout-only", "--save-debug-rollout-data /d/{rollout_id}.pt"), "ok:fine"),
    ],
)
def test_sound_flags_pass(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """Templates, one rollout only, --dump-details, a fixed input and SFT with its partner are fine."""
    assert word(ask_script(dump_flags, tmp_path, script(*PLACED, *flags))) == expected


@pytest.mark.parametrize(
    ("flags", "answer", "proof"),
    [
        (("--save-debug-rollout-data /d/x.pt",), "no-template", "--save-debug-rollout-data /d/x.pt"),
        (("--save-debug-train-data=/d/x.pt",), "no-template", "--save-debug-train-data=/d/x.pt"),
        (("--save-debug-rollout-data /d/{step}.pt",), "no-template", "--save-debug-rollout-data /d/{step}.pt"),
        (
            ("--save-debug-rollout-data /d/{rollout_id}_{rank}.pt",),
            "no-template",
            "--save-debug-rollout-data /d/{rollout_id}_{rank}.pt",
        ),
        (
            ("--save-debug-rollout-data ${O}/{rollout_id}.pt", "--save-debug-train-data ${O}/{rollout_id}.pt"),
            "same-path",
            "--save-debug-rollout-data ${O}/{rollout_id}.pt",
        ),
        (("--debug-rollout-only", "--debug-train-only"), "conflict", "--debug-rollout-only"),
        (("--load-debug-rollout-data /d/{rollout_id}.pt", "--debug-rollout-only"), "conflict", "--debug-rollout-only"),
        ((SFT, "--loss-type sft_loss"), "sft-without-debug-train-only", SFT),
    ],
)
def test_faults_are_proven_by_their_line(tmp_path: Path, flags: tuple[str, ...], answer: str, proof: str) -> None:
    """Each fault cites the flag that is wrong."""
    finding = ask_script(dump_flags, tmp_path, script(*PLACED, *flags))
    assert word(finding) == f"problem:{answer}"
    assert cited(finding)[0] == proof


@pytest.mark.parametrize(
    "text", [script(SFT, whole=False), script(SFT, "--colocate $X"), "echo\n", script(whole=False)]
)
def test_a_command_that_is_not_whole_proves_no_absence(tmp_path: Path, text: str) -> None:
    """--debug-train-only may stand in the part that is not known."""
    assert word(ask_script(dump_flags, tmp_path, text)) == "unknown"


def test_a_commented_flag_is_not_given(tmp_path: Path) -> None:
    """A flag behind a # in an array does not count."""
    assert word(ask_script(dump_flags, tmp_path, script("# --save-debug-rollout-data /d/x.pt"))) == "ok:none"


@pytest.mark.parametrize(
    ("version", "expected"), [("0.2.4", "problem:no-template"), ("v0.3.1", "problem:no-template"), ("0.4.0", "ok:fine")]
)
def test_ranks_overwrite_each_other_in_older_versions(tmp_path: Path, version: str, expected: str) -> None:
    """Up to v0.3.1 every rank wrote the train dump, so its path needs {rank}; later one writer does."""
    versions = write(tmp_path, "versions.txt", f"slime=={version}\n")
    text = script("--save-debug-train-data /d/{rollout_id}.pt")
    assert word(ask_script(dump_flags, tmp_path, text, versions=versions)) == expected


def test_the_worst_of_several_jobs_is_told(tmp_path: Path) -> None:
    """A script may submit twice; a fault in either is a fault."""
    text = (
        script("--save-debug-rollout-data /d/{rollout_id}.pt") + "python3 train.py --save-debug-rollout-data /d/x.pt\n"
    )
    assert word(ask_script(dump_flags, tmp_path, text)) == "problem:no-template"


def test_a_debug_flag_behind_a_condition_is_not_absent(tmp_path: Path) -> None:
    """Where only a condition tells whether there is a debug flag, the answer is not that there is none."""
    path = tmp_path / "run.sh"
    path.write_text(
        'A=(--colocate)\nif [ "$1" = debug ]; then A+=(--debug-rollout-only); fi\n'
        "ray job submit -- python3 train.py --actor-num-nodes 1 ${A[@]}\n"
    )
    finding = ask_of(dump_flags, evidence_of(("launch", path)))
    assert finding.verdict is Verdict.UNKNOWN
    assert [(one.line, one.path) for one in finding.citations] == [(2, str(path))]

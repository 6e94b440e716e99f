"""The runs that tell the halves apart, in a run's own numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.launch_parallel_layout import parallel_layout
from probes.separate_plan import plan
from runbook.finding import Finding
from tests.probes.asking import word
from tests.probes.scripts import PLACED, ask_script, script, write

RUN = (
    *PLACED,
    "--num-rollout 3000",
    "--n-samples-per-prompt 8",
    "--global-batch-size 256",
    "--rollout-num-gpus-per-engine 2",
    "--load /ckpt/run",
    "--save /ckpt/run/",
    "--save-interval 20",
    "--eval-interval 20",
    "--num-layers 36",
    "--hidden-size 4096",
    "--num-attention-heads 32",
)


def rows(finding: Finding) -> list[tuple[str, ...]]:
    """Return the rows of the plan."""
    return list(finding.tables[0].rows)


def applied(text: str, diff: str) -> str:
    """Return a text after a unified diff, so far as lines are taken away and put in."""
    lines, at = text.splitlines(), 0
    out: list[str] = []
    for line in diff.splitlines()[2:]:
        if match := re.match(r"@@ -(\d+)", line):
            out += lines[at : int(match[1]) - 1]
            at = int(match[1]) - 1
        elif line.startswith("+"):
            out.append(line[1:])
        else:
            assert lines[at] == line[1:]
            out += [] if line.startswith("-") else [lines[at]]
            at += 1
    return "\n".join([*out, *lines[at:]]) + "\n"


def test_rollout_alone_takes_one_engine(tmp_path: Path) -> None:
    """The GPUs are those of one engine, the dump goes beside the checkpoints, and one rollout is made."""
    finding = ask_script(plan, tmp_path, script(*RUN))
    assert word(finding) == "ok:planned"
    title, flags, gpus, _ = rows(finding)[0]
    assert (title, gpus) == ("rollout alone, one engine", "2")
    for flag in ("--debug-rollout-only", "--rollout-num-gpus 2", "--num-rollout 1"):
        assert flag in flags
    assert "--save-debug-rollout-data /ckpt/run/separate/rollout_{rollout_id}.pt" in flags


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), []),
        (("--context-parallel-size 4", "--tensor-model-parallel-size 2"), [("CP 4 -> 1", "2"), ("TP 2 -> 1", "4")]),
        (("--pipeline-model-parallel-size 2",), [("PP 2 -> 1", "4")]),
        (
            ("--num-experts 8", "--expert-model-parallel-size 8", "--expert-tensor-parallel-size 1"),
            [("EP 8 -> 1", "8")],
        ),
    ],
)
def test_each_size_is_brought_to_one(tmp_path: Path, flags: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    """The data-parallel size is kept: 8 GPUs of CP 4 x TP 2 are 2 without CP and 4 without TP."""
    finding = ask_script(plan, tmp_path, script(*RUN, *flags))
    assert [(row[0].removeprefix("replay with "), row[2]) for row in rows(finding)[2:]] == expected


def test_the_changed_scripts_hold_what_slime_asks_for(tmp_path: Path) -> None:
    """Every patch applies, breaks no rule of the layout, and no replay writes over the run's checkpoints."""
    text = script(*RUN, "--pipeline-model-parallel-size 2", "--decoder-first-pipeline-num-layers 17")
    finding = ask_script(plan, tmp_path, text)
    assert [one.name for one in finding.proposals] == ["rollout-alone.patch", "replay.patch", "replay-pp1.patch"]
    for number, proposal in enumerate(finding.proposals):
        changed = applied(text, proposal.diff)
        folder = tmp_path / str(number)
        assert ("--save /ckpt" in changed) is (number == 0)
        answer = word(ask_script(parallel_layout, folder, changed))
        assert answer == ("not_applicable" if number == 0 else "ok:valid")


@pytest.mark.parametrize(("versions", "there"), [("slime==0.3.1\n", True), ("slime==0.3.2\n", False), ("", False)])
def test_every_rank_writes_its_own_in_old_releases(tmp_path: Path, versions: str, there: bool) -> None:
    """Up to v0.3.1 the path of the train dump needs {rank}."""
    more = {"versions": write(tmp_path, "v.txt", versions)} if versions else {}
    finding = ask_script(plan, tmp_path, script(*RUN), **more)
    replay = next(one for one in finding.proposals if one.name == "replay.patch")
    assert ("train_{rollout_id}_{rank}.pt" in replay.diff) is there


@pytest.mark.parametrize("flags", [("--rollout-num-gpus-per-engine ${E}",), ("--actor-num-nodes ${N}",)])
def test_unknown_sizes_leave_it_open(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A plan without numbers would be none; the flag is named."""
    finding = ask_script(plan, tmp_path, script(*RUN, *flags))
    assert word(finding) == "unknown"
    assert flags[0].split()[0] in finding.summary.en


def test_without_a_save_folder_the_place_is_left_to_the_person(tmp_path: Path) -> None:
    """Where no shared folder is known, the path has a placeholder."""
    assert "/DIR/rollout_{rollout_id}.pt" in ask_script(plan, tmp_path, script(*PLACED)).summary.en


@pytest.mark.parametrize("text", ["", "\x00\x1b[2J", "echo hi"])
def test_no_command_no_plan(tmp_path: Path, text: str) -> None:
    """A file without a job leaves it open."""
    assert word(ask_script(plan, tmp_path, text)) == "unknown"

"""The changed copy of a launch script: what it says when read again, and how a person would find it written."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.readers.launch import read_launch_text
from probes.readers.launch_model import Job
from probes.script_change import change_script
from runbook.changing import Changed, unified
from runbook.errors import EvidenceError
from runbook.flow.model import Change

DATA = Path(__file__).parents[1] / "data" / "launch"
TOY, LAUNCHER = DATA / "toy.sh", DATA / "toy_launcher.txt"
SUBMIT = "ray job submit -- python3 train.py --actor-num-nodes 1 --colocate"


def changed(tmp_path: Path, text: str, change: Change, name: str = "run.sh") -> Changed:
    """Change a script that says `text`, and check that the original is as it was."""
    path = tmp_path / name
    path.write_bytes(text.encode())
    result = change_script(str(path), change)
    assert path.read_bytes() == text.encode()
    return result


def job(result: Changed) -> Job:
    """Return the only training command of a changed copy."""
    (only,) = read_launch_text(result.of, result.text.encode("utf-8", "surrogateescape")).jobs
    return only


def edit(before: str, result: Changed) -> list[str]:
    """Return the lines that a change took out and put in."""
    lines = unified(before, result.text, "run.sh").splitlines()
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_add_goes_to_the_array_of_its_kin() -> None:
    """A flag is put after its nearest kin, on a line of its own, with the indentation found there."""
    result = change_script(str(TOY), Change(add=("--sglang-disable-cuda-graph",)))
    after = result.text.splitlines()
    at = after.index("   --sglang-disable-cuda-graph")
    assert after[at - 1] == "   --sglang-cuda-graph-bs 1 2 4 $(seq 8 8 24)"
    assert edit(TOY.read_text(), result) == ["+   --sglang-disable-cuda-graph"]
    assert not result.left


def test_set_replaces_the_occurrence_that_argparse_obeys() -> None:
    """Of two occurrences the last one is changed, and the note says what it was."""
    result = change_script(str(TOY), Change(set={"--rollout-temperature": "0.5"}))
    assert edit(TOY.read_text(), result) == ["-   --rollout-temperature=1", "+   --rollout-temperature 0.5"]
    assert "--rollout-temperature 1 becomes --rollout-temperature 0.5." in [note.en for note in result.notes]


def test_remove_takes_every_occurrence_and_its_line() -> None:
    """A removed flag leaves no empty line, and a comment that names it stays."""
    result = change_script(str(TOY), Change(remove=("--rollout-temperature", "--hf-checkpoint")))
    assert edit(TOY.read_text(), result) == [
        "-   --hf-checkpoint /models/toy-Instruct",
        "-   --rollout-temperature 0.8 # later flags win",
        "-   --rollout-temperature=1",
    ]
    assert "   #--hf-checkpoint /models/toy-FP8" in result.text.splitlines()


def test_last_line_of_a_continued_command(tmp_path: Path) -> None:
    """Removing the last line of a command also takes the backslash that led to it."""
    text = "ray job submit -- python3 train.py \\\n   --actor-num-nodes 1 \\\n   --colocate\necho done\n"
    result = changed(tmp_path, text, Change(remove=("--colocate",)))
    assert result.text == "ray job submit -- python3 train.py \\\n   --actor-num-nodes 1\necho done\n"


def test_add_to_a_command_keeps_its_continuations(tmp_path: Path) -> None:
    """A flag added behind the last line of a command continues it."""
    text = "ray job submit -- python3 train.py \\\n   --actor-num-nodes 1\necho done\n"
    result = changed(tmp_path, text, Change(add=("--no-offload-rollout",)))
    want = "ray job submit -- python3 train.py \\\n   --actor-num-nodes 1 \\\n   --no-offload-rollout\necho done\n"
    assert result.text == want


def test_one_line_command_and_array(tmp_path: Path) -> None:
    """Flags that share a line are changed inside it."""
    text = f"A=(--lr 1e-6 --sglang-mem-fraction-static 0.8)\n{SUBMIT} ${{A[@]}}\n"
    result = changed(tmp_path, text, Change(remove=("--colocate",), set={"--sglang-mem-fraction-static": "0.6"}))
    first, second = result.text.splitlines()
    assert first == "A=(--lr 1e-6 --sglang-mem-fraction-static 0.6)"
    assert second == "ray job submit -- python3 train.py --actor-num-nodes 1 ${A[@]}"


def test_variable_in_the_escaped_runtime_env() -> None:
    """A variable is put into the runtime env with the quoting that it has."""
    result = change_script(str(TOY), Change(env={"CUDA_LAUNCH_BLOCKING": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "8"}))
    assert edit(TOY.read_text(), result) == [
        '+    \\"CUDA_LAUNCH_BLOCKING\\": \\"1\\",',
        '-    \\"CUDA_DEVICE_MAX_CONNECTIONS\\": \\"1\\",',
        '+    \\"CUDA_DEVICE_MAX_CONNECTIONS\\": \\"8\\",',
    ]
    variables = job(result).runtime_env
    assert variables["CUDA_LAUNCH_BLOCKING"].value == "1"
    assert variables["CUDA_DEVICE_MAX_CONNECTIONS"].value == "8"


@pytest.mark.parametrize(
    "submit",
    [
        """ray job submit --runtime-env-json='{"env_vars": {"A": "1"}}' -- python3 train.py --colocate""",
        """ray job submit --runtime-env-json '{"env_vars": {}}' -- python3 train.py --colocate""",
        """ray job submit --runtime-env-json="{\\"env_vars\\": {\\"A\\": \\"1\\"}}" -- python3 train.py --colocate""",
        "ray job submit -- python3 train.py --colocate",
        "CUDA_DEVICE_MAX_CONNECTIONS=1 python3 train.py --colocate --actor-num-nodes 1",
    ],
)
def test_variable_reaches_the_job(tmp_path: Path, submit: str) -> None:
    """Whatever way a command gets its variables, the new one is among them and none is lost."""
    before = changed(tmp_path, submit + "\n", Change())
    result = changed(tmp_path, submit + "\n", Change(env={"NCCL_ALGO": "Ring"}))
    launch = read_launch_text(result.of, result.text.encode())
    (after,) = launch.jobs
    names = {**launch.exports, **after.env, **after.runtime_env}
    assert names["NCCL_ALGO"].value == "Ring"
    assert set(job(before).runtime_env) <= set(after.runtime_env)
    assert not result.left


def test_python_launcher(tmp_path: Path) -> None:
    """In a Python launcher a flag gets a string of its own; braces and variables follow the language."""
    text = LAUNCHER.read_text()
    change = Change(
        add=("--debug-rollout-only",),
        set={"--save-debug-rollout-data": "/d/{rollout_id}.pt", "--rollout-batch-size": "8"},
        env={"NCCL_ALGO": "Ring"},
    )
    result = changed(tmp_path, text, change, "launcher.py")
    after = job(result)
    assert not result.left
    assert [after.flags[name][-1].shown for name in ("debug-rollout-only", "rollout-batch-size")] == ["", "8"]
    assert after.flags["save-debug-rollout-data"][-1].text == "/d/{rollout_id}.pt"
    assert {name: one.value for name, one in after.runtime_env.items()} == {
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_ALGO": "Ring",
    }
    assert '        # "--debug-rollout-only "' in result.text.splitlines()
    ast.parse(result.text)


def test_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    """Adding what is there and removing what is not change nothing and are told."""
    text = SUBMIT + "\n"
    result = changed(tmp_path, text, Change(add=("--colocate",), remove=("--use-tis",)))
    assert result.text == text
    assert [note.en for note in result.notes] == [
        "--use-tis is not there: nothing to remove.",
        "--colocate is there already (run.sh:1).",
    ]


def test_conflicts_are_told(tmp_path: Path) -> None:
    """A flag that cannot stand beside another one is added, and the other one is named with its line."""
    text = SUBMIT + " \\\n --debug-train-only --offload-rollout\n"
    result = changed(tmp_path, text, Change(add=("--debug-rollout-only", "--no-offload-rollout")))
    told = [note.en for note in result.notes]
    assert "--debug-rollout-only conflicts with --debug-train-only (run.sh:2): keep one of them." in told
    assert "--no-offload-rollout conflicts with --offload-rollout (run.sh:2): keep one of them." in told


def test_placeholders_are_told(tmp_path: Path) -> None:
    """A value that only the person knows is named, and an ordinary value is not taken for one."""
    change = Change(set={"--vocab-size": "VOCAB_SIZE", "--save": "/data/Qwen3-4B_slime"})
    result = changed(tmp_path, SUBMIT + "\n", change)
    assert [note.en for note in result.notes] == ["Put your value for VOCAB_SIZE in --vocab-size VOCAB_SIZE."]


def test_flag_of_a_sourced_script_is_left_to_the_person() -> None:
    """A flag that stands in another file is not removed from this one; the place is named."""
    (name,) = [line.split()[0] for line in (DATA / "models" / "toy.sh").read_text().splitlines() if "--" in line][:1]
    result = change_script(str(TOY), Change(remove=(name,)))
    assert result.text == TOY.read_text()
    assert len(result.left) == 1
    assert f"Take {name} out by hand: toy.sh:" in result.left[0].en


def test_several_commands_all_change(tmp_path: Path) -> None:
    """Where a script starts two jobs through one array, both get the flag."""
    text = f"A=(\n  --lr 1\n  --rollout-batch-size 4\n)\n{SUBMIT} ${{A[@]}}\n{SUBMIT} --save x ${{A[@]}}\n"
    result = changed(tmp_path, text, Change(add=("--rollout-shuffle",)))
    jobs = read_launch_text(result.of, result.text.encode()).jobs
    assert len(jobs) == 2
    assert all("rollout-shuffle" in one.flags for one in jobs)
    assert result.text.splitlines()[2:4] == ["  --rollout-batch-size 4", "  --rollout-shuffle"]


def test_script_without_a_training_command(tmp_path: Path) -> None:
    """A script that starts no training is refused with what to give instead."""
    with pytest.raises(EvidenceError, match="no training command"):
        changed(tmp_path, "echo hello\n", Change(add=("--x",)))
    with pytest.raises(EvidenceError, match="nothing-here"):
        change_script(str(tmp_path / "nothing-here.sh"), Change())


def test_carriage_returns_and_odd_bytes(tmp_path: Path) -> None:
    """Lines that end as on Windows and bytes that are no UTF-8 are kept as they are."""
    path = tmp_path / "run.sh"
    data = b"# caf\xe9\r\nA=(\r\n   --lr 1 # \xff\r\n   --save x\r\n)\r\n" + SUBMIT.encode() + b" ${A[@]}\r\n"
    path.write_bytes(data)
    result = change_script(str(path), Change(set={"--lr": "2"}))
    assert result.text.encode("utf-8", "surrogateescape") == data.replace(b"--lr 1", b"--lr 2")


FLAGS = st.sampled_from(
    ["--rollout-batch-size", "--save", "--colocate", "--sglang-x", "--actor-num-nodes", "--lr", "--hf-checkpoint"]
)
VALUES = st.text(
    st.characters(codec="ascii", categories=("L", "N"), include_characters=" '\"$`\\{}#;&|*~!"), min_size=1
)
CHANGES = st.builds(
    Change,
    remove=st.lists(FLAGS, max_size=2).map(tuple),
    set=st.dictionaries(FLAGS, VALUES.filter(lambda text: not text.strip().startswith("-")), max_size=2),
    env=st.dictionaries(st.sampled_from(["NCCL_ALGO", "PYTHONPATH", "A"]), VALUES, max_size=2),
)


@settings(max_examples=60, deadline=None)
@given(change=CHANGES, original=st.sampled_from([TOY, LAUNCHER]))
def test_copy_reads_as_asked_or_says_what_is_left(
    change: Change, original: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For any change, the copy is a script, what was asked for is there or left, and nothing else differs."""
    path = original if original is TOY else tmp_path_factory.mktemp("launcher") / "launcher.py"
    if path is not TOY:
        path.write_text(original.read_text())
    result = change_script(str(path), change)
    before, after = (read_launch_text(str(path), text.encode()).jobs[0] for text in (path.read_text(), result.text))
    touched = {name.lstrip("-") for name in (*change.remove, *change.set)}
    for name in before.flags.keys() | after.flags.keys():
        if name not in touched:
            assert [one.shown for one in before.flags[name]] == [one.shown for one in after.flags[name]]
    for name in change.remove:
        if name not in change.set and not result.left:
            assert name.lstrip("-") not in after.flags
    for name, value in before.runtime_env.items():
        if name not in change.env:
            assert after.runtime_env[name].shown == value.shown
    bash = shutil.which("bash")
    if path is not TOY:
        ast.parse(result.text)
    elif bash:
        assert (
            subprocess.run([bash, "-n"], input=result.text.encode(), capture_output=True, check=False).returncode == 0
        )


@pytest.mark.parametrize(
    "where",
    [
        'cd "$(dirname "$0")"',
        'HERE=$(realpath "$0")',
        'HERE="${0%/*}"',
        'source "${BASH_SOURCE[0]%/*}/x.sh"',
    ],
)
def test_a_script_that_looks_beside_itself(tmp_path: Path, where: str) -> None:
    """Every usual way of asking where the script lies is noticed, since such a copy works only beside the original."""
    assert changed(tmp_path, f"{where}\n{SUBMIT}\n", Change()).beside
    assert not changed(tmp_path, f"# {where}\nawk '{{print $0}}' x\n{SUBMIT}\n", Change()).beside


def test_the_name_of_a_launcher_is_not_looking_beside_itself(tmp_path: Path) -> None:
    """Launchers of slime pass __file__ for the name of the run; only one that makes a folder of it needs its place."""
    text = "import os\nos.system('python3 train.py --colocate ' + names(__file__))\n"
    assert not changed(tmp_path, text, Change(), "run.py").beside
    assert changed(tmp_path, f"{text}here = os.path.dirname(os.path.abspath(__file__))\n", Change(), "run.py").beside


def test_an_export_does_not_reach_a_submitted_job(tmp_path: Path) -> None:
    """A variable that is only exported is put into the runtime env; where that is not known it is left to a person."""
    wanted = Change(env={"NCCL_ALGO": "Ring"})
    known = changed(tmp_path, f"export NCCL_ALGO=Ring\n{SUBMIT}\n", wanted)
    assert job(known).runtime_env["NCCL_ALGO"].value == "Ring"
    elsewhere = SUBMIT.replace("submit", 'submit --runtime-env-json="$(cat env.json)"')
    result = changed(tmp_path, f"export NCCL_ALGO=Tree\n{elsewhere}\n", wanted)
    assert [words.en for words in result.left] == ["Set NCCL_ALGO=Ring for the job by hand, in its runtime env."]
    assert result.text == f"export NCCL_ALGO=Tree\n{elsewhere}\n"


def test_a_flag_that_may_hide_in_what_is_not_followed(tmp_path: Path) -> None:
    """A flag that was not found is not said to be absent where words of the command are unknown."""
    text = "read -r ARGS < args.txt\nray job submit -- python3 train.py --actor-num-nodes 1 $ARGS\n"
    result = changed(tmp_path, text, Change(remove=("--colocate",)))
    (note,) = result.notes
    assert note.en.startswith("--colocate was not found, but ${ARGS} (run.sh:1) could not be followed")


def test_quoted_flags_are_taken_out_and_set(tmp_path: Path) -> None:
    """A flag and its value that are quoted one by one are still one flag."""
    text = 'A=("--rollout-temperature" "1" \'--lr\' 2)\n' + SUBMIT + ' "${A[@]}"\n'
    gone = changed(tmp_path, text, Change(remove=("--rollout-temperature",)))
    assert edit(text, gone) == ['-A=("--rollout-temperature" "1" \'--lr\' 2)', "+A=('--lr' 2)"]
    put = changed(tmp_path, text, Change(set={"--lr": "3"}))
    assert edit(text, put)[1] == '+A=("--rollout-temperature" "1" --lr 3)'


def test_empty_strings_elsewhere_stay(tmp_path: Path) -> None:
    """Taking a flag out of a launcher's strings removes the string that it leaves empty and no other."""
    text = 'import os\nx = (\n    "python3 train.py --lr 1 "\n    "--colocate "\n)\ny = (\n    ""\n)\nos.system(x)\n'
    result = changed(tmp_path, text, Change(remove=("--colocate",)), "run.py")
    assert edit(text, result) == ['-    "--colocate "']


def test_windows_line_ends_are_told(tmp_path: Path) -> None:
    """A script saved on Windows is edited, continuations included, and the note says that bash cannot run it so."""
    text = "ray job submit -- python3 train.py \\\r\n  --actor-num-nodes 1 \\\r\n  --colocate\r\n"
    result = changed(tmp_path, text, Change(remove=("--colocate",)))
    assert "colocate" not in job(result).flags
    assert "Windows line ends" in result.notes[0].en


def test_a_script_too_long_to_follow_is_told(tmp_path: Path) -> None:
    """Where no command was found because the reader gave up, the reason is part of the error."""
    path = tmp_path / "run.sh"
    path.write_text("export A=1\n" * 31_000 + SUBMIT + "\n")
    with pytest.raises(EvidenceError, match=r"no training command was found in it \(.+\)"):
        change_script(str(path), Change(add=("--x",)))

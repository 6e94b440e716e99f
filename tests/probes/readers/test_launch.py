"""Reading launch scripts of every kind: flags with their lines, environment, Ray nodes, and the trace in a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.launch import read_launch, read_launch_text, read_trace
from probes.readers.launch_model import Job, Launch
from tests.probes.scripts import RAY_START, script, write

DATA = Path(__file__).parents[2] / "data" / "launch"


def only(launch: Launch) -> Job:
    """Return the only job of a launch."""
    (job,) = launch.jobs
    return job


def check_places(launch: Launch) -> int:
    """Check that every flag is cited at a line that holds it, and return how many there are."""
    count = 0
    for job in launch.jobs:
        for name, occurrences in job.flags.items():
            for one in occurrences:
                data = Path(one.place.path).read_bytes()
                line = data.split(b"\n")[one.place.line - 1]
                assert line.decode() == one.place.text
                assert data[one.place.offset :].startswith(line)
                assert f"--{name}" in one.place.text or "get_default_wandb_args" in one.place.text
                count += 1
    return count


def test_a_whole_script_is_understood() -> None:
    """Arrays, comments, a sourced model, repeated flags, sequences and the runtime env come out right."""
    launch = read_launch(str(DATA / "toy.sh"))
    job = only(launch)
    assert (launch.kind, job.entry) == ("bash", "train.py")
    assert check_places(launch) == 18
    values = {name: job.flags[name][-1] for name in job.flags}
    assert values["rollout-temperature"].text == "1"
    assert [one.text for one in job.flags["rollout-temperature"]] == ["0.8", "1"]
    assert [token.text for token in values["sglang-cuda-graph-bs"].values] == ["1", "2", "4", "8", "16", "24"]
    assert "sglang-moe-a2a-backend" not in values
    assert values["hf-checkpoint"].text == "/models/toy-Instruct"
    assert values["load"].text is None
    assert values["load"].shown == values["save"].shown == "${BASE}/toy_slime/"
    assert values["save-debug-rollout-data"].text == "/dumps/data_{rollout_id}.pt"
    assert values["num-layers"].place.path.endswith("models/toy.sh")
    assert values["rotary-base"].default
    assert not values["num-layers"].default
    assert job.runtime_env["CUDA_DEVICE_MAX_CONNECTIONS"].value == "1"
    assert job.runtime_env["NCCL_NVLS_ENABLE"].value is None
    assert "CUDA_DEVICE_MAX_CONNECTIONS" in job.runtime_env["CUDA_DEVICE_MAX_CONNECTIONS"].place.text
    (start,) = launch.ray_starts
    assert (start.head, start.num_gpus, start.repeated, start.sure) == (True, 8, False, True)
    assert start.node_ip is not None
    assert (start.node_ip.text, start.node_ip.default) == ("127.0.0.1", True)
    assert launch.exports["PYTHONUNBUFFERED"].value == "1"
    assert not launch.gaps
    assert not job.gaps


def test_a_python_launcher_is_understood(tmp_path: Path) -> None:
    """f-strings, commented parts, branches over the environment and extra_env_vars are read, each flag at its line."""
    launch = read_launch(write(tmp_path, "launcher.py", (DATA / "toy_launcher.txt").read_text()))
    job = only(launch)
    assert (launch.kind, job.entry) == ("python", "train_async.py")
    assert check_places(launch) == 10
    assert job.flags["hf-checkpoint"][-1].text == "/models/toy-Instruct"
    assert job.flags["save-debug-rollout-data"][-1].text == "/dumps/{rollout_id}.pt"
    assert job.flags["actor-num-gpus-per-node"][-1].text == "4"
    assert "debug-rollout-only" not in job.flags
    assert not job.flags["moe-enable-deepep"][-1].sure
    assert job.runtime_env["CUDA_LAUNCH_BLOCKING"].value == "1"
    assert not job.gaps
    assert not job.flags["use-wandb"][-1].sure
    assert launch.ray_starts[0].num_gpus == 4


@pytest.mark.parametrize(
    ("text", "entry", "flags"),
    [
        ("python3 train.py --a 1 --colocate\n", "train.py", {"a": "1", "colocate": None}),
        ("nohup env X=1 python /s/train_async.py --a=1 2>&1 | tee log &\n", "/s/train_async.py", {"a": "1"}),
        ("ray job submit -- python3 tools/run.py --a 1\n", "tools/run.py", {"a": "1"}),
        ("ray job submit --working-dir . python3 train.py --a -1\n", "train.py", {"a": "-1"}),
        ('bash -c "cd /s && python3 train.py --a 1"\n', "train.py", {"a": "1"}),
        ('ray job submit -- bash -c "python3 train.py --a 1"\n', "train.py", {"a": "1"}),
        ("torchrun --nproc-per-node 8 train.py --a '[0]*3+[1]*2'\n", "train.py", {"a": "[0]*3+[1]*2"}),
    ],
)
def test_forms_of_a_command(tmp_path: Path, text: str, entry: str, flags: dict[str, str | None]) -> None:
    """Bare command lines, wrappers, pipes, nested shells and `--flag=value` all give the same job."""
    job = only(read_launch(write(tmp_path, "cmd", text)))
    assert job.entry == entry
    assert {name: job.flags[name][-1].text for name in job.flags} == flags


@pytest.mark.parametrize(
    "text",
    [
        "python3 tools/convert.py --save x\n",
        "echo python3 train.py\n",
        "ls\n",
        "",
        "\0\1\2",
        "# python3 train.py --a\n",
    ],
)
def test_other_commands_are_no_jobs(tmp_path: Path, text: str) -> None:
    """Converters, comments, words of an echo and binary rubbish are no training job."""
    assert read_launch(write(tmp_path, "cmd", text)).jobs == ()


def test_an_absent_file_is_a_gap() -> None:
    """A path that cannot be read gives a launch without jobs, with the system's words."""
    launch = read_launch("/nowhere/run.sh")
    assert not launch.jobs
    assert launch.gaps


def test_words_that_may_hold_flags_are_gaps(tmp_path: Path) -> None:
    """An unknown word where a flag could stand leaves the job open; one that is a value does not."""
    job = only(read_launch(write(tmp_path, "r.sh", "python3 train.py --colocate $EXTRA --lr $LR\n")))
    assert [gap.what for gap in job.gaps] == ["$EXTRA"]
    assert job.flags["lr"][-1].text is None


@pytest.mark.parametrize(
    ("start", "spread", "repeated"),
    [
        (RAY_START, False, [False]),
        (
            RAY_START + '\nfor W in $(cat hosts); do ssh $W "ray start --address=h:6379 --num-gpus 8"; done',
            True,
            [False, True],
        ),
        ("mpirun -np 2 ray start --head --num-gpus 8", True, [True]),
    ],
)
def test_other_machines_are_noticed(tmp_path: Path, start: str, spread: bool, repeated: list[bool]) -> None:
    """A `ray start` behind ssh, mpirun or in an open loop may run on any number of machines."""
    launch = read_launch(write(tmp_path, "r.sh", script(before=start)))
    assert bool(launch.spreads) is spread
    assert [one.repeated for one in launch.ray_starts] == repeated


def test_a_trace_in_a_log_is_read_with_its_lines(tmp_path: Path) -> None:
    """The expanded command of `set -x`, whose runtime env spans lines, is read and cited at the lines of the log."""
    text = (
        "+ export PYTHONUNBUFFERED=1\n+ ray start --head --num-gpus 8\n2026-01-01 INFO other line\n"
        "+ ray job submit --address=http://127.0.0.1:8265 "
        '\'--runtime-env-json={\n  "env_vars": {\n    "A": "1"\n  }\n}\''
        " -- python3 train.py --actor-num-nodes 1 --eval-prompt-data aime '/data/it'\\''s.jsonl'\n"
        "[2026-01-01 00:00:00] x.py:1 - --not-a-flag\n"
    )
    path = write(tmp_path, "job.log", text)
    launch = read_trace(path, text.encode())
    assert launch is not None
    job = only(launch)
    assert launch.kind == "trace"
    assert job.runtime_env["A"].value == "1"
    assert job.runtime_env["A"].place.line == 6
    assert [token.text for token in job.flags["eval-prompt-data"][-1].values] == ["aime", "/data/it's.jsonl"]
    assert set(job.flags) == {"actor-num-nodes", "eval-prompt-data"}
    assert check_places(launch) == 2
    assert launch.ray_starts[0].num_gpus == 8


def test_a_log_without_a_trace_has_none() -> None:
    """Ordinary lines, and lines that merely mention the command, are no trace."""
    assert (
        read_trace("l", b"Running entrypoint for job x: python3 train.py --a\n ray job submit -- python3 train.py\n")
        is None
    )


def test_execute_train_finds_the_model_script(tmp_path: Path) -> None:
    """The model script that execute_train would source is looked for above the launcher, and a missing one is a gap."""
    call = "from u import execute_train\nexecute_train('--a 1 ', num_gpus_per_node=2, megatron_model_type='toy')\n"
    path = write(tmp_path, "tests/launcher.py", call)
    assert [gap.what for gap in read_launch(path).gaps] == ["toy"]
    write(tmp_path, "scripts/models/toy.sh", "MODEL_ARGS=(\n --num-layers 3\n)\n")
    job = only(read_launch(path))
    assert job.flags["num-layers"][-1].text == "3"
    assert job.flags["num-layers"][-1].place.path.endswith("toy.sh")


def test_both_outcomes_of_an_unknown_branch_are_kept(tmp_path: Path) -> None:
    """Strings that depend on something unknown give all their flags, none of them as sure; a loop ends."""
    text = (
        "import os, x\n"
        "def args():\n    if x.y():\n        return '--a 1 '\n    return '--b 2 '\n"
        "c = '--c 3 '\nfor i in x.z():\n    c += '--d 4 '\n"
        "os.system('python3 train.py --hf-checkpoint /m ' + args() + c)\n"
    )
    job = only(read_launch(write(tmp_path, "l.py", text)))
    assert {name: job.flags[name][-1].sure for name in job.flags} == {
        "hf-checkpoint": True,
        "a": False,
        "b": False,
        "c": True,
        "d": False,
    }


@pytest.mark.parametrize(
    "text",
    [
        'import subprocess\nsubprocess.run(["python3", "train.py", "--a", "1"])\n',
        'import subprocess\ncmd = "python3 train.py --a 1"\nsubprocess.run(["bash", "-c", cmd])\n',
        'import os\nos.system(" ".join(["python3 train.py", "--a", str(1)]))\n',
        'from ray.job_submission import J\nJ().submit_job(entrypoint="python3 train.py --a 1")\n',
    ],
)
def test_other_ways_to_start_from_python(tmp_path: Path, text: str) -> None:
    """Lists of words, joined words, nested shells and Ray's job client are read."""
    assert only(read_launch(write(tmp_path, "l.py", text))).flags["a"][-1].text == "1"


@given(st.binary(max_size=400))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever lies in a file, reading it as script, launcher or trace ends without an exception."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("x.sh", "x.py"):
        read_launch(write(folder, name, data))
    read_trace("x", b"+ ray job submit " + data)


@given(
    st.lists(
        st.sampled_from(
            [
                "import x\n",
                "def f(a=1):\n",
                " return f'--a {g(x)}'\n",
                "f()\n",
                "if x:\n",
                " y += 'z'\n",
                "y = [f'{y}', *y]\n",
                "os.system(y)\n",
            ]
        ),
        max_size=25,
    )
)
def test_no_python_raises(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Recursion, growth and unknown names end at the budget."""
    read_launch(write(tmp_path_factory.mktemp("hostile"), "x.py", "".join(lines)))


GROWING = {
    "f-string": "x = f'{x}{x}'\n" * 40,
    "sum": "x = x + x\n" * 40,
    "augmented sum": "x += x\n" * 40,
    "join": "x = ' '.join([x, x])\n" * 40,
    "path": "x = os.path.join(x, x)\n" * 40,
    "function": "def f(a):\n    return f'{a}{a}'\n" + "x = f(x)\n" * 40,
    "list": "l = [x]\n" + "l = l + l\n" * 40 + "x = ' '.join(l)\n",
    "starred list": "l = [x]\n" + "l = [*l, *l]\n" * 40 + "x = ' '.join(l)\n",
    "extend": "l = [x]\n" + "l.extend(l)\n" * 40 + "x = ' '.join(l)\n",
    "itself": "l = [x]\nl.append(l)\nx = ' '.join(l)\n",
    "multiplication": "x = x * 10 ** 9\n",
    "number": "n = 3\n" + "n = n * n\n" * 40 + "x = f'{n}'\n",
    "long number": "x = f'{0x" + "f" * 9000 + "}'\n",
}


@pytest.mark.parametrize("text", GROWING.values(), ids=list(GROWING))
def test_a_launcher_that_grows_without_bound_ends(tmp_path: Path, text: str) -> None:
    """A few lines that ask for gigabytes make an unknown value, and the job is still read."""
    start = "os.system(f'ray job submit -- python3 train.py --rollout-batch-size 8 --load {x}')\n"
    launch = read_launch(write(tmp_path, "run.py", f"import os\nx = 'abcdefgh'\n{text}{start}"))
    load = launch.jobs[0].last("load")
    assert load is None or load.text is None
    assert launch.jobs[0].last("rollout-batch-size") is not None


def test_a_model_script_that_lies_elsewhere_is_found(tmp_path: Path) -> None:
    """A script written for a container names /root/slime; the repository it lies in holds the same model script."""
    write(tmp_path, "repo/scripts/models/toy.sh", "MODEL_ARGS=(--num-layers 7 --rotary-base 1000)\n")
    text = 'source "/no/such/slime/scripts/models/toy.sh"\npython3 train.py ${MODEL_ARGS[@]} --num-rollout 1\n'
    launch = read_launch(write(tmp_path, "repo/examples/own/run.sh", text))
    assert only(launch).flags["num-layers"][-1].text == "7"
    assert not launch.gaps
    assert launch.sourced == (str(tmp_path / "repo/scripts/models/toy.sh"),)


def test_a_model_script_that_is_certainly_missing_is_a_gap(tmp_path: Path) -> None:
    """Where the folder that a path starts from is there, the file is not replaced by another of its name."""
    write(tmp_path, "repo/scripts/models/toy.sh", "MODEL_ARGS=(--num-layers 7)\n")
    text = (
        f'source "{tmp_path}/repo/scripts/scripts/models/toy.sh"\npython3 train.py ${{MODEL_ARGS[@]}} --num-rollout 1\n'
    )
    launch = read_launch(write(tmp_path, "repo/scripts/run.sh", text))
    assert "num-layers" not in only(launch).flags
    assert [gap.why for gap in launch.gaps] == ["the sourced file is not there"]


def test_wandb_flags_that_the_environment_decides_hide_no_others(tmp_path: Path) -> None:
    """A helper of slime and a conditional string give W&B flags that may be there; every other flag stays certain."""
    text = """import os
import slime.utils.external_utils.command_utils as U
key = os.environ.get("WANDB_API_KEY")
wandb = ("--use-wandb " f"--wandb-key {key} ") if key else ""
own = "--lr 1e-6 " if os.environ.get("SLOW") == "1" else "--lr 1e-5 "
U.execute_train(
    train_args="--num-rollout 1 " + wandb + own + f"{U.get_default_wandb_args(__file__)} " + "--colocate ",
    num_gpus_per_node=8,
    megatron_model_type=None,
)
"""
    job = only(read_launch(write(tmp_path, "launcher.py", text)))
    assert not job.gaps
    assert [one.sure for one in job.flags["use-wandb"]] == [False, False]
    assert [(one.text, one.sure) for one in job.flags["lr"]] == [("1e-6", False), ("1e-5", False)]
    assert (job.flags["num-rollout"][-1].text, job.flags["num-rollout"][-1].sure) == ("1", True)
    assert job.flags["colocate"][-1].sure


def test_eval_of_a_known_string() -> None:
    """A training command in a variable that eval runs is read as `bash -c` reads it."""
    launch = read_launch_text("/s/run.sh", b'CMD="python3 train.py --colocate --lr 2"\neval "$CMD"\n')
    assert {name: ones[-1].shown for name, ones in launch.jobs[0].flags.items()} == {"colocate": "", "lr": "2"}
    assert not read_launch_text("/s/run.sh", b'eval "$(conda shell.bash hook)"\n').jobs


def test_match_in_a_launcher() -> None:
    """Flags of a `match` may be there, those before it surely are, and none is lost."""
    text = (
        'import os\nbase = "--actor-num-nodes 1 "\nmatch mode():\n    case "a":\n        base += "--colocate "\n'
        '    case _:\n        base += "--debug-rollout-only "\nos.system(f"python3 train.py {base}")\n'
    )
    (job,) = read_launch_text("/s/run.py", text.encode()).jobs
    assert {name: ones[-1].sure for name, ones in job.flags.items()} == {
        "actor-num-nodes": True,
        "colocate": False,
        "debug-rollout-only": False,
    }
    assert job.flags["actor-num-nodes"][-1].text == "1"


def test_what_a_condition_put_into_a_string_is_not_sure() -> None:
    """A flag that a condition adds to a string is not sure in the command that runs the string."""
    start = "A=(--colocate)\ntest -d /nowhere && A+=(--debug-rollout-only)\n"
    for run in ('eval "python3 train.py ${A[*]}"', 'bash -c "python3 train.py ${A[*]}"', "python3 train.py ${A[@]}"):
        (job,) = read_launch_text("/s/run.sh", f"{start}{run}\n".encode()).jobs
        assert not job.flags["debug-rollout-only"][-1].sure

"""Whether a run was made with a change: told by its own launch script and arguments table, and never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.script_change import change_script
from probes.script_check import check_run
from runbook.changing import Checked
from runbook.evidence import Evidence, Item
from runbook.flow.model import Change
from runbook.text import Text
from tests.probes.scripts import script, table, write

GRAPH_OFF = Change(add=("--sglang-disable-cuda-graph",))
NO_SPECULATION = Change(remove=("--sglang-speculative-algorithm",))
EAGLE = "--sglang-speculative-algorithm EAGLE"


def checked(change: Change, **slots: str) -> Checked:
    """Check a run that has these files."""
    return check_run(Evidence(tuple(Item(slot, path, Text("x", "x")) for slot, path in slots.items())), change)


def of_script(folder: Path, change: Change, text: str) -> Checked:
    """Check a run of which only the launch script is known."""
    return checked(change, launch=write(folder, "run.sh", text))


def of_table(folder: Path, change: Change, **rows: object) -> Checked:
    """Check a run of which only the arguments table is known."""
    return checked(change, log=write(folder, "job.log", table(**rows)))


@pytest.mark.parametrize(
    ("change", "flags", "lacks"),
    [
        (GRAPH_OFF, ("--sglang-disable-cuda-graph",), None),
        (GRAPH_OFF, (), "This run does not have --sglang-disable-cuda-graph (run.sh:"),
        (NO_SPECULATION, (), None),
        (NO_SPECULATION, (EAGLE,), "This run still has --sglang-speculative-algorithm EAGLE (run.sh:"),
        (Change(set={"--sglang-mem-fraction-static": "0.6"}), ("--sglang-mem-fraction-static 0.60",), None),
        (Change(set={"--sglang-mem-fraction-static": "0.6"}), ("--sglang-mem-fraction-static 0.8",), "does not have"),
        (Change(add=("--load-debug-rollout-data /DIR/x.pt",)), ("--load-debug-rollout-data /a/x.pt",), None),
    ],
)
def test_script_tells(tmp_path: Path, change: Change, flags: tuple[str, ...], lacks: str | None) -> None:
    """A flag of the run's own script is there or not; numbers are compared as numbers, a person's own path is any."""
    found = of_script(tmp_path, change, script(*flags))
    assert found.notes == ()
    assert [lacks in words.en for words in found.lacks] == ([True] if lacks else []) if lacks else found.lacks == ()


@pytest.mark.parametrize(
    ("change", "rows", "lacks"),
    [
        (GRAPH_OFF, {"sglang_disable_cuda_graph": True}, False),
        (GRAPH_OFF, {"sglang_disable_cuda_graph": False}, True),
        (NO_SPECULATION, {"sglang_speculative_algorithm": None}, False),
        (NO_SPECULATION, {"sglang_speculative_algorithm": "EAGLE"}, True),
        (Change(remove=("--sglang-deepep-mode",)), {"sglang_deepep_mode": "auto"}, False),
        (Change(add=("--no-offload-rollout",)), {"offload_rollout": False}, False),
        (Change(add=("--no-offload-rollout",)), {"offload_rollout": True}, True),
        (Change(set={"--sglang-mem-fraction-static": "0.6"}), {"sglang_mem_fraction_static": 0.8}, True),
    ],
)
def test_table_tells(tmp_path: Path, change: Change, rows: dict[str, object], lacks: bool) -> None:
    """The arguments table alone tells as well, with the defaults of options that are not in use."""
    found = of_table(tmp_path, change, **rows)
    assert bool(found.lacks) is lacks
    assert all("job.log:" in words.en for words in found.lacks)


def test_table_goes_before_the_script(tmp_path: Path) -> None:
    """What applied counts: a script without the flag beside a table that has it is the experiment."""
    launch, log = write(tmp_path, "run.sh", script()), write(tmp_path, "a.log", table(sglang_disable_cuda_graph=True))
    assert checked(GRAPH_OFF, launch=launch, log=log).lacks == ()


@pytest.mark.parametrize(("env", "lacks"), [(', \\"CUDA_LAUNCH_BLOCKING\\": \\"1\\"', 0), ("", 1)])
def test_variables(tmp_path: Path, env: str, lacks: int) -> None:
    """A variable is looked for in the script alone; no log tells it."""
    change = Change(env={"CUDA_LAUNCH_BLOCKING": "1"})
    assert len(of_script(tmp_path, change, script(env=env)).lacks) == lacks
    quiet = of_table(tmp_path, change, sglang_disable_cuda_graph=True)
    assert quiet.lacks == ()
    assert "CUDA_LAUNCH_BLOCKING=1" in quiet.notes[0].en


def test_nothing_is_guessed(tmp_path: Path) -> None:
    """Without script and table, and with a part of a command line, the change is unchecked and named."""
    change = Change(add=("--sglang-disable-cuda-graph",), remove=("--sglang-deepep-mode",), env={"A": "1"})
    for found in (checked(change), of_script(tmp_path, change, script("--micro-batch-size 1", whole=False))):
        assert found.lacks == ()
        assert all(name in found.notes[0].en for name in ("--sglang-disable-cuda-graph", "--sglang-deepep-mode", "A=1"))


@given(st.lists(st.sampled_from((EAGLE, "--colocate", "--sglang-disable-cuda-graph")), unique=True))
def test_changed_copy_has_its_change(tmp_path_factory: pytest.TempPathFactory, flags: list[str]) -> None:
    """Whatever stood in a script, its changed copy is never told to lack the change."""
    folder = tmp_path_factory.mktemp("copy")
    change = Change(add=GRAPH_OFF.add, remove=NO_SPECULATION.remove, env={"CUDA_LAUNCH_BLOCKING": "1"})
    made = change_script(write(folder, "run.sh", script(*flags)), change)
    assert made.left == ()
    assert of_script(folder, change, made.text) == Checked()


def test_script_that_looks_beside_itself_says_so(tmp_path: Path) -> None:
    """Such a script works only in its folder; a comment about it does not count; Python is started by python3."""
    beside = script(exports='D="$(dirname -- "${BASH_SOURCE[0]}")"')
    for text, expected in ((beside, True), (script(exports="# BASH_SOURCE is not used"), False)):
        made = change_script(write(tmp_path, "run.sh", text), GRAPH_OFF)
        assert (made.beside, made.submit) == (expected, ("bash",))
        assert any("beside itself" in note.en for note in made.notes) is expected

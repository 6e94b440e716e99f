"""The silent fallback from --load to --ref-load: a fault only where a checkpoint was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_load_fallback import load_fallback
from probes.readers.torch_dist import TRACKER
from tests.probes.asking import word
from tests.probes.scripts import ask_script, cited, script, table, write

REF = "/models/toy_torch_dist"


def asked(folder: Path, *flags: str, load: str | None = None, **slots: str) -> str:
    """Ask with these flags and, with `load`, a table that says what applied."""
    if load is not None:
        slots["log"] = write(folder, "job.log", table(load=load, ref_load=REF, finetune=True))
    return word(ask_script(load_fallback, folder, script(*flags), **slots))


def test_the_table_shows_that_load_was_used(tmp_path: Path) -> None:
    """Equal paths, a trailing slash apart, mean that it was used."""
    assert asked(tmp_path, "--load /ckpt/a/", load="/ckpt/a") == "ok:used-as-given"


def test_a_fresh_run_falls_back_by_design(tmp_path: Path) -> None:
    """--load equal to --save is how slime's own scripts start, so it is no fault."""
    assert asked(tmp_path, "--load /ckpt/a", "--save /ckpt/a", load=REF) == "ok:fresh-start"
    assert asked(tmp_path, "--load ${B}/a", "--save ${B}/a/", load=REF) == "ok:fresh-start"


def test_another_folder_than_save_was_meant(tmp_path: Path) -> None:
    """A --load that is not --save names a checkpoint; both lines prove the fallback."""
    text = script("--load /ckpt/old", "--save /ckpt/new")
    log = write(tmp_path, "job.log", table(load=REF, ref_load=REF))
    finding = ask_script(load_fallback, tmp_path, text, log=log)
    assert word(finding) == "problem:fell-back"
    assert cited(finding)[0] == "--load /ckpt/old"
    assert "load ...." in cited(finding)[1]


@pytest.mark.parametrize("load", [None, REF])
def test_an_iteration_folder_is_never_taken(tmp_path: Path, load: str | None) -> None:
    """Neither slime nor Megatron finds a tracker inside iter_*, with or without a table."""
    assert asked(tmp_path, "--load /ckpt/a/iter_0000019/", load=load) == "problem:fell-back"


def saving(folder: Path) -> Path:
    """Return a folder in which an iteration lies and no tracker: a save that has not ended, or a lost tracker."""
    (folder / "a" / "iter_0000020").mkdir(parents=True)
    return folder / "a"


@pytest.mark.parametrize("load", [None, REF])
def test_a_first_save_that_has_not_ended_is_no_fallback(tmp_path: Path, load: str | None) -> None:
    """--load equal to --save, as slime's scripts have it, with an iteration and no tracker proves nothing."""
    folder = saving(tmp_path)
    flags = (f"--load {folder}", f"--save {folder}")
    assert asked(tmp_path, *flags, load=load) == "unknown"
    assert asked(tmp_path, *flags, load=load, megatron_load=str(folder)) == "unknown"
    (folder / TRACKER).write_text("20")
    assert asked(tmp_path, *flags) == "ok:used-as-given"


@pytest.mark.parametrize("flag", ["--ckpt-step 20", "--start-rollout-id 21"])
def test_a_flag_of_a_resume_shows_that_it_was_meant(tmp_path: Path, flag: str) -> None:
    """An iteration that was asked for by number, or a later first rollout, is cited; 0 asks for nothing."""
    folder = saving(tmp_path)
    flags = (f"--load {folder}", f"--save {folder}")
    finding = ask_script(load_fallback, tmp_path, script(*flags, flag))
    assert word(finding) == "problem:fell-back"
    assert flag in cited(finding)
    assert asked(tmp_path, *flags, "--start-rollout-id 0") == "unknown"


def test_a_log_that_tried_the_folder_shows_that_it_was_meant(tmp_path: Path) -> None:
    """Megatron's own line about the missing tracker is the proof, and is cited; one about another folder is none."""
    folder = saving(tmp_path)
    text = script(f"--load {folder}", f"--save {folder}")
    line = f"WARNING: could not find the metadata file {folder}/{TRACKER}"
    finding = ask_script(load_fallback, tmp_path, text, log=write(tmp_path, "job.log", f"first\n{line}\n"))
    assert word(finding) == "problem:fell-back"
    assert (cited(finding)[-1], finding.citations[-1].line) == (line, 2)
    other = write(tmp_path, "job.log", line.replace(str(folder), "/ckpt/other") + "\n")
    assert word(ask_script(load_fallback, tmp_path, text, log=other)) == "unknown"


def test_iterations_without_a_tracker_in_another_folder_are_not_taken(tmp_path: Path) -> None:
    """Nothing writes into a --load that is not --save, so its tracker is lost."""
    folder = saving(tmp_path)
    assert asked(tmp_path, f"--load {folder}", "--save /ckpt/new") == "problem:fell-back"
    assert asked(tmp_path, f"--load {folder}") == "problem:fell-back"


def test_an_unknown_save_may_be_the_same_folder(tmp_path: Path) -> None:
    """People quote a few flags; that --save is not among them does not mean that it is not given."""
    folder = saving(tmp_path)
    text = script(f"--load {folder}", whole=False)
    assert word(ask_script(load_fallback, tmp_path, text)) == "unknown"
    table_of = table(load=REF, ref_load=REF, save=folder)
    assert word(ask_script(load_fallback, tmp_path, text, log=write(tmp_path, "job.log", table_of))) == "unknown"


@pytest.mark.parametrize(
    "flags", [("--load /nowhere/a", "--save /nowhere/a"), ("--load /nowhere/a",), ("--load ${B}/a",)]
)
def test_without_table_or_folder_nothing_is_said(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """A folder that is not on this machine may be there on the cluster."""
    assert asked(tmp_path, *flags) == "unknown"


def test_no_load_at_all_is_by_design(tmp_path: Path) -> None:
    """Without --load the actor starts from --ref-load; a script that is not whole says nothing."""
    assert asked(tmp_path) == "ok:no-load"
    assert word(ask_script(load_fallback, tmp_path, script(whole=False))) == "unknown"


def test_an_unknown_load_that_may_be_what_applied_is_unknown(tmp_path: Path) -> None:
    """`${B}/toy_torch_dist` may well be the --ref-load that the table shows."""
    assert asked(tmp_path, "--load ${B}/toy_torch_dist", "--save /x", load=REF) == "unknown"

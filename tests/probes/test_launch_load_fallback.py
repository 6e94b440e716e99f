"""The silent fallback from --load to --ref-load: a fault only where a checkpoint was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_load_fallback import TRACKER, load_fallback
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


def test_iterations_without_a_tracker_are_not_taken(tmp_path: Path) -> None:
    """A folder that holds iterations was meant, also when it is --save; a tracker makes it good."""
    folder = tmp_path / "a"
    (folder / "iter_0000005").mkdir(parents=True)
    flags = (f"--load {folder}", f"--save {folder}")
    assert asked(tmp_path, *flags, megatron_load=str(folder)) == "problem:fell-back"
    assert asked(tmp_path, *flags, load=REF) == "problem:fell-back"
    (folder / TRACKER).write_text("5")
    assert asked(tmp_path, *flags) == "ok:used-as-given"


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

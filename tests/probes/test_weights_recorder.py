"""Tests of the lines that tell how to record."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from probes.recorder import FOLDER
from probes.recorder.slime_runbook_recorder.options import Options, from_environment, to_environment
from probes.weights_recorder import add_arguments, run, size
from runbook.errors import UsageError


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what the command prints."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert run(parser.parse_args(words)) == 0
    return capsys.readouterr().out


def test_the_lines_make_the_options_that_were_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A shell that runs the printed lines has the environment that the recorder reads as these options."""
    text = said(
        capsys, str(tmp_path / "a b"), "--tensors", "--limit", "2G", "--updates", "7", "--ranks", "all", "--no-engine"
    )
    lines = [line for line in text.splitlines() if line.startswith("export")]
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    done = subprocess.run(
        ["sh", "-c", "\n".join([*lines, f"exec {sys.executable} -c '{code}'"])],
        env={"PYTHONPATH": "/before"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    environment = json.loads(done.stdout)
    assert environment["PYTHONPATH"] == f"{FOLDER}:/before"
    assert from_environment(environment) == Options(
        str(tmp_path / "a b"), tensors=True, limit=2 << 30, updates=7, ranks="all", engine=False
    )


def test_as_json_they_are_a_runtime_env(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON can be given to --runtime-env-json; options at their default are left out."""
    variables = json.loads(said(capsys, "/shared/received", "--json"))["env_vars"]
    assert variables == {"PYTHONPATH": FOLDER, "SLIME_RUNBOOK_RECORD": "/shared/received"}


def test_a_copy_is_the_recorder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--copy puts the recorder where the engines' nodes can read it, and the lines name that place."""
    assert str(tmp_path / "there") in said(capsys, "/shared/received", "--copy", str(tmp_path / "there"))
    copied = sorted(path.relative_to(tmp_path / "there") for path in (tmp_path / "there").rglob("*.py"))
    assert copied == sorted(path.relative_to(FOLDER) for path in Path(FOLDER).rglob("*.py"))


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A file where the copy should go is an error of usage."""
    (tmp_path / "file").write_text("")
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(UsageError, match="file"):
        run(parser.parse_args(["/x", "--copy", str(tmp_path / "file" / "inner")]))


@pytest.mark.parametrize(
    ("text", "wanted"), [("512", 512), ("1k", 1024), ("3M", 3 << 20), ("2GiB", 2 << 30), ("1T", 1 << 40)]
)
def test_sizes(text: str, wanted: int) -> None:
    """Sizes have the units people write."""
    assert size(text) == wanted


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "many"])
def test_what_is_no_size(text: str) -> None:
    """Anything else is an error of usage."""
    with pytest.raises(UsageError):
        size(text)


def test_options_come_back_from_the_environment() -> None:
    """Writing and reading the environment are inverse; without a folder there are no options."""
    options = Options("/x", tensors=True, limit=5, updates=9, engines=1, ranks="all", engine=False)
    assert from_environment(to_environment(options)) == options
    assert from_environment({}) is None

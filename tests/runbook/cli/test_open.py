"""`slime-runbook open`: a bundle in plain text and JSON, with nothing installed; what is no bundle is told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from runbook.answer_json import answer_schema
from tests.runbook import small
from tests.runbook.bundle.elsewhere import Elsewhere
from tests.runbook.cli.world import World

SCRIPT = "runbook.cli.main"
UNCLEAR = b"start\nnothing is said\n"


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """Return a place where nothing is installed."""
    with tempfile.TemporaryDirectory(prefix="runbook-else-") as made:
        yield Elsewhere(Path(made))


def exported(world: World, elsewhere: Elsewhere, content: bytes) -> tuple[Path, Path]:
    """Return the bundle of a triage as a colleague got it, and the run's folder, which is gone."""
    run = world.log(content)
    done = world("export", run, "--format", "bundle", "--output", world.folder / "b.zip", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(world.folder / "b.zip")
    shutil.rmtree(run)
    return elsewhere.take(world.folder / "b.zip"), run


PLAIN = """\
session SESSION, exported WHEN UTC by version VERSION; nothing here is kept
HIDDEN1 cause confirmed
FOLDER

✗ confirmed  not-loaded  The checkpoint was not loaded
  It is not-loaded.
    FOLDER/job.log:3
      load: not loaded
  fix: Give the right folder
      $ ls CKPT
    Read this
      https://example.org/load
  verify with: small.load

Ruled out
buffer, base

Checked
✗ problem  small.load: not-loaded  It is not-loaded.
▲ warning  small.text: no  It is no.
"""


def test_plain_output_is_the_session_as_it_was(world: World, elsewhere: Elsewhere) -> None:
    """Causes, the cited line, the fix and what was ruled out are told where neither run nor probe nor flow is."""
    bundle, run = exported(world, elsewhere, small.GARBLED)
    done = elsewhere.run(SCRIPT, "open", bundle, "--plain")
    assert (done.returncode, done.stderr) == (1, "")
    told = re.sub(
        r"session \S+, exported \S+ \S+ UTC by version \S+;",
        "session SESSION, exported WHEN UTC by version VERSION;",
        done.stdout,
    )
    told = re.sub(r"hidden: .*\n", "HIDDEN", told)
    folder = re.search(r"^(/\S+)/job\.log:3$", told.replace("    /", "/"), re.MULTILINE)
    assert folder is not None
    assert Path(folder[1]).name == run.name
    assert told.replace(folder[1], "FOLDER") == (PLAIN if "HIDDEN" in told else PLAIN.replace("HIDDEN", ""))
    assert elsewhere.left_behind == []


@pytest.mark.parametrize(
    ("content", "code"), [(small.GARBLED, 1), (small.FINE, 0), (UNCLEAR, 3)], ids=["confirmed", "clear", "unclear"]
)
def test_json_and_exit_code_are_those_of_triage(world: World, elsewhere: Elsewhere, content: bytes, code: int) -> None:
    """The JSON satisfies the schema of triage and says what triage of the run said; so does the exit code."""
    run = world.log(content)
    triage = json.loads(world("triage", run, "--json").stdout)
    bundle, _ = exported(world, elsewhere, content)
    done = elsewhere.run(SCRIPT, "open", bundle, "--json")
    assert (done.returncode, done.stderr) == (code, "")
    found = json.loads(done.stdout)
    jsonschema.validate(found, answer_schema())
    for key in ("ruled_out", "unknown", "causes"):
        assert [cut(one) for one in found[key]] == [cut(one) for one in triage[key]]
    assert elsewhere.run(SCRIPT, "open", bundle, "--plain", "--lang", "zh").returncode == code


def cut(answer: dict[str, object]) -> dict[str, object]:
    """Return part of an answer without the paths, which are another run's, and hidden."""
    citations = answer.get("citations", [])
    assert isinstance(citations, list)
    places = [{key: value for key, value in one.items() if key != "path"} for one in citations]
    return {**answer, "citations": places}


def test_signs_and_language_can_be_chosen(world: World, elsewhere: Elsewhere) -> None:
    """Chinese words, and no sign outside ASCII."""
    bundle, _ = exported(world, elsewhere, small.GARBLED)
    assert "已确认 1 个原因" in elsewhere.run(SCRIPT, "open", bundle, "--plain", "--lang", "zh").stdout
    assert elsewhere.run(SCRIPT, "open", bundle, "--plain", "--ascii").stdout.isascii()


@pytest.mark.parametrize("command", ["triage", "browse", "evidence"])
def test_a_bundle_is_no_run(world: World, elsewhere: Elsewhere, command: str) -> None:
    """What looks into a run says that a bundle holds no bulk data, and names the command that opens it."""
    bundle, _ = exported(world, elsewhere, small.GARBLED)
    done = world(command, bundle)
    assert (done.returncode, done.stdout) == (2, "")
    assert "bulk data" in done.stderr
    assert f"slime-runbook open {bundle}" in done.stderr


def test_what_is_no_bundle_is_told(world: World) -> None:
    """A log, a folder, nothing, half a bundle: exit code 2, file and remedy on stderr, no traceback."""
    run = world.log(small.FINE)
    whole = world.folder / "b.zip"
    assert world("export", run, "--format", "bundle", "--output", whole).returncode == 0
    (world.folder / "half.zip").write_bytes(whole.read_bytes()[:500])
    for path, word in (
        (run / "job.log", "no bundle"), (run, "directory"), (world.folder / "none.zip", "none.zip"),
        (world.folder / "half.zip", "damaged"),
    ):  # fmt: skip
        done = world("open", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert word in done.stderr
        assert "Traceback" not in done.stderr
    assert "BUNDLE" in world("open").stderr


def test_a_session_is_exported_as_a_bundle(world: World, elsewhere: Elsewhere) -> None:
    """By its id, into the session's folder; hidden words reach it, and an existing file stays."""
    run = world.log(small.GARBLED)
    done = world("export", run, "--format", "bundle", "--output", world.folder / "b.zip")
    session = re.search(r"session (\S+)", done.stderr)
    assert session is not None
    again = world("export", session[1], "--format", "bundle", "--hide", "garbled")
    assert again.returncode == 0, again.stderr
    path = Path(again.stdout.strip())
    assert path.name == "ticket-1.zip"
    assert path.stat().st_mode & 0o777 == 0o600
    told = elsewhere.run(SCRIPT, "open", elsewhere.take(path), "--plain").stdout
    assert "not-loaded" in told
    refused = world("export", session[1], "--format", "bundle", "--output", world.folder / "b.zip")
    assert refused.returncode == 2
    assert "exists already" in refused.stderr


def test_plain_output_loads_no_ui(world: World) -> None:
    """Nothing of Textual and no probe is loaded to print a bundle."""
    done = world("export", world.log(small.GARBLED), "--format", "bundle", "--output", world.folder / "b.zip")
    assert done.returncode == 0
    code = "import sys; from runbook.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    told = subprocess.run(
        [sys.executable, "-S", "-c", code, "open", str(world.folder / "b.zip"), "--plain"],
        capture_output=True, text=True, check=True, env=world.environment, cwd=world.folder,
    )  # fmt: skip
    loaded = {name.partition(".")[0] for name in told.stderr.split()}
    assert "runbook" in loaded
    assert not loaded & {"textual", "torch", "ray", "numpy", "probes", "flows"}
    assert "tests.runbook.small" not in told.stderr.split()


def test_help_names_it(world: World) -> None:
    """The overview and its own help tell what it takes."""
    assert "  open " in world("--help").stdout
    assert "BUNDLE" in world("open", "--help").stdout

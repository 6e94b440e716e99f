"""Tests of runbook.catalog: other people's packages, found through real entry points in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

PROBE = """
import sys
print("imported"); print("imported", file=sys.stderr)

from runbook.evidence import Follower, Match, Slot
from runbook.finding import Verdict, found
from runbook.probe import probe
from runbook.text import Text

@probe("acme.fan", needs="log", answers=("quiet", "loud"), en="Is the fan loud?", zh="风扇吵吗？")
def fan(evidence, report):
    return found(Verdict.OK, "quiet", "It is quiet.", "很安静。")

def is_rack(candidate):
    return Match(99, Text("r", "r")) if candidate.name == "rack" else None

RACK = Slot("rack", Text("rack", "机柜"), is_rack)
READS = (Follower("rack", lambda item: []),)
not_a_probe = object()
"""

FLOW = """
flow: acme
order: 1
title: {en: Racks, zh: 机柜}
symptom: {en: It is loud, zh: 太吵}
start: fan
nodes:
  fan:
    question: {en: Is the fan loud?, zh: 风扇吵吗？}
    probes: [acme.fan]
    branches: {quiet: fine, loud: dust}
  fine:
    clear: {en: Nothing wrong, zh: 没有问题}
  dust:
    cause: acme-dust
    fix: {en: Clean it, zh: 清灰}
"""

CAUSES = "causes:\n  acme-dust: {guide: '-', title: {en: Dust, zh: 灰尘}}\n"


class Packages:
    """Builds packages with entry points in one folder of the import path."""

    def __init__(self, site: Path) -> None:
        self.site = site

    def add(self, name: str, files: dict[str, str], entry_points: str) -> None:
        """Install a distribution of one package."""
        package = self.site / name
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        for file, text in files.items():
            (package / file).write_text(text)
        info = self.site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))

    def environment(self) -> dict[str, str]:
        """Return the environment in which the packages are installed."""
        return {**os.environ, "PYTHONPATH": str(self.site)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command with the packages installed."""
        command = [sys.executable, "-m", "runbook.cli.main", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment())

    def catalog(self, *extra: str) -> Any:
        """Return what the catalog holds, or its error, from a fresh process."""
        code = f"""
            import json
            from runbook.catalog import load_catalog
            from runbook.errors import RunbookError
            try:
                c = load_catalog({extra!r})
            except RunbookError as error:
                print(json.dumps([type(error).__name__, error.message]))
            else:
                print(json.dumps([list(c.probes), list(c.slots), len(c.followers), list(c.flows),
                                  list(c.vocabulary), c.broken, {{n: f.title.en for n, f in c.flows.items()}}]))
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            check=True,
            env=self.environment(),
        )
        return json.loads(done.stdout)


POINTS = """\
    [slime_runbook.probes]
    acme = acme
    [slime_runbook.flows]
    acme = acme
"""


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    """Return an empty folder for packages."""
    return Packages(tmp_path)


@pytest.fixture
def acme(packages: Packages) -> Packages:
    """Return the folder with one sound package."""
    packages.add("acme", {"fans.py": PROBE, "acme.yaml": FLOW, "causes.yaml": CAUSES}, POINTS)
    return packages


def test_a_third_party_stands_beside_ours(acme: Packages) -> None:
    """Its probes, slots, followers, flows and causes are found next to ours, flows in their order."""
    probes, slots, followers, flows, causes, broken, _ = acme.catalog()
    ours = Packages(acme.site / "nothing").catalog()
    assert set(probes) == {*ours[0], "acme.fan"}
    assert probes == sorted(probes)
    assert set(slots) == {*ours[1], "rack"}
    assert followers == ours[2] + 1
    assert flows == ["acme", *ours[3]]
    assert set(causes) == {*ours[4], "acme-dust"}
    assert broken == ours[5]


def test_the_command_uses_it(acme: Packages, tmp_path: Path) -> None:
    """The third party's probe answers in a worker, its flow is linted and walked by triage.

    What its modules print when they are imported reaches nobody.
    """
    log = tmp_path / "run" / "x.log"
    log.parent.mkdir()
    log.write_text("hello\n")
    listed = acme.run("flows", "lint", str(acme.site / "acme" / "acme.yaml"))
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "1 flows, 0 faults\n")
    asked = acme.run("probes", "run", "acme.fan", "--log", str(log), "--json")
    assert (asked.returncode, json.loads(asked.stdout)["answer"]) == (0, "quiet")
    triaged = json.loads(acme.run("triage", "--log", str(log), "--json").stdout)
    assert "acme-dust" in [cause["cause"] for cause in triaged["ruled_out"]]


def test_a_broken_module_is_reported_and_the_rest_works(acme: Packages) -> None:
    """Modules that do not parse, lack an import, raise or exit are named with the reason; all others are there."""
    folder = acme.site / "acme"
    (folder / "syntax.py").write_text("def\n")
    (folder / "lacks.py").write_text("import no_such_module\n")
    (folder / "raises.py").write_text("1 / 0\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    probes, _, _, flows, _, broken, _ = acme.catalog()
    assert "acme.fan" in probes
    assert "acme" in flows
    reasons = {module.removeprefix("acme."): reason.partition(":")[0] for module, reason, *_ in broken}
    assert {name: reasons.get(name) for name in ("syntax", "lacks", "raises", "leaves")} == {
        "syntax": "SyntaxError",
        "lacks": "ModuleNotFoundError",
        "raises": "ZeroDivisionError",
        "leaves": "SystemExit",
    }
    told = acme.run("probes", "list")
    assert told.returncode == 0
    assert "acme.lacks" in told.stderr
    assert "acme.fan" in told.stdout


def test_an_entry_point_to_nothing_is_reported(packages: Packages) -> None:
    """A package whose entry points name modules that are not there takes nothing down."""
    packages.add("ghost", {}, POINTS.replace("= acme", "= ghost_that_is_not_there"))
    probes, _, _, flows, _, broken, _ = packages.catalog()
    assert probes
    assert flows
    assert "ghost_that_is_not_there" in [module for module, *_ in broken]


def test_a_second_thing_of_a_name_is_left_out_and_named(acme: Packages) -> None:
    """A second probe, slot, flow or cause of a known name is named with its place, the first stays, all else works.

    The same probe imported twice is one.
    """
    folder = acme.site / "acme"
    (folder / "again.py").write_text("from acme.fans import fan\n")
    before = acme.catalog()
    assert "acme.fan" in before[0]
    (folder / "other.py").write_text(PROBE.replace('Text("rack", "机柜")', 'Text("other", "其他")'))
    (folder / "second.yaml").write_text(FLOW.replace("en: Racks", "en: Other racks"))
    acme.add("late", {"causes.yaml": CAUSES.replace("Dust", "Other dust")}, "[slime_runbook.flows]\nzzz = late\n")
    probes, slots, _, flows, causes, broken, titles = acme.catalog()
    assert (probes, slots, flows, causes, titles["acme"]) == (*before[:2], before[3], before[4], "Racks")
    told = [(source, reason) for source, reason, *_ in broken if [source, reason] not in [b[:2] for b in before[5]]]
    assert told == [
        ("acme.other", "a second probe is called acme.fan; rename one of them"),
        ("acme.other", "a second slot is called rack; rename one of them"),
        (
            str(folder / "second.yaml"),
            f"{folder / 'second.yaml'}:2:1: a second flow is called 'acme' (rename one of them)",
        ),
        (
            str(acme.site / "late" / "causes.yaml"),
            f"{acme.site / 'late' / 'causes.yaml'}:2:3: a second cause is called 'acme-dust' (rename one of them)",
        ),
    ]
    listed = acme.run("flows", "list")
    assert listed.returncode == 0
    assert "second.yaml:2:1: a second flow" in listed.stderr
    linted = acme.run("flows", "lint")
    assert linted.returncode == 1
    assert "second.yaml:2:1: a second flow" in linted.stdout
    assert "causes.yaml:2:3: a second cause" in linted.stdout


BROKEN_FLOWS = [
    (FLOW + "    fixx: 1\n", "17:5: "),
    ("flow: [\n", "2:1: not YAML"),
    (FLOW.replace("start: fan", "start: gone"), "6:1: start names no node"),
    (FLOW.replace("quiet: fine", "quiet: finer"), "11:16: fan: branch 'quiet' leads to unknown node"),
    (FLOW.replace("quiet: fine", "quiet: fan"), "11:5: fan: cycle fan → fan"),
]


@pytest.mark.parametrize(("text", "place"), BROKEN_FLOWS, ids=[place for _, place in BROKEN_FLOWS])
def test_a_flow_that_cannot_be_used_takes_nothing_down(acme: Packages, text: str, place: str, tmp_path: Path) -> None:
    """Every command goes on without it and tells its place on stderr; lint fails; asked for by name it is an error."""
    path = acme.site / "acme" / "acme.yaml"
    path.write_text(text)
    (tmp_path / "x.log").write_text("hello\n")
    done = acme.run("triage", "--log", str(tmp_path / "x.log"), "--json")
    assert json.loads(done.stdout)["evidence"]
    assert f"{path}:{place}" in done.stderr
    linted = acme.run("flows", "lint")
    assert linted.returncode == 1
    assert f"{path}:{place}" in linted.stdout
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "x.yaml").write_text(text)
    asked = acme.run("flows", "list", "--flows", str(mine))
    assert (asked.returncode, asked.stdout) == (2, "")
    assert f"{mine / 'x.yaml'}:{place}" in asked.stderr


def test_a_broken_vocabulary_takes_nothing_down(acme: Packages) -> None:
    """A causes.yaml that cannot be read is told with its place; the flows beside it are there without its words."""
    path = acme.site / "acme" / "causes.yaml"
    path.write_text("causes: []\n")
    _, _, _, flows, causes, broken, _ = acme.catalog()
    assert "acme" in flows
    assert "acme-dust" not in causes
    assert [str(path)] == [source for source, _, is_flow, _ in broken if is_flow]


def test_sections_of_the_guide_are_asked_for_by_the_vocabulary(acme: Packages) -> None:
    """Lint tells a section that a vocabulary lists and no node answers, at the place of the list."""
    path = acme.site / "acme" / "causes.yaml"
    path.write_text(CAUSES + "guide: ['7.1', '-']\n")
    (acme.site / "acme" / "acme.yaml").write_text(FLOW.replace("  fan:\n", "  fan:\n    guide: '-'\n"))
    linted = acme.run("flows", "lint")
    assert linted.returncode == 1
    assert f"{path}:3:1: guide section '7.1' has no node" in linted.stdout
    assert "'-'" not in linted.stdout


def test_a_flow_folder_of_the_command_line_replaces(acme: Packages, tmp_path: Path) -> None:
    """A flow in a folder that was given replaces the installed one of its id, and brings its own causes."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "x.yaml").write_text(FLOW.replace("en: Racks", "en: My racks"))
    (mine / "causes.yaml").write_text(CAUSES.replace("acme-dust", "my-dust"))
    _, _, _, flows, causes, _, titles = acme.catalog(str(mine))
    assert titles["acme"] == "My racks"
    assert flows.count("acme") == 1
    assert {"acme-dust", "my-dust"} <= set(causes)

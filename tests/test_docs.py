"""The documents are true: their examples load, lint and run, and their links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from runbook.browse import Ask, Browser, Reading, Sheet, checked
from runbook.cli.main import COMMANDS, EXIT_WORDS
from runbook.errors import RunbookError
from runbook.evidence import Evidence
from runbook.finding import Verdict
from runbook.flow.lint import lint
from runbook.flow.load import load_flow, load_vocabulary
from runbook.probe import Probe, silent
from tests.helpers import check_citations, evidence_of

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced examples of one language in a page of docs/."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


def example_probe() -> Probe:
    """Return the probe of docs/writing-a-probe.md."""
    (code,) = blocks("writing-a-probe.md", "python")
    names: dict[str, object] = {}
    exec(compile(code, "writing-a-probe.md", "exec"), names)
    (found,) = [value for value in names.values() if isinstance(value, Probe)]
    return found


def test_the_example_browser_opens() -> None:
    """The browser in the text gives a table and a text that keep the contract, and names what it lacks."""
    (code,) = blocks("writing-a-browser.md", "python")
    names: dict[str, object] = {}
    exec(compile(code, "writing-a-browser.md", "exec"), names)
    (library,) = [value for value in names.values() if isinstance(value, Browser)]
    table = checked(library.open(Evidence(), Ask()))
    assert isinstance(table, Sheet)
    assert [line.id for line in table.lines] == ["1", "2"]
    text = checked(library.open(Evidence(), Ask(("2",))))
    assert isinstance(text, Reading)
    assert [text.level(value) for value in text.passages[0].values] == [-1, -1, -1, 0]
    assert library.lacks(Evidence()) == ["log"]


def test_the_example_flow_is_sound(tmp_path: Path) -> None:
    """The flow and the vocabulary in the text load and lint clean against the probe of the other text."""
    flow, causes = blocks("writing-a-flow.md", "yaml")
    (tmp_path / "x.yaml").write_text(flow)
    (tmp_path / "causes.yaml").write_text(causes)
    probe = example_probe()
    vocabulary = load_vocabulary(tmp_path / "causes.yaml").causes
    assert lint(load_flow(tmp_path / "x.yaml"), {probe.id: probe.answers}, vocabulary) == []


@pytest.mark.parametrize(
    ("content", "verdict", "answer"),
    [
        (b"start\nread a in 0.2 s\nread b in 7.5 s\n", Verdict.WARNING, "slow"),
        (b"read a in 0.2 s\n", Verdict.OK, "quick"),
        (b"nothing\n", Verdict.UNKNOWN, None),
        (b"", Verdict.UNKNOWN, None),
    ],
)
def test_the_example_probe_runs(content: bytes, verdict: Verdict, answer: str | None, tmp_path: Path) -> None:
    """The probe in the text gives the answers that it declares, with true citations."""
    (tmp_path / "job.log").write_bytes(content)
    finding = example_probe().run(evidence_of(("log", tmp_path / "job.log")), silent)
    assert (finding.verdict, finding.answer) == (verdict, answer)
    check_citations(finding)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link of a page leads to a file of the project."""
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_commands_exist(page: Path) -> None:
    """Every command that a page shows is one that the tool has."""
    for word in re.findall(r"^(?: {4}|`)slime-runbook ([a-z]+)", page.read_text(), re.MULTILINE):
        assert word in COMMANDS, word


def test_every_error_and_exit_code_is_documented() -> None:
    """The page on errors names each class of ours and each exit code with its number."""
    text = (ROOT / "docs" / "errors.md").read_text()
    for error in RunbookError.__subclasses__():
        assert f"`{error.__name__}`" in text
    for code in EXIT_WORDS:
        assert f"| {code.value} | `{code.name}` |" in text


def test_documents_can_be_generated_again() -> None:
    """`python -m tests.generate_docs` finds nothing to do in a committed tree."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.generate_docs"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == ""

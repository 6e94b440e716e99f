"""Dumps that cannot be used are told apart, and each is cited."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from probes.dump_readable import readable
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import DUMPS, torch_zip


def of(*paths: Path, slot: str = "rollout_dump") -> Finding:
    """Run the probe; its citations must be true."""
    finding = readable.run(evidence_of(*((slot, path) for path in paths)), silent)
    check_citations(finding)
    return finding


@pytest.mark.parametrize("path", ["coherent", "garbled", "half", "one-zero-mlp", "old", "kl-zero", "ref-off"])
def test_dumps_of_every_version_are_readable(path: str) -> None:
    """Healthy or not, old or new, a dump that opens is readable in either slot."""
    for slot in ("rollout_dump", "train_dump"):
        assert word(of(DUMPS / path, slot=slot)) == "ok:readable"


def test_an_unsafe_dump_is_named_and_not_run(tmp_path: Path) -> None:
    """The callable is in the citation, and the working folder is as it was."""
    before = set(os.listdir("."))
    finding = of(DUMPS / "malicious.pt")
    assert word(finding) == "problem:unsafe"
    assert finding.citations[0].excerpt == "posix.system"
    assert set(os.listdir(".")) == before


def test_a_cut_dump_among_whole_ones_is_found(tmp_path: Path) -> None:
    """Of twenty dumps the eleventh, which is not opened in full, was cut off."""
    whole = (DUMPS / "kl-zero" / "0_0.pt").read_bytes()
    for number in range(20):
        (tmp_path / f"{number}_0.pt").write_bytes(whole if number != 10 else whole[:5000])
    finding = of(tmp_path)
    assert word(finding) == "problem:truncated"
    assert [Path(citation.path).name for citation in finding.citations] == ["10_0.pt"]


def test_what_was_not_opened_is_not_said_to_open(tmp_path: Path) -> None:
    """Of twenty dumps twelve are opened, and of the others only the ends are looked at: the summary says so."""
    whole = (DUMPS / "kl-zero" / "0_0.pt").read_bytes()
    for number in range(20):
        (tmp_path / f"{number}_0.pt").write_bytes(whole)
    finding = of(tmp_path)
    assert word(finding) == "ok:readable"
    assert finding.summary.en.startswith("12 dumps with ")
    assert finding.summary.en.endswith("opened safely; of 8 more only the ends were looked at.")


def test_empty_files_and_dumps_without_samples_are_empty(tmp_path: Path) -> None:
    """Zero bytes and zero samples are both nothing to look at."""
    (tmp_path / "0.pt").write_bytes(b"")
    assert word(of(tmp_path / "0.pt")) == "problem:empty"
    torch_zip(tmp_path / "0.pt", pickle.dumps({"rollout_id": 0, "samples": []}, 2))
    assert word(of(tmp_path)) == "problem:empty"


def test_a_file_of_another_tool_is_foreign_when_it_was_given(tmp_path: Path) -> None:
    """A given file that is no dump is foreign; beside real dumps in a folder it is passed over."""
    other = torch_zip(tmp_path / "global_dataset_state_dict_0.pt", pickle.dumps({"epoch": 1}, 2))
    assert word(of(other)) == "problem:foreign"
    assert word(of(tmp_path)) == "problem:foreign"
    (tmp_path / "1.pt").write_bytes((DUMPS / "coherent" / "0.pt").read_bytes())
    assert word(of(tmp_path)) == "ok:readable"


def test_unsafe_comes_before_the_other_faults(tmp_path: Path) -> None:
    """Several faults: the one that matters most answers."""
    (tmp_path / "a.pt").write_bytes((DUMPS / "malicious.pt").read_bytes())
    (tmp_path / "b.pt").write_bytes((DUMPS / "coherent" / "0.pt").read_bytes()[:900])
    assert word(of(tmp_path)) == "problem:unsafe"


def test_a_folder_without_dumps_is_unknown(tmp_path: Path) -> None:
    """Nothing there says nothing about the dumps."""
    assert word(of(tmp_path)) == "unknown"

"""Every installed probe, over small real evidence and over hostile evidence: the contract that all probes share.

What a probe should answer is tested beside it; here it is only held to what the engine relies on.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from runbook.catalog import Catalog, load_catalog
from runbook.discovery import discover
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict
from runbook.probe import Probe, silent
from runbook.worker import _checked
from tests.helpers import check_citations, evidence_of, is_safe

DATA = Path(__file__).parent / "data"

GARBAGE: dict[str, bytes] = {
    "empty": b"",
    "nul": b"\x00" * 5000,
    "binary": bytes(range(256)) * 40,
    "escapes": b"\x1b[2J\x1b]0;x\x07 [/rank0] \xe2\x80\xae KeyError: 'x'\n" * 50,
    "long-line": b"Traceback " + b"x" * 1_000_000 + b"\n",
    "words": "step 0: {'rollout/log_probs': nan, 'train/kl': 中文}\n\n\r\n".encode() * 5,
    "json": b'{"architectures": [1, null, {}], "num_hidden_layers": "many", "weight_map": 7}',
    "pickle": b"\x80\x04\x95cos\nsystem\n(S'true'\ntR.",
    "zip": b"PK\x03\x04" + b"\x00" * 60,
    "gzip-cut": gzip.compress(b"line\n" * 1000)[:-9],
    "header": b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
    "script": b"#!/bin/bash\nARGS=(--a # x\n${B[@]} $(rm -rf /) `id`\n--load\n)\nfor i in 1; do {\n",
}


@cache
def catalog() -> Catalog:
    """Return what is installed."""
    return load_catalog()


PROBES = sorted(catalog().probes)


@pytest.fixture(scope="module")
def garbage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of garbage files, of a folder that holds them under meaningful names, and of odd things."""
    root = tmp_path_factory.mktemp("garbage")
    for name, content in GARBAGE.items():
        (root / name).write_bytes(content)
    named = root / "folder"
    named.mkdir()
    names = (
        "config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors", "tokenizer_config.json",
        "latest_checkpointed_iteration.txt", "generation_config.json", "0.pt", "rollout_0.pt", "job.log", "x.out",
    )  # fmt: skip
    for name, content in zip(names, GARBAGE.values(), strict=False):
        (named / name).write_bytes(content)
    (root / "empty-folder").mkdir()
    (root / "loop").mkdir()
    (root / "loop" / "again").symlink_to(root / "loop")
    (root / "loop" / "gone").symlink_to("nowhere")
    return root


def natural() -> Iterator[Evidence]:
    """Yield what discovery makes of each folder of the test data, and each log of it alone."""
    for folder in sorted(path for path in DATA.glob("*") if path.is_dir()):
        inner = sorted(path for path in folder.iterdir() if path.is_dir())
        for root in (folder, *inner):
            yield discover(str(root), (), catalog().slots, catalog().followers).evidence
    for log in sorted((DATA / "logs").iterdir()):
        yield evidence_of(("log", log))


@cache
def natural_evidence() -> tuple[Evidence, ...]:
    """Return the distinct pieces of natural evidence that hold anything."""
    return tuple(dict.fromkeys(evidence for evidence in natural() if evidence.items))


def hold_to_contract(probe: Probe, finding: Finding) -> None:
    """Assert what the engine relies on, for any finding of any probe."""
    _checked(probe, finding)
    check_citations(finding)
    assert finding.verdict.decides or finding.answer is None
    for text in (finding.summary, finding.settle_with):
        if text is not None:
            assert text.en.strip()
            assert text.zh.strip()
            assert is_safe(text.en + text.zh)
    for table in finding.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert all(is_safe(cell) for row in table.rows for cell in row)
    for grid in finding.grids:
        assert len(grid.cells) == len(grid.rows)
        assert all(len(cells) == len(grid.columns) for cells in grid.cells)
        assert {code for cells in grid.cells for code in cells} <= {code for code, _, _ in grid.legend}
    for measurement in finding.measurements:
        assert measurement.threshold is None or measurement.source, "a threshold without its source"
    if finding.verdict is Verdict.UNKNOWN:
        assert finding.settle_with is not None, "unknown, and no word on what would settle it"
    assert set(finding.slots) <= set(catalog().slots)


@pytest.mark.parametrize("name", PROBES)
def test_declarations(name: str) -> None:
    """A probe needs slots that exist, declares distinct words as answers and has its question in both languages."""
    probe = catalog().probes[name]
    assert {slot for need in probe.needs for slot in need.split("|")} <= set(catalog().slots)
    assert len(set(probe.answers)) == len(probe.answers) > 0
    assert "unknown" not in probe.answers
    assert probe.title.en.strip()
    assert probe.title.zh.strip()
    assert probe.deadline > 0


@pytest.mark.parametrize("name", PROBES)
def test_over_real_evidence(name: str) -> None:
    """Over every piece of the test data that has what it needs, a probe gives a finding whose citations are true."""
    probe = catalog().probes[name]
    for evidence in natural_evidence():
        if all(evidence.has(need) for need in probe.needs):
            hold_to_contract(probe, probe.run(evidence, silent))


def test_the_real_evidence_is_worth_its_name() -> None:
    """The test data fills the main slots, and over it probes find both what is well and what is wrong."""
    filled = {item.slot for evidence in natural_evidence() for item in evidence.items if not item.missing}
    assert {"log", "launch", "rollout_dump", "train_dump", "megatron_load"} <= filled
    verdicts = {
        probe.run(evidence, silent).verdict
        for probe in catalog().probes.values()
        for evidence in natural_evidence()
        if all(evidence.has(need) for need in probe.needs)
    }
    assert {Verdict.OK, Verdict.PROBLEM, Verdict.UNKNOWN} <= verdicts


@pytest.mark.parametrize("name", PROBES)
def test_over_hostile_evidence(name: str, garbage: Path) -> None:
    """Over empty, broken, binary and hostile files and folders a probe gives a finding and never fails or hangs."""
    probe = catalog().probes[name]
    things = sorted(path for path in garbage.iterdir())
    for thing in things:
        for choice in product(*(need.split("|") for need in probe.needs)):
            evidence = evidence_of(*((slot, thing) for slot in choice), root=str(garbage))
            finding = probe.run(evidence, silent)
            hold_to_contract(probe, finding)


@pytest.mark.parametrize("name", PROBES)
def test_over_evidence_that_is_gone(name: str, tmp_path: Path) -> None:
    """Evidence that vanished between discovery and probe is unknown, never a proof and never a failure."""
    probe = catalog().probes[name]
    for choice in product(*(need.split("|") for need in probe.needs)):
        evidence = evidence_of(*((slot, tmp_path / "gone") for slot in choice))
        finding = probe.run(evidence, silent)
        assert finding.verdict in (Verdict.UNKNOWN, Verdict.NOT_APPLICABLE), finding.summary.en
        hold_to_contract(probe, finding)


def test_nothing_is_written_to_the_evidence(garbage: Path) -> None:
    """After all probes have looked, the files are what they were."""
    before = {path: os.stat(path).st_mtime_ns for path in garbage.rglob("*") if path.is_file()}
    for probe in catalog().probes.values():
        slots = [need.split("|")[0] for need in probe.needs]
        probe.run(evidence_of(*((slot, garbage / "folder") for slot in slots)), silent)
    assert {path: os.stat(path).st_mtime_ns for path in garbage.rglob("*") if path.is_file()} == before

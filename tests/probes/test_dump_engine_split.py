"""Garbled samples are tied to an engine only by what the dump shows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probes.dump_engine_split import engine_split
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import DUMPS, torch_zip
from tests.probes.test_text_quality import GARBLED, HEALTHY


def of(path: Path) -> Finding:
    """Run the probe; its citations must be true."""
    finding = engine_split.run(evidence_of(("rollout_dump", path)), silent)
    check_citations(finding)
    return finding


def write(
    folder: Path, garbled: Callable[[int], bool], fields: Callable[[int], dict[str, Any]], count: int = 48
) -> Path:
    """Write a rollout whose sample n is garbled where the function says so."""
    samples = [
        {"index": n, "response": GARBLED["mixed-scripts"] if garbled(n) else HEALTHY["en-prose"], **fields(n)}
        for n in range(count)
    ]
    return torch_zip(folder / "0.pt", pickle.dumps({"rollout_id": 0, "samples": samples}, 2))


def hash_of(n: int) -> int:
    """Return a number without a pattern in n."""
    return (n * 2654435761 % 2**32) >> 20


@pytest.mark.parametrize(
    ("path", "answer"), [("half", "unknown"), ("garbled", "ok:not-split"), ("coherent", "ok:not-split")]
)
def test_recorded_dumps(path: str, answer: str) -> None:
    """Every other sample garbled is a turn, which proves no engine; all or none garbled is no split."""
    assert word(of(DUMPS / path)) == answer


@pytest.mark.parametrize(
    "fields",
    [
        lambda n: {"metadata": {"engine_url": f"http://10.0.0.{hash_of(n) % 4}:3000"}},
        lambda n: {"trace": {"events": [{"name": "sglang_generate", "attrs": {"worker": hash_of(n) % 4}}]}},
    ],
    ids=["metadata", "trace"],
)
def test_a_field_that_separates_them_proves_one_engine(fields: Callable[[int], dict[str, Any]], tmp_path: Path) -> None:
    """Garbled exactly where the field has one value: that engine, named by the value."""
    finding = of(write(tmp_path, lambda n: hash_of(n) % 4 == 1, fields))
    assert word(finding) == "problem:one-engine"


def test_a_split_of_a_few_samples_is_a_lead(tmp_path: Path) -> None:
    """Six of 24 garbled, all of one host of two, is 2 in 134,596 by chance: a pattern, and less than a proof."""
    bad = (1, 6, 7, 15, 20, 22)
    finding = of(write(tmp_path, lambda n: n in bad, lambda n: {"metadata": {"engine_host": str(n in bad)}}, 24))
    assert word(finding) == "warning:one-engine"
    assert finding.measurements[0].value == pytest.approx(2 / 134596)


def test_a_turn_is_told_and_decides_nothing(tmp_path: Path) -> None:
    """Every eighth sample garbled may be one engine or one task of the mix: unknown, and the turn is named."""
    finding = of(write(tmp_path, lambda n: n % 8 == 3, lambda _: {"weight_versions": ["1"]}, count=64))
    assert word(finding) == "unknown"
    assert "index mod 8 3" in finding.summary.en
    assert finding.tables[0].rows[3] == ("3", "8", "8")
    assert finding.settle_with is not None


def test_a_weight_version_is_no_engine(tmp_path: Path) -> None:
    """Garbled exactly with one version of the weights: that is an update, and every engine gets it."""
    fields = [["3" if hash_of(n) % 4 == 1 else "4"] for n in range(48)]
    finding = of(write(tmp_path, lambda n: hash_of(n) % 4 == 1, lambda n: {"weight_versions": fields[n]}))
    assert word(finding) == "unknown"
    assert "weight update" in finding.summary.en
    assert "weight_versions 3" in finding.summary.en


def test_a_task_that_separates_them_as_well_leaves_it_open(tmp_path: Path) -> None:
    """Where engine and task coincide the task may be the reason, so the engine is not accused."""
    finding = of(
        write(
            tmp_path,
            lambda n: hash_of(n) % 4 == 1,
            lambda n: {"metadata": {"engine_url": hash_of(n) % 4, "task": f"t{hash_of(n) % 4}"}},
        )
    )
    assert word(finding) == "unknown"
    assert "the task" in finding.summary.en


def test_garbled_on_every_engine_is_spread(tmp_path: Path) -> None:
    """A field that does not separate them says that no single engine is at fault."""
    finding = of(write(tmp_path, lambda n: hash_of(n) % 3 == 0, lambda n: {"metadata": {"engine": f"node{n % 2}"}}))
    assert word(finding) == "ok:spread"


@pytest.mark.parametrize("key", ["source_url", "difficulty_rank", "host"])
def test_a_data_sets_own_fields_are_no_engine(key: str, tmp_path: Path) -> None:
    """A url, a host or a rank in a sample's metadata is the task's, however well it separates the samples."""
    finding = of(write(tmp_path, lambda n: hash_of(n) % 4 == 1, lambda n: {"metadata": {key: hash_of(n) % 4}}))
    assert word(finding) == "unknown"


def test_without_field_and_pattern_it_is_unknown(tmp_path: Path) -> None:
    """The dump does not record the engine, and nothing is made up."""
    finding = of(write(tmp_path, lambda n: hash_of(n) % 3 == 0, lambda n: {"metadata": {"case": n % 3}}))
    assert word(finding) == "unknown"
    assert finding.settle_with is not None


def test_a_few_samples_are_never_a_pattern(tmp_path: Path) -> None:
    """Two of four garbled in a turn may be chance."""
    assert word(of(write(tmp_path, lambda n: n % 2 == 0, lambda _: {}, count=4))) == "unknown"


def test_no_dump_is_unknown() -> None:
    """A train dump holds no responses."""
    assert word(of(DUMPS / "kl-zero")) == "unknown"

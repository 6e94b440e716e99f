"""Tests that the recorder, in the real SGLang, records every way in which weights arrive, and what became of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from probes.readers.received_weights import Update, read_updates
from probes.weights_compare import compare
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.weights_models import TINY, build
from tests.sglang_cpu.conftest import STUBS, Server, free_port

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(600)]
ROUTER = "model.layers.1.mlp.router.weight"


@pytest.fixture(scope="module")
def answers(server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """Send the updates and return what the server answered to each request."""
    environment = {**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": os.pathsep.join(STUBS)}
    sender = str(Path(__file__).parent / "sender.py")
    said, errors = tmp_path_factory.mktemp("sender") / "out", tmp_path_factory.mktemp("sender") / "err"
    with said.open("wb") as out, errors.open("wb") as err:  # files: a helper process of torch keeps pipes open
        done = subprocess.run(
            [server.python, sender, server.url, str(server.checkpoint), str(free_port())],
            env=environment, stdout=out, stderr=err, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 0, errors.read_text()[-3000:]
    return [json.loads(line) for line in said.read_text().splitlines() if line.startswith("{")]


def updates(server: Server) -> list[Update]:
    """Return what was recorded so far."""
    return read_updates([str(server.out)])[0]


def test_every_way_is_recorded(server: Server, answers: list[dict[str, object]]) -> None:
    """The load at the start, tensors, a flattened bucket, a broadcast and a load from disk, each by its kind."""
    assert all(answer["status"] == 200 for answer in answers)
    found = updates(server)
    assert [(each.kind, each.version, len(each.sent)) for each in found] == [
        ("load", "", 45),
        ("tensor", "1", 45),
        ("tensor", "2", 45),
        ("distributed", "3", 45),
        ("disk", "4", 45),
        ("tensor", "5", 1),
    ]
    assert {sent.name for sent in found[0].sent} == set(build(TINY))
    assert not (server.out / "recorder.log").exists()


def test_the_server_is_content_with_a_name_it_drops(server: Server, answers: list[dict[str, object]]) -> None:
    """The server answers success to the unknown names; only the recording shows that they were not taken."""
    assert all("success" in json.dumps(answer["answer"]).lower() for answer in answers)
    assert ROUTER not in server.log.read_text(errors="replace")
    finding = compare.run(evidence_of(("received_weights", server.out), ("hf_checkpoint", server.checkpoint)), silent)
    check_citations(finding)
    assert word(finding) == "problem:unknown-name"
    assert ROUTER in finding.summary.en
    assert "dropped it without a word" in finding.summary.en


def test_what_was_right_is_in_the_engine_to_the_bit(
    server: Server, answers: list[dict[str, object]], tmp_path: Path
) -> None:
    """All 45 tensors of the updates before the fault are found in the engine's parameters, fused ones too."""
    for each in updates(server)[:3]:
        shutil.copytree(each.path, tmp_path / "engine-000" / Path(each.path).name)
    last = tmp_path / "engine-000" / "update-0002" / "received.jsonl"
    last.write_text(last.read_text() + '{"ev":"idle"}\n')
    finding = compare.run(evidence_of(("received_weights", tmp_path), ("hf_checkpoint", server.checkpoint)), silent)
    assert word(finding) == "ok:trained"
    assert "45 are in the engine bit by bit" in finding.summary.en


def test_the_end_of_the_last_update_is_noted(server: Server, answers: list[dict[str, object]]) -> None:
    """Some twenty seconds after the last request the recording says that nothing more came."""
    ends = time.monotonic() + 40
    while not updates(server)[-1].whole and time.monotonic() < ends:
        time.sleep(1)
    assert updates(server)[-1].whole

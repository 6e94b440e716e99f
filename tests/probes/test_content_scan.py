"""A scan reads each tensor once, by whatever workers, resumes where it was stopped, and survives unreadable files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from probes import content_scan
from probes.content_scan import Answer, Engine, Item, Tell, here, pieces_of, processes, scan
from probes.content_state import State
from probes.hf_checkpoint import Checkpoint, open_checkpoint
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.tiny_models import QWEN3_MOE, write_checkpoint, write_safetensors


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small checkpoint whose scan is cut into items of a few tensors."""
    monkeypatch.setattr(content_scan, "ITEM_BYTES", 4000)
    return write_checkpoint(tmp_path / "model", QWEN3_MOE, shards=3)


def opened(folder: Path) -> Checkpoint:
    """Return the checkpoint with its headers read."""
    checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", folder)), silent)
    assert not isinstance(checkpoint, Finding)
    return checkpoint


def stopping_after(count: int) -> Engine:
    """Return an engine that reads `count` items and is then stopped, as by a kill."""

    def run(items: list[Item], tell: Tell) -> Iterator[Answer]:
        for number, answer in enumerate(here(items, tell)):
            if number == count:
                raise KeyboardInterrupt
            yield answer

    return run


def test_every_tensor_is_read_once_and_progress_ends_at_the_total(folder: Path) -> None:
    """Items cover all tensors, the bytes told add up, and a time is given while it runs."""
    checkpoint = opened(folder)
    said: list[tuple[float, float | None, str]] = []
    result = scan(checkpoint, pieces_of(checkpoint), here, lambda *step: said.append(step), State())
    assert set(result.looked) == {
        (file, name) for file, header in checkpoint.headers.items() for name in header.tensors
    }
    total = sum(header.size - header.data for header in checkpoint.headers.values())
    assert result.read == total
    assert result.readers[""] > 3
    assert said[-1][0] == said[-1][1] == pytest.approx(total / 1e6)
    assert said[-1][2] == "MB, 0s left"
    assert [step[0] for step in said] == sorted(step[0] for step in said)


def test_helper_processes_find_the_same(folder: Path) -> None:
    """Two processes give the results of one, hash for hash."""
    checkpoint = opened(folder)
    alone = scan(checkpoint, pieces_of(checkpoint), here, silent, State())
    together = scan(checkpoint, pieces_of(checkpoint), processes(2), silent, State())
    assert together.looked == alone.looked
    assert not together.failures


def test_a_stopped_scan_is_resumed(folder: Path, tmp_path: Path) -> None:
    """What was read before the kill is not read again, and the whole is as if it had not been stopped."""
    checkpoint = opened(folder)
    state = State(str(tmp_path / "state.jsonl"))
    with pytest.raises(KeyboardInterrupt):
        scan(checkpoint, pieces_of(checkpoint), stopping_after(3), silent, state)
    resumed = scan(checkpoint, pieces_of(checkpoint), here, silent, state)
    whole = scan(checkpoint, pieces_of(checkpoint), here, silent, State())
    assert resumed.looked == whole.looked
    assert 0 < resumed.resumed < whole.read
    assert resumed.read + resumed.resumed == whole.read
    again = scan(checkpoint, pieces_of(checkpoint), stopping_after(0), silent, state)
    assert (again.looked, again.read) == (whole.looked, 0)


def test_a_rewritten_shard_is_read_again(folder: Path, tmp_path: Path) -> None:
    """A shard whose time changed is read again, the others are not."""
    state = State(str(tmp_path / "state.jsonl"))
    scan(opened(folder), pieces_of(opened(folder)), here, silent, state)
    shard = folder / "model-00002-of-00003.safetensors"
    os.utime(shard, ns=(1, 1))
    checkpoint = opened(folder)
    result = scan(checkpoint, pieces_of(checkpoint), here, silent, state)
    assert result.read == checkpoint.headers[shard.name].size - checkpoint.headers[shard.name].data


@pytest.mark.parametrize("engine", [here, processes(2)], ids=["here", "processes"])
def test_a_shard_that_goes_away_is_a_failure_of_its_own(folder: Path, engine: Engine) -> None:
    """The other shards are read, and the reason is given for the one that is not."""
    checkpoint = opened(folder)
    gone = "model-00002-of-00003.safetensors"
    wanted = pieces_of(checkpoint)
    (folder / gone).unlink()
    (folder / gone).symlink_to(folder / "model-00001-of-00003.safetensors")
    result = scan(checkpoint, wanted, engine, silent, State())
    assert list(result.failures) == [gone]
    assert {file for file, _ in result.looked} == set(wanted) - {gone}


def test_a_shard_that_cannot_be_read_is_told_with_the_systems_words(folder: Path) -> None:
    """An item whose file vanishes between header and read fails with the reason."""
    checkpoint = opened(folder)

    def vanishing(items: list[Item], tell: Tell) -> Iterator[Answer]:
        (folder / "model-00003-of-00003.safetensors").unlink()
        yield from here(items, tell)

    result = scan(checkpoint, pieces_of(checkpoint), vanishing, silent, State())
    assert result.failures == {"model-00003-of-00003.safetensors": "No such file or directory"}


def test_tensors_that_a_cut_file_does_not_hold_are_not_wanted(folder: Path) -> None:
    """Of a truncated shard only the tensors before the cut are read."""
    shard = folder / "model-00001-of-00003.safetensors"
    whole = len(pieces_of(opened(folder))[shard.name])
    os.truncate(shard, shard.stat().st_size - 10)
    assert len(pieces_of(opened(folder))[shard.name]) == whole - 1


def children(pid: int) -> list[int]:
    """Return the process ids of a process's children."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    """Return whether something happens within some seconds."""
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
    return happened()


def test_helpers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """A probe is ended by a kill; helpers in the midst of a tensor of 400 GB must not read on to its end."""
    shard = tmp_path / "model.safetensors"
    size = 400 << 30
    write_safetensors(shard, {"a": ("U8", (size,), b""), "b": ("U8", (size,), b"")})
    header = (
        shard.read_bytes()[8:]
        .replace(b"[0, 0]", b"[0, %d]" % size, 1)
        .replace(b"[0, 0]", b"[%d, %d]" % (size, 2 * size))
    )
    shard.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(shard, 8 + len(header) + 2 * size)
    code = """
import sys
from probes.content_scan import pieces_of, processes, scan
from probes.content_state import State
from probes.hf_checkpoint import open_checkpoint
from runbook.probe import silent
from tests.helpers import evidence_of
checkpoint = open_checkpoint(evidence_of(("hf_checkpoint", sys.argv[1])), silent)
scan(checkpoint, pieces_of(checkpoint), processes(2), silent, State())
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as parent:
        assert wait_until(lambda: len(children(parent.pid)) == 2, 20)
        helpers = [Path(f"/proc/{pid}/stat") for pid in children(parent.pid)]
        time.sleep(0.5)
        parent.kill()
    assert wait_until(lambda: not any(helper.exists() for helper in helpers), 20)

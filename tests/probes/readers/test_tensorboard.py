"""Scalars of TensorBoard event files, whole, torn and hostile."""

from __future__ import annotations

import math
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.logscan import Coverage
from probes.readers.metrics import Record
from probes.readers.tensorboard import crc32c, inside, looks, records

WRITTEN = next((Path(__file__).parents[2] / "data" / "tensorboard").iterdir())
"""Written by TensorBoard's own EventFileWriter: six steps of three simple values, and a tensor for each rollout."""


def _read(path: Path, content: bytes | None = None) -> tuple[list[Record], list[str]]:
    if content is not None:
        path.write_bytes(content)
    coverage = Coverage()
    return list(records(str(path), coverage)), [problem.kind for problem in coverage.problems]


WHOLE = _read(WRITTEN)[0]


def _framed(payload: bytes) -> bytes:
    def masked(data: bytes) -> bytes:
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def test_the_checksum_is_castagnolis() -> None:
    """RFC 3720, B.4: the CRC-32C of 32 zero bytes, and of 0 to 31."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_a_file_of_the_real_writer_is_read() -> None:
    """Simple values and tensors come out by step, NaN included; other tags are passed over."""
    found, problems = _read(WRITTEN)
    steps = [each for each in found if each.kind == "step"]
    rollouts = [each for each in found if each.kind == "rollout"]
    assert problems == []
    assert [each.number for each in steps] == [each.number for each in rollouts] == [0, 1, 2, 3, 4, 5]
    assert steps[3].values == pytest.approx({"train/kl_loss": 0.003, "train/grad_norm": 0.5, "train/loss": 0.25})
    assert math.isnan(steps[5].values["train/loss"])
    assert rollouts[0].values == {"rollout/raw_reward": 0.5}
    assert looks(WRITTEN.read_bytes())


@given(st.integers(0, WRITTEN.stat().st_size))
def test_a_torn_file_gives_what_is_whole(cut: int) -> None:
    """Cut at any byte, the file gives the beginning of its records, and no fault."""
    torn = _of_bytes(WRITTEN.read_bytes()[:cut])
    whole = {(each.kind, each.number): {key: repr(value) for key, value in each.values.items()} for each in WHOLE}
    assert len(torn) <= len(whole)
    for each in torn:
        shown = {key: repr(value) for key, value in each.values.items()}
        assert shown.items() <= whole[each.kind, each.number].items()


def _of_bytes(content: bytes) -> list[Record]:
    """Return the records of some bytes, which must not be told to be damaged."""
    with tempfile.TemporaryDirectory() as folder:
        found, problems = _read(Path(folder, "x.tfevents.1"), content)
    assert "damaged" not in problems
    return found


def test_a_flipped_byte_ends_the_reading(tmp_path: Path) -> None:
    """A payload that fails its checksum gives no number and is told."""
    content = bytearray(WRITTEN.read_bytes())
    content[200] ^= 1
    found, problems = _read(tmp_path / "x.tfevents.1", bytes(content))
    assert problems == ["damaged"]
    assert len(found) < 12


@pytest.mark.parametrize("length", [1 << 63, (1 << 64) - 1, 1 << 40])
def test_a_hostile_length_is_not_believed(tmp_path: Path, length: int) -> None:
    """A length beyond the file, with a right checksum of its own, reads nothing and reserves nothing."""
    raw = struct.pack("<Q", length)
    crc = crc32c(raw)
    frame = raw + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    found, problems = _read(tmp_path / "x.tfevents.1", frame + b"x" * 100)
    assert (found, problems) == ([], ["grew"])


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_payload_gives_records_or_nothing(payloads: list[bytes]) -> None:
    """Bytes that are no protobuf, rightly framed, are passed over."""
    for each in _of_bytes(b"".join(map(_framed, payloads))):
        assert all(isinstance(value, float) for value in each.values.values())


def test_a_text_log_is_no_event_file(tmp_path: Path) -> None:
    """Neither by its head nor by its name; a folder is searched for the names of event files."""
    assert not looks(b"[2026-08-21 10:00:00] x.py:1 - hello\n" * 9)
    assert not looks(b"")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "events.out.tfevents.1.h").write_bytes(b"")
    (tmp_path / "job.log").write_bytes(b"x")
    assert inside(str(tmp_path)) == [str(tmp_path / "deep" / "events.out.tfevents.1.h")]

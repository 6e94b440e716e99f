"""Every way in which a file fails to be a dump says what it is and what to do."""

from __future__ import annotations

import gzip
import io
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from probes.dump_readable import readable
from probes.dump_remedies import REMEDIES, remedy
from probes.readers import bounded_read, dump_instead, foreign_files, torch_zip
from probes.readers.dump_errors import DumpError, Fault
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.readers.pickles import torch_zip as write_zip
from tests.probes.tiny_models import write_safetensors


def of(path: Path) -> Finding:
    """Ask dump.readable about one file that was given."""
    finding = readable.run(evidence_of(("rollout_dump", path)), silent)
    check_citations(finding)
    return finding


def saved(value: object) -> bytes:
    """Return what torch.save writes."""
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def arrays() -> bytes:
    """Return a numpy .npz file."""
    file = io.BytesIO()
    np.savez(file, x=np.arange(3))
    return file.getvalue()


WEIGHTS = {f"model.layers.{n}.mlp.up_proj.weight": torch.zeros(2, 2) for n in range(4)}
VERL = b"\x80\x02cverl.protocol\nDataProto\n)\x81}X\x05\x00\x00\x00batchNsb."
FILES: dict[str, tuple[bytes, str, str]] = {
    "gzip": (gzip.compress(saved({"samples": []})), "problem:foreign", "a gzip file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "problem:foreign", "git lfs pull"),
    "zeros": (b"\x00" * 4096, "problem:truncated", "nothing but zero bytes"),
    "bin": (saved(WEIGHTS), "problem:foreign", "4 weights by name, as a Hugging Face .bin"),
    "distcp": (saved(torch.zeros(3)), "problem:foreign", "a single tensor"),
    "megatron": (saved({"iteration": 3, "args": None, "checkpoint_version": 3.0}), "problem:foreign", "a checkpoint"),
    "npz": (arrays(), "problem:foreign", "a numpy .npz file"),
    "verl json": (b'{"input": "q", "output": "a", "score": 1.0}\n', "problem:foreign", "as verl writes them"),
    "verl pickle": (VERL, "problem:foreign", "a dump of verl (verl.protocol.DataProto)"),
    "openrlhf": (saved({"sequences": [], "action_log_probs": [], "action_mask": []}), "problem:foreign", "OpenRLHF"),
    "html": (b"<!DOCTYPE html><html>404</html>", "problem:foreign", "a web page"),
    "json": (b'{"samples": []}', "problem:foreign", "a JSON text"),
    "text": (b"Traceback (most recent call last):\n", "problem:foreign", "a text file"),
    "elf": (b"\x7fELF" + b"\x02" * 600, "problem:foreign", "--cuda-coredump"),
    "pgp": (b"-----BEGIN PGP MESSAGE-----\n", "problem:foreign", "is encrypted"),
    "protocol 0": (pickle.dumps({"x": 1}, 0), "problem:foreign", "a dict without samples"),
    "noise": (bytes(range(200, 256)) * 20, "problem:foreign", "neither a torch file nor a pickle"),
    "newer": (saved({"format_version": 3, "samples": [], "dp_shards": []}), "problem:foreign", "format_version 3"),
    "attack": (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.", "problem:unsafe", "is malicious"),
    "class": (b"\x80\x02cmy_rewards\nmake\n)R.", "problem:unsafe", "my_rewards.make"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_given_by_mistake_says_itself(name: str, tmp_path: Path) -> None:
    """The summary names what the file is, and ends with what to do, in both languages."""
    content, answer, words = FILES[name]
    path = tmp_path / "0.pt"
    path.write_bytes(content)
    finding = of(path)
    assert word(finding) == answer
    assert words in finding.summary.en
    assert any(finding.summary.zh.endswith(text.zh) for text in (*REMEDIES.values(), remedy(DumpError(
        Fault.TRUNCATED, "", ""))))  # fmt: skip


def test_a_safetensors_file_is_weights(tmp_path: Path) -> None:
    """A shard in place of a dump is told to be weights."""
    path = tmp_path / "model.pt"
    write_safetensors(path, {"a": ("F32", (2,), b"\x00" * 8)})
    assert "safetensors" in of(path).summary.en


def test_a_legacy_tar_is_named(tmp_path: Path) -> None:
    """Torch of 2016 wrote a tar whose first member is sys_info."""
    head = b"sys_info".ljust(257, b"\x00") + b"ustar\x0000"
    (tmp_path / "0.pt").write_bytes(head.ljust(1024, b"\x00"))
    assert "a torch file of 2016 (tar)" in of(tmp_path / "0.pt").summary.en


def test_what_cannot_be_opened_is_unknown_with_its_remedy(tmp_path: Path) -> None:
    """A link that leads to itself is no fault of a dump."""
    (tmp_path / "0.pt").symlink_to(tmp_path / "0.pt")
    finding = readable.run(evidence_of(("rollout_dump", tmp_path / "0.pt")), silent)
    assert word(finding) == "unknown"
    assert finding.settle_with is not None
    assert finding.settle_with.en == "Check path, permissions and links."


def test_every_kind_that_a_reader_gives_has_a_remedy() -> None:
    """The readers' sources name no kind without words, and every fault without a kind has some."""
    given: set[str] = {kind for _, kind, _ in foreign_files.MAGICS}
    for module in (bounded_read, dump_instead, foreign_files, torch_zip):
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        given |= set(re.findall(r'kind="([a-z-]+)"', source)) | set(re.findall(r'return "([a-z0-9-]+)", f?"', source))
    assert given - set(REMEDIES) == set()
    assert all(remedy(DumpError(fault, "", "")).zh for fault in Fault)


def test_a_dump_of_protocol_zero_still_opens(tmp_path: Path) -> None:
    """Python 2's text pickles are read like the others."""
    write_zip(tmp_path / "0.pt", pickle.dumps({"rollout_id": 0, "samples": [{"response": "ok"}]}, 0))
    assert word(of(tmp_path / "0.pt")) == "ok:readable"

"""Builds small torch files and hostile pickles for the tests, without torch."""

from __future__ import annotations

import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "data"
DUMPS = DATA / "dumps"


def torch_zip(
    path: Path, data: bytes, entries: dict[str, bytes] | None = None, method: int = zipfile.ZIP_STORED
) -> Path:
    """Write the zip that torch.save writes around a pickle."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", data)
        for name, content in ({"byteorder": b"little", "version": b"3\n"} | (entries or {})).items():
            archive.writestr(f"archive/{name}", content)
    return path


def calling(name: str, *arguments: Any) -> bytes:
    """Return a pickle of {"rollout_id": 0, "samples": [name(*arguments)]}; name is "module callable"."""
    module, function = name.split(" ")
    inner = pickle.dumps(list(arguments), 2)[2:-1]
    head = b"\x80\x02}(" + text("rollout_id") + b"K\x00" + text("samples") + b"]"
    return head + b"c" + f"{module}\n{function}\n".encode() + b"(" + inner + b"tR" + b"au."


def text(value: str) -> bytes:
    """Return the opcode that pushes a string."""
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw

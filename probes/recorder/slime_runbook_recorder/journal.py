"""The files of one recording process: lines of JSON, and safetensors files that are valid after every call.

Everything counts towards the limit before it is written, so that a recording can never fill a disk.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from typing import IO, Any

from . import FORMAT
from .options import Options

HEADER_ROOM = 1 << 20
"""Bytes kept free for the header of a tensor file; safetensors allows it to end in blanks."""
FILE_LIMIT = 4 << 30
"""Bytes of one tensor file."""
ENTRY_ROOM = 160
"""Bytes that one tensor takes in the header beside its name."""

_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""torch's name of a dtype and that of safetensors."""


class LimitReachedError(Exception):
    """What is to be written does not fit into the limit; it ends the recording."""


@dataclass
class Budget:
    """The bytes that one process may still write."""

    left: int

    def spend(self, size: int) -> None:
        """Take `size` bytes. Raises LimitReachedError before anything is written."""
        if size > self.left:
            raise LimitReachedError("the limit of bytes to write is reached")
        self.left -= size


class Journal:
    """Writes the updates of one model, one folder each."""

    def __init__(self, folder: str, budget: Budget) -> None:
        self.folder = folder
        self._budget = budget
        self._number = -1
        self._lines: IO[str] | None = None
        self._engine: IO[str] | None = None
        self._tensors: IO[bytes] | None = None
        self._header: dict[str, Any] = {}
        self._header_size = 0
        self._filled = 0
        self._files = 0

    def turn(self) -> None:
        """Go on in the folder of the next update."""
        self.close()
        self._number += 1
        self._files = 0
        update = self._update()
        os.makedirs(update)
        self._lines = open(os.path.join(update, "received.jsonl"), "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self._engine = open(os.path.join(update, "engine.jsonl"), "a", encoding="utf-8")  # noqa: SIM115

    def write(self, **fields: Any) -> None:
        """Append a line about what was received. Raises LimitReachedError."""
        self._line(self._lines, fields)

    def engine(self, **fields: Any) -> None:
        """Append a line about one of the engine's own parameters. Raises LimitReachedError."""
        self._line(self._engine, fields)

    def store(self, name: str, tensor: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """Write the tensor itself; return its file as a field of its line, none when it does not fit."""
        import torch

        size = tensor.numel() * tensor.element_size()
        dtype = _DTYPES.get(facts["dtype"])
        if dtype is None or size + 2 * HEADER_ROOM > self._budget.left:
            return {}
        entry = len(json.dumps(name)) + ENTRY_ROOM
        full = self._filled > FILE_LIMIT or self._header_size + entry > HEADER_ROOM
        if self._tensors is None or name in self._header or full:
            self._next_file()
        assert self._tensors is not None
        self._budget.spend(size)
        raw = tensor.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8)
        self._tensors.write(memoryview(raw.numpy()))
        start, self._filled = self._filled, self._filled + size
        self._header_size += entry
        self._header[name] = {"dtype": dtype, "shape": facts["shape"], "data_offsets": [start, self._filled]}
        return {"file": os.path.basename(self._tensors.name)}

    def flush(self) -> None:
        """Bring everything to disk; the tensor file gets its header."""
        for file in (self._lines, self._engine):
            if file is not None:
                file.flush()
        if self._tensors is not None:
            self._tensors.seek(0)
            self._tensors.write(HEADER_ROOM.to_bytes(8, "little"))
            self._tensors.write(json.dumps(self._header).encode().ljust(HEADER_ROOM))
            self._tensors.seek(0, os.SEEK_END)
            self._tensors.flush()

    def close(self) -> None:
        """Close the files of the present update."""
        self.flush()
        for file in (self._lines, self._engine, self._tensors):
            if file is not None:
                file.close()
        self._lines = self._engine = self._tensors = None

    def _update(self) -> str:
        return os.path.join(self.folder, f"update-{self._number:04d}")

    def _line(self, file: IO[str] | None, fields: dict[str, Any]) -> None:
        if file is not None:
            text = json.dumps(fields, separators=(",", ":")) + "\n"
            self._budget.spend(len(text))
            file.write(text)

    def _next_file(self) -> None:
        if self._tensors is not None:
            self.flush()
            self._tensors.close()
        self._budget.spend(HEADER_ROOM)
        path = os.path.join(self._update(), f"tensors-{self._files:03d}.safetensors")
        self._files += 1
        self._tensors = open(path, "xb")  # noqa: SIM115
        self._tensors.write(b"\0" * (8 + HEADER_ROOM))
        self._header, self._header_size, self._filled = {}, 0, 0


def open_folder(options: Options, rank: int, world: int) -> str | None:
    """Take the first free folder of the process folders; None when as many as asked for are taken."""
    os.makedirs(options.folder, exist_ok=True)
    for number in range(options.engines):
        folder = os.path.join(options.folder, f"engine-{number:03d}")
        try:
            os.mkdir(folder)
        except FileExistsError:
            continue
        about = {"format": FORMAT, "pid": os.getpid(), "rank": rank, "world": world, "python": sys.version.split()[0]}
        about |= {name: str(getattr(sys.modules.get(name), "__version__", "")) for name in ("torch", "sglang")}
        with open(os.path.join(folder, "process.json"), "w", encoding="utf-8") as file:
            json.dump(about, file)
        return folder
    return None


def note(folder: str, words: str) -> None:
    """Append one line to recorder.log."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "recorder.log"), "a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} pid {os.getpid()} {words[:600]}\n")

"""What the probes of a Hugging Face checkpoint share: the folder with its headers, and its tensors by name.

A quantised tensor is stored as several entries (`weight_packed`, `weight_scale`, …); `Weight` is the tensor that they
stand for, under its plain name. Invariants: headers only, no tensor is read; the same folder is read the same way by
every probe.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from probes.readers.hf_config import HfConfig, read_config
from probes.readers.hf_index import Folder, read_folder, read_headers
from probes.readers.safetensors_header import Entry, Header
from probes.readers.torch_bin import BinFile, read_bin
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, cite, unknown
from runbook.probe import Progress
from runbook.text import EXCERPT_LIMIT, sanitise

PACKED_PARTS = {"weight_packed": "weight", "qweight": "weight"}
"""Last part of an entry that holds quantised values in another layout, and of the tensor it stands for."""

SIDE_PARTS = dict.fromkeys(
    (
        *("weight_scale", "weight_scale_inv", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_scale_2"),
        *("weight_global_scale", "input_scale", "input_zero_point", "input_global_scale", "qzeros", "scales", "g_idx"),
    ),
    "weight",
)
"""Last parts of the entries that go with it (compressed-tensors, FP8, AWQ, GPTQ, ModelOpt)."""

_PARTS = PACKED_PARTS | SIDE_PARTS

SMALL_FLOATS = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder. headers: by file name (safetensors). bins: by file name. config: None when there is none."""

    folder: Folder
    headers: dict[str, Header]
    bins: dict[str, BinFile]
    config: HfConfig | None

    @property
    def path(self) -> str:
        """Return the folder."""
        return self.folder.path

    @property
    def index_path(self) -> str:
        """Return the index file, or the folder when there is none: what to cite for what is in no file."""
        return self.folder.index.path if self.folder.index else self.folder.path


class Weight(msgspec.Struct, frozen=True, gc=False):
    """A tensor by its plain name.

    parts: last name part and entry of each piece; the entry is None when only an index names it. file: where its
    values are.
    """

    parts: dict[str, Entry | None]
    file: str

    @property
    def packed(self) -> bool:
        """Return whether its values are in a quantised layout (packed integers, or 8 and 4 bit floats)."""
        plain = self.parts.get("weight")
        if plain is not None:
            return plain.dtype in SMALL_FLOATS
        return "weight_packed" in self.parts or "qweight" in self.parts

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Return its shape when it is stored plainly, else None."""
        entry = self.parts.get("weight")
        if entry is None and len(self.parts) == 1:
            ((part, entry),) = self.parts.items()
            if part in PACKED_PARTS or part in SIDE_PARTS:
                return None
        return entry.shape if entry is not None else None


def open_checkpoint(evidence: Evidence, report: Progress) -> Checkpoint | Finding:
    """Read the checkpoint of the slot `hf_checkpoint`, or say why there is none to judge."""
    path = evidence.first("hf_checkpoint") or ""
    try:
        if os.path.isfile(path):
            path = os.path.dirname(path) or "."
        folder = read_folder(path)
    except OSError as error:
        return unknown(
            f"{path} cannot be listed ({error.strerror}).",
            f"无法列出 {path}（{error.strerror}）。",
            settle_en="Give the folder of --hf-checkpoint, readable from here.",
            settle_zh="提供可从此处读取的 --hf-checkpoint 目录。",
            slots=("hf_checkpoint",),
        )
    if not folder.weights:
        return _nothing(folder)
    headers, bins = {}, {}
    if folder.ending == ".safetensors":
        headers = read_headers(folder, folder.weights, report)
    else:
        for number, name in enumerate(folder.weights, start=1):
            bins[name] = read_bin(os.path.join(path, name))
            report(number, len(folder.weights), "file")
    return Checkpoint(folder, headers, bins, read_config(path))


def _nothing(folder: Folder) -> Finding:
    """Say that a folder has no weights: a copy of the small files alone is ordinary, so it is no fault by itself."""
    if folder.named:
        en = f"The index names {len(folder.named)} files and none of them is in {folder.path}: a copy without weights."
        zh = f"index 列出 {len(folder.named)} 个文件，但 {folder.path} 中一个也没有：这是不含权重的副本。"
    else:
        en = f"{folder.path} holds no weights (.safetensors or .bin)."
        zh = f"{folder.path} 中没有权重文件（.safetensors 或 .bin）。"
    return unknown(
        en,
        zh,
        settle_en="Give the folder that --hf-checkpoint names, with its weights.",
        settle_zh="提供 --hf-checkpoint 所指、含权重的目录。",
        slots=("hf_checkpoint",),
        citations=(cite(folder.path, "no .safetensors and no .bin file here"),),
    )


def weights_of(checkpoint: Checkpoint) -> dict[str, Weight]:
    """Return every tensor by its plain name.

    From the headers; where those are not to be had (.bin, or a shard without a header), from the index.
    """
    found: dict[str, Weight] = {}
    for file, header in checkpoint.headers.items():
        for name, entry in header.tensors.items():
            _add(found, name, entry, file)
    index = checkpoint.folder.index
    if index is not None and index.weight_map and not all(header.readable for header in checkpoint.headers.values()):
        unread = {file for file, header in checkpoint.headers.items() if not header.readable}
        for name, file in index.weight_map.items():
            if file in unread:
                _add(found, name, None, file)
    elif index is not None and index.weight_map and checkpoint.bins:
        for name, file in index.weight_map.items():
            _add(found, name, None, file)
    return found


def _add(found: dict[str, Weight], name: str, entry: Entry | None, file: str) -> None:
    head, _, last = name.rpartition(".")
    stands_for = _PARTS.get(last)
    full = name if stands_for is None else f"{head}.{stands_for}"
    known = found.get(full)
    if known is None:
        found[full] = Weight({last: entry}, file)
        return
    known.parts[last] = entry
    if last not in SIDE_PARTS:
        found[full] = Weight(known.parts, file)


def cite_needle(path: str, needle: str, fallback: str) -> Citation:
    """Cite the first line of a text file that holds `needle`; a long line is quoted around it.

    Falls back to the whole file with the words `fallback` when the text is not there.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return cite(path, fallback)
    place = data.find(needle.encode("utf-8", "surrogatepass"))
    if place < 0:
        return cite(path, fallback)
    start = data.rfind(b"\n", 0, place) + 1
    end = data.find(b"\n", place)
    line = data[start : end if end >= 0 else len(data)]
    number = data.count(b"\n", 0, start) + 1
    if len(line) <= EXCERPT_LIMIT:
        return cite(path, line, line=number, offset=start)
    around = line[max(place - start - 100, 0) : place - start + 200]
    return Citation(path, number, start, f"…{sanitise(around, EXCERPT_LIMIT - 2).strip()}…")


def shorten(names: Iterable[str], limit: int = 3) -> str:
    """Return the first names, sanitised, and how many more there are."""
    every = list(names)
    more = f" (+{len(every) - limit})" if len(every) > limit else ""
    return ", ".join(sanitise(name, 120) for name in every[:limit]) + more


def count_by_file(weight_map: Mapping[str, str]) -> dict[str, int]:
    """Return how many tensors the index puts into each file."""
    counts: dict[str, int] = {}
    for file in weight_map.values():
        counts[file] = counts.get(file, 0) + 1
    return counts

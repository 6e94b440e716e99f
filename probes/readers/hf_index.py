"""Reads the structure of a Hugging Face checkpoint folder: its files, its index and the header of every shard.

Facts it rests on: the index maps each tensor to a file, and `total_size` in it is not reliable (slime's tools write
row counts), so it is not read at all. Shards are numbered from 1 by transformers and from 0 by slime's
convert_torch_dist_to_hf.py; names are `model-00001-of-00008.safetensors`, unpadded in Kimi-K2, and of totals wider
than the number in DeepSeek-V3. Invariant: one listing, one small file and the headers are read, never a tensor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from probes.readers.safetensors_header import Header, read_header
from runbook.text import Text, sanitise

INDEX_NAMES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
INDEX_LIMIT = 512 << 20
"""Bytes of an index; Kimi-K2's has 15 MB."""

NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{1,9})-of-(?P<total>\d{1,9})(?P<ending>\.safetensors|\.bin)\Z")
UNFINISHED = re.compile(r"\.(incomplete|part|aria2|tmp|download|crdownload|lock)\Z")
_SINGLE = re.compile(r"(model|pytorch_model|diffusion_pytorch_model)(\.[\w-]+)?(\.safetensors|\.bin)\Z")
_NOT_WEIGHTS = re.compile(r"(training_args|optimizer|scheduler|rng_state.*|random_states.*)\.bin\Z")

MAX_HOLES = 10_000
"""Numbers of a series that are worth listing; a larger total is not a count of shards."""

THREADS = 8
"""Headers read at once: what hides the latency of shared storage."""


@dataclass(frozen=True)
class Index:
    """An index file. weight_map: file by tensor, None when the file has none. fault: why it cannot be used."""

    path: str
    weight_map: dict[str, str] | None
    fault: Text | None = None


@dataclass(frozen=True)
class Series:
    """Numbered shards with one stem and total.

    first: 0 or 1. present: names that are there. absent: names that the numbering wants and the folder lacks. named:
    whether the index names any of them; a series that it does not name is left over from another conversion.
    """

    stem: str
    total: int
    first: int
    present: tuple[str, ...]
    absent: tuple[str, ...]
    named: bool


@dataclass(frozen=True)
class Folder:
    """A checkpoint folder, from one listing and its index.

    files: size by name (regular files; links followed, -1 when a link leads nowhere). weights: names of weight files,
    in order. unfinished: names that a download in progress leaves.
    """

    path: str
    files: dict[str, int]
    weights: tuple[str, ...]
    index: Index | None
    series: tuple[Series, ...]
    unfinished: tuple[str, ...]

    @property
    def ending(self) -> str:
        """Return ".safetensors" or ".bin", what the weights are; empty when there are none and no index."""
        if any(name.endswith(".safetensors") for name in self.weights):
            return ".safetensors"
        if self.weights:
            return ".bin"
        return "" if self.index is None else (".bin" if ".bin." in self.index.path else ".safetensors")

    @property
    def named(self) -> tuple[str, ...]:
        """Return the files that the index names, in order."""
        return tuple(sorted(set(self.index.weight_map.values()))) if self.index and self.index.weight_map else ()

    @property
    def absent(self) -> tuple[str, ...]:
        """Return the files that the index names and that are not there."""
        return tuple(name for name in self.named if self.files.get(name, -1) < 0)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Return the numbers of a series that are neither there nor named by the index."""
        named = set(self.named)
        used = [one for one in self.series if not named or one.named]
        return tuple(name for series in used for name in series.absent if name not in named)


class _IndexFile(msgspec.Struct, gc=False):
    weight_map: Any = None


def read_folder(path: str) -> Folder:
    """List a folder and read its index. Raises OSError when it cannot be listed."""
    files = {}
    with os.scandir(path) as entries:
        for entry in entries:
            try:
                if entry.is_file():
                    files[entry.name] = entry.stat().st_size
                elif entry.is_symlink() and not entry.is_dir():
                    files[entry.name] = -1
            except OSError:
                files[entry.name] = -1
    indexes = [_read_index(os.path.join(path, name)) for name in INDEX_NAMES if files.get(name, -1) >= 0]
    index = next((one for one in indexes if _names_any(one, files)), next(iter(indexes), None))
    named = set(index.weight_map.values()) if index and index.weight_map else set()
    files |= {name: size for name in named if "/" in name and (size := _size_inside(path, name)) >= 0}
    weights = {name for name, size in files.items() if size >= 0 and (is_weights(name) or name in named)}
    ending = ".safetensors" if any(name.endswith(".safetensors") for name in weights) else ".bin"
    weights = {name for name in weights if name.endswith(ending)}
    unfinished = tuple(sorted(name for name in files if UNFINISHED.search(name)))
    return Folder(path, files, tuple(sorted(weights)), index, tuple(_series(weights, named)), unfinished)


def _names_any(index: Index, files: dict[str, int]) -> bool:
    return index.weight_map is not None and any(name in files for name in index.weight_map.values())


def _size_inside(folder: str, name: str) -> int:
    """Return the size of a file in a subfolder, -1 when it is not there or the name leads out of the folder."""
    if name.startswith("/") or ".." in name.split("/"):
        return -1
    try:
        return os.path.getsize(os.path.join(folder, name))
    except (OSError, ValueError):
        return -1


def is_weights(name: str) -> bool:
    """Return whether a file of this name holds weights."""
    if name.endswith(".safetensors"):
        return not name.startswith(".")
    return (
        name.endswith(".bin") and _NOT_WEIGHTS.match(name) is None and bool(NUMBERED.match(name) or _SINGLE.match(name))
    )


def is_main(name: str) -> bool:
    """Return whether transformers would look for a file of this name without an index."""
    return bool(NUMBERED.match(name) or _SINGLE.match(name))


def _read_index(path: str) -> Index:
    try:
        with open(path, "rb") as file:
            data = file.read(INDEX_LIMIT + 1)
    except OSError as error:
        what = error.strerror or str(error)
        return Index(path, None, Text(f"cannot be read ({what})", f"无法读取（{what}）"))
    if not data.strip() or data.startswith(b"version https://git-lfs"):
        lfs = bool(data.strip())
        return Index(
            path, None, Text("is a git-LFS pointer", "是 git-LFS 指针") if lfs else Text("is empty", "是空文件")
        )
    try:
        weight_map = msgspec.json.decode(data, type=_IndexFile).weight_map
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        what = sanitise(str(error), 120)
        return Index(path, None, Text(f"is not a JSON object ({what})", f"不是合法的 JSON 对象（{what}）"))
    if not isinstance(weight_map, dict) or not weight_map:
        return Index(path, None, Text("has no weight_map", "没有 weight_map"))
    if not all(isinstance(name, str) for name in weight_map.values()):
        return Index(path, None, Text("has entries that are not file names", "含有不是文件名的条目"))
    return Index(path, weight_map)


def _series(present: set[str], named: set[str]) -> list[Series]:
    """Return the numbered series of a folder, with the names that each lacks."""
    groups: dict[tuple[str, str, str], dict[int, str]] = {}
    for name in present | named:
        match = NUMBERED.match(name)
        if match:
            stem, number, total, ending = match.groups()
            groups.setdefault((stem, total, ending), {})[int(number)] = name
    series = []
    for (stem, total, ending), known in sorted(groups.items()):
        names = set(known.values())
        if not 0 < int(total) <= MAX_HOLES or not names & present:
            continue
        first = 0 if 0 in known else 1
        widths = {len(name) - len(f"{stem}--of-{total}{ending}") for name in names}
        width = widths.pop() if len(widths) == 1 else 0
        wanted = {
            number: known.get(number, f"{stem}-{number:0{width}d}-of-{total}{ending}")
            for number in range(first, int(total) + first)
        }
        there = tuple(known[number] for number in sorted(known) if known[number] in present)
        absent = tuple(name for name in wanted.values() if name not in present)
        series.append(Series(f"{stem}-*-of-{total}{ending}", int(total), first, there, absent, bool(names & named)))
    return series


def read_headers(
    folder: Folder, names: Iterable[str], report: Callable[[float, float | None, str], None]
) -> dict[str, Header]:
    """Read the headers of these safetensors files of a folder, several at once."""
    wanted = list(names)
    headers = {}
    with ThreadPoolExecutor(min(THREADS, len(wanted) or 1)) as pool:
        paths = [os.path.join(folder.path, name) for name in wanted]
        for number, (name, header) in enumerate(zip(wanted, pool.map(read_header, paths), strict=True), start=1):
            headers[name] = header
            report(number, len(wanted), "shard")
    return headers

"""Megatron checkpoint folders: tracker, iteration folder, and what its `.metadata` says must be there.

Layout (Megatron megatron/training/checkpointing.py; measured with megatron-core 0.14): a tracker file names "release"
or a number, the iteration folder holds `.metadata`, `common.pt`, `metadata.json` and `__{rank}_{i}.distcp` files; the
older layout holds `mp_rank_XX[_YYY]/model_optim_rng.pt`. `.metadata` is a pickle that torch would execute; here it is
read with stand-ins. Invariants: no weight is read, a folder of 1 TB costs one listing and one small file.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from math import prod
from typing import Any

from probes.readers.dump_errors import DumpError, Fault
from probes.readers.safe_pickle import Record, limited_memory, load, memory_budget, opaque_class
from probes.readers.torch_tensors import TORCH_GLOBALS, DType
from probes.readers.torch_zip import ZIP_MAGIC, describe_fault, regular_file_size

TRACKER = "latest_checkpointed_iteration.txt"
ITERATION = re.compile(r"iter_\d{7}\Z")
REQUIRED_FILES = (".metadata", "common.pt", "metadata.json")
MAX_RANKS = 100_000
"""Ranks of a grid that are worth counting; a larger name is not a rank."""
LEGACY_RANK = re.compile(r"mp_rank_(\d{2,})(?:_(\d{3}))?(?:_(\d{3}))?\Z")

_CHECKPOINT = "torch.distributed.checkpoint"
_DCP_GLOBALS: dict[tuple[str, str], Any] = TORCH_GLOBALS | {
    (f"{_CHECKPOINT}.{module}", name): opaque_class(f"{_CHECKPOINT}.{module}.{name}", may_call=True)
    for module, names in {
        "metadata": "Metadata TensorStorageMetadata BytesStorageMetadata ChunkStorageMetadata TensorProperties "
        "MetadataIndex StorageMeta _MEM_FORMAT_ENCODING",
        "filesystem": "_StorageInfo",
        "planner": "SavePlan WriteItem WriteItemType TensorWriteData BytesIOWriteData",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True)
class Stored:
    """A tensor of a checkpoint: global shape and dtype ("bf16", "<f4", …; "" when not recorded)."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class DistMetadata:
    """What `.metadata` says.

    tensors: by key, weights and optimizer alike. needed: bytes that each data file must at least have, by file name.
    """

    tensors: dict[str, Stored]
    needed: dict[str, int]


@dataclass(frozen=True)
class Folder:
    """A folder given as --load or --ref-load, from one listing.

    kind: "checkpoint" (it has a tracker or iteration folders), "iteration" (it *is* an iteration folder), "hf"
    (config.json or safetensors), "empty" or "other". tracker: the tracker's first line, None when there is no tracker.
    iterations: names of iteration folders, in order.
    """

    path: str
    kind: str
    tracker: str | None
    iterations: tuple[str, ...]

    @property
    def wanted(self) -> str | None:
        """Return the name of the iteration folder that the tracker names, None when it names none."""
        if self.tracker == "release":
            return "release"
        if self.tracker is not None and re.fullmatch(r"[0-9]{1,18}", self.tracker):
            return f"iter_{int(self.tracker):07d}"
        return None


def names_in(path: str) -> dict[str, bool]:
    """Return the names in a folder and whether each is a folder. Raises OSError."""
    with os.scandir(path) as entries:
        return {entry.name: _leads_to_folder(entry) for entry in entries}


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def read_folder(path: str) -> Folder:
    """List a folder and read its tracker. Raises OSError when the folder cannot be listed."""
    names = names_in(path)
    tracker = None
    if TRACKER in names:
        with open(os.path.join(path, TRACKER), "rb") as file:
            tracker = (file.read(4096).decode("utf-8", "replace").strip().splitlines() or [""])[0]
    iterations = tuple(sorted(name for name, is_dir in names.items() if is_dir and is_iteration_name(name)))
    files = [name for name in names if name in iterations or not is_iteration_name(name)]
    return Folder(path, folder_kind(files) if files else "other" if names else "empty", tracker, iterations)


def folder_kind(names: Collection[str]) -> str:
    """Return the kind of a folder (see Folder) by the names in it; any name of an iteration counts as one."""
    if TRACKER in names:
        return "checkpoint"
    if ".metadata" in names or any(name.endswith(".distcp") or LEGACY_RANK.match(name) for name in names):
        return "iteration"
    if "config.json" in names or any(name.endswith(".safetensors") for name in names):
        return "hf"
    if any(map(is_iteration_name, names)):
        return "checkpoint"
    return "other" if names else "empty"


def is_iteration_name(name: str) -> bool:
    """Return whether a folder of this name is an iteration folder."""
    return name == "release" or ITERATION.match(name) is not None


def read_metadata(path: str) -> DistMetadata:
    """Read a `.metadata` file without executing it. Raises DumpError (truncated, empty, unsafe, foreign)."""
    size = regular_file_size(path)
    try:
        with limited_memory(memory_budget(size)), open(path, "rb") as file:
            root = load(file, allowed=_DCP_GLOBALS, callable_packages=frozenset({"megatron"}))
            return _describe(root, path)
    except Exception as error:
        raise describe_fault(error, path, size) from error


def _describe(root: Any, path: str) -> DistMetadata:
    state = root.get("state_dict_metadata") if isinstance(root, Record) else None
    storage = root.get("storage_data") if isinstance(root, Record) else None
    if not isinstance(state, dict) or not isinstance(storage, dict):
        raise DumpError(Fault.FOREIGN, path, "not the metadata of a torch distributed checkpoint")
    tensors = {}
    for key, entry in state.items():
        size = entry.get("size") if isinstance(entry, Record) else None
        if isinstance(size, tuple):
            tensors[str(key)] = Stored(tuple(map(int, size)), _dtype(entry.get("properties")))
    needed: dict[str, int] = {}
    for info in storage.values():
        if isinstance(info, Record):
            name, end = str(info.get("relative_path")), int(info.get("offset")) + int(info.get("length"))
            needed[name] = max(needed.get(name, 0), end)
    return DistMetadata(tensors, needed)


def _dtype(properties: object) -> str:
    """Return the dtype of TensorProperties, whose state is a tuple that begins with it."""
    state = properties.state if isinstance(properties, Record) else None
    first = state[0] if isinstance(state, tuple) and state else None
    return first.code if isinstance(first, DType) else ""


def is_cut_zip(path: str) -> bool:
    """Return whether a file begins as a zip and does not end as one, or is empty. Raises OSError."""
    with open(path, "rb") as file:
        head = file.read(4)
    return not head or (head == ZIP_MAGIC and not zipfile.is_zipfile(path))


def missing_legacy_ranks(names: dict[str, bool]) -> tuple[str, ...]:
    """Return the `mp_rank_…` folders that a full grid of tensor, pipeline and expert ranks has and `names` lacks."""
    found = [tuple(part for part in match.groups() if part) for match in map(LEGACY_RANK.match, names) if match]
    axes = [sorted({parts[axis] for parts in found}) for axis in range(max(map(len, found), default=0))]
    if any(len(parts) != len(axes) for parts in found):
        return ()
    if prod(int(axis[-1]) + 1 for axis in axes) > MAX_RANKS:
        return ()
    grids: list[tuple[str, ...]] = [()]
    for axis in axes:
        width = len(axis[0])
        grids = [(*head, f"{rank:0{width}d}") for head in grids for rank in range(int(axis[-1]) + 1)]
    return tuple(f"mp_rank_{'_'.join(parts)}" for parts in grids if parts not in set(found))

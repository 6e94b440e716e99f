"""slime's debug dumps, of every version, as plain samples.

`--save-debug-rollout-data` and `--save-debug-train-data` write one torch file a rollout (or a rollout and rank); the
layouts changed between versions (slime/observability/rollout_data_utils.py:120-145, train_data_utils.py:165-240). Here
they all become a list of dicts, one a sample. Invariants: a rollout dump is told from a train dump by content, never by
name; nothing is executed; listing reads only the head of each file.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from probes.readers.bounded_read import read_torch_file
from probes.readers.dump_errors import DumpError, Fault
from probes.readers.dump_instead import instead
from probes.readers.torch_zip import ZIP_MAGIC

HEAD_BYTES = 64 * 1024
SUFFIXES = (".pt", ".pth", ".pkl", ".pickle")
MAX_DEPTH = 3
"""Folder levels below a given folder that may hold dumps (`dump/rollout_data/{rollout_id}/data.pt`)."""


@dataclass(frozen=True)
class DumpFile:
    """A file that may be a dump, judged by its head.

    kind: "rollout", "train" or "other". rollout_id: from the content, else from the name, else None. evaluation: an
    eval dump (`eval_N` in place of the id). rank: of a train dump that each rank wrote, from the name.
    """

    path: str
    kind: str
    rollout_id: int | None
    evaluation: bool = False
    rank: int | None = None


@dataclass(frozen=True)
class Dump:
    """A dump that was read.

    kind: "rollout" or "train". version: "" for rollout dumps, "rank" for train dumps that each rank wrote (up to
    v0.3.1), "v2" for the joint one. samples: one dict a sample, fields as slime names them; train samples carry
    `sample_index`. rank: of the writer. opaque: foreign classes that were read as data only. batch: what the dump says
    of the whole batch, such as `dp_shards`.
    """

    path: str
    kind: str
    version: str
    rollout_id: int | None
    evaluation: bool
    rank: int | None
    samples: list[dict[str, Any]] = field(repr=False)
    opaque: tuple[str, ...] = ()
    batch: dict[str, Any] = field(default_factory=dict, repr=False)


def _key(name: str) -> bytes:
    """Return a pattern for a pickled string, in protocol 2 or 4."""
    raw = name.encode()
    return re.escape(b"X" + struct.pack("<I", len(raw)) + raw) + b"|" + re.escape(b"\x8c" + bytes([len(raw)]) + raw)


_KINDS = re.compile(
    b"(?P<rollout>" + _key("samples") + b")|(?P<train>"
    + b"|".join(_key(name) for name in ("format_version", "rollout_data", "dp_shards")) + b")"
)  # fmt: skip
_ID = re.compile(
    b"(?:" + _key("rollout_id") + rb")(?:q.|r.{4}|\x94)?(?:K(?P<one>.)|M(?P<two>..)|J(?P<four>.{4}))", re.DOTALL
)


def sniff(head: bytes) -> str:
    """Return "rollout", "train" or "other" for the first bytes of a file, whole or cut off."""
    if not head.startswith((ZIP_MAGIC, b"\x80")):
        return "other"
    found = _KINDS.search(head)
    return "other" if found is None else "rollout" if found["rollout"] else "train"


def _id_in(head: bytes) -> int | None:
    found = _ID.search(head)
    if found is None:
        return None
    return int.from_bytes(found["one"] or found["two"] or found["four"], "little", signed=found["four"] is not None)


def inspect_file(path: str) -> DumpFile:
    """Return what the head and the name of a file say; an unreadable file is "other"."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):
        head = b""
    kind = sniff(head)
    place = "/".join(path.split("/")[-2:])
    numbers = [int(number) for number in re.findall(r"\d{1,9}", os.path.splitext(os.path.basename(path))[0])]
    rank = numbers[-1] if kind == "train" and len(numbers) > 1 else None
    named = numbers[-2] if rank is not None else numbers[-1] if numbers else None
    inside = _id_in(head)
    evaluation = kind != "train" and re.search(r"(?<![a-z])eval_?\d+", place) is not None
    return DumpFile(path, kind, inside if inside is not None else named, evaluation, rank)


def list_dumps(paths: Iterable[str]) -> tuple[DumpFile, ...]:
    """Return the dumps in files and folders, training rollouts first, each kind by rollout id and rank.

    A file that was given is always listed, whatever it holds; of a folder only files with a torch suffix. The same
    file is listed once, whatever links lead to it.
    """
    seen: set[str] = set()
    files: list[DumpFile] = []
    for path in paths:
        for one in [path] if not os.path.isdir(path) else _walk(path, set(), 0):
            real = os.path.realpath(one)
            if real not in seen:
                seen.add(real)
                files.append(inspect_file(one))
    last = 1 << 62
    return tuple(
        sorted(files, key=lambda f: (f.evaluation, last if f.rollout_id is None else f.rollout_id, f.rank or 0, f.path))
    )


def _walk(folder: str, visited: set[tuple[int, int]], depth: int) -> Iterator[str]:
    """Yield the files with a torch suffix below a folder; loops of links end at the first repetition."""
    try:
        info = os.stat(folder)
        if (info.st_dev, info.st_ino) in visited:
            return
        visited.add((info.st_dev, info.st_ino))
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        try:
            is_dir = entry.is_dir()
        except OSError:
            continue
        if is_dir and depth < MAX_DEPTH:
            yield from _walk(entry.path, visited, depth + 1)
        elif not is_dir and entry.name.endswith(SUFFIXES):
            yield entry.path


def read_dump(file: DumpFile) -> Dump:
    """Read a dump. Raises DumpError: a fault of the file, or FOREIGN when it is not a dump of a known layout."""
    loaded = read_torch_file(file.path)
    root, path = loaded.root, file.path
    if not isinstance(root, dict) or not (
        "rollout_data" in root or "samples" in root  # the two layouts of slime
    ):
        kind, words = instead(root, loaded.opaque, path)
        raise DumpError(Fault.FOREIGN, path, words, kind=kind)
    rollout_id, rank = _number(root.get("rollout_id")), _number(root.get("rank"))
    batch = {str(key): value for key, value in root.items() if key not in ("samples", "rollout_data")}
    if "rollout_data" in root:
        kind, version, samples = "train", "rank", _columns(root["rollout_data"], path)
    else:
        kind = "train" if "format_version" in root or "dp_shards" in root else "rollout"
        version, samples = "v2" if kind == "train" else "", root["samples"]
        if kind == "train" and _number(root.get("format_version", 2)) != 2:
            what = f"a train dump of format_version {root['format_version']!r:.20}, which is not known"
            raise DumpError(Fault.FOREIGN, path, what, kind="newer")
    if not _are_samples(samples):
        raise DumpError(Fault.FOREIGN, path, "its samples are not dicts", kind="unknown")
    if rollout_id is None:
        rollout_id = file.rollout_id
    return Dump(path, kind, version, rollout_id, file.evaluation, rank, samples, loaded.opaque, batch)


def _are_samples(samples: object) -> bool:
    return isinstance(samples, list) and all(isinstance(sample, dict) for sample in samples)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _columns(data: object, path: str) -> list[dict[str, Any]]:
    """Turn {field: one value a sample} into samples; fields of another length belong to the batch and are left out."""
    if not isinstance(data, dict):
        raise DumpError(Fault.FOREIGN, path, "its rollout_data is not a dict")
    columns = {str(key): value for key, value in data.items() if isinstance(value, list)}
    indices = columns.get("sample_indices", [])
    count = len(columns.get("tokens", indices))
    columns = {key: value for key, value in columns.items() if len(value) == count}
    return [
        {key: value[row] for key, value in columns.items()}
        | ({"sample_index": indices[row]} if row < len(indices) else {})
        for row in range(count)
    ]

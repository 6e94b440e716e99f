"""Reads what SGLang's load_weights was given: the recorder's folders, or folders of safetensors that someone saved.

Three forms are known, told apart by content:

    recorder    received.jsonl in a folder for each update (see probes/recorder), with or without the tensors
    saved       a folder with one safetensors file for each sender, such as a pipeline stage; the files of one folder
                are one update. NAME.sent.json beside it tells order and buckets: {"group_name", "buckets":
                [[[name, dtype, shape], ...], ...]}
    names only  .sent.json without tensors

Invariants: nothing but headers, names and fingerprints is read; each tensor that was sent stands for itself, also
when its name came twice; a line that cannot be read is a trouble of the update, not an exception.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import msgspec

from probes.readers.safetensors_header import BITS, Entry, read_header
from runbook.text import sanitise

DEPTH = 4
"""Folders below a given one that are searched."""
LINES = 4_000_000
"""Lines of one recording that are read; a model of a trillion parameters has some 200,000 tensors."""
JSON_LIMIT = 256 << 20


class Line(msgspec.Struct, gc=False):
    """One line of received.jsonl; which fields are filled depends on `ev`."""

    ev: str
    call: int = -1
    name: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    hash: str = ""
    rows: str = ""
    blocks: str = ""
    sample: tuple[float | None, ...] = ()
    min: float | None = 0.0
    max: float | None = 0.0
    mean: float | None = 0.0
    zeros: int = 0
    nonfinite: int = 0
    file: str = ""
    model: str = ""
    kind: str = ""
    weight_version: str = ""
    group: str = ""
    error: str | None = None


class Parameter(msgspec.Struct, gc=False):
    """One of the engine's own parameters after a call."""

    name: str
    call: int
    shape: tuple[int, ...]
    dtype: str
    hash: str
    rows: str = ""
    zeros: int = 0
    nonfinite: int = 0


@dataclass(frozen=True)
class Place:
    """Where it stands that a tensor was sent: a line of text (1-based, with its offset), or a tensor in a file."""

    path: str
    line: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Sent:
    """A tensor given to load_weights.

    dtype: as the source names it, torch's name or that of safetensors. source: who sent it (a stage, a group), "" when
    that is not known. start: where its bytes begin in `file`, -1 when they were not kept. line: its fingerprint.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: str
    place: Place
    file: str = ""
    start: int = -1
    line: Line | None = None


@dataclass
class Update:
    """One load or one update of one model.

    kind: "load", "tensor", "distributed", "disk", "ipc" or "saved". whole: whether it is known to have ended. twice:
    names that a .sent.json lists more often than the tensors that were kept. errors: load_weights' own exceptions.
    before, after: the engine's parameters before and after it, by name; empty when not recorded.
    """

    path: str
    label: str
    kind: str
    model: str = ""
    version: str = ""
    whole: bool = True
    sent: list[Sent] = field(default_factory=list)
    twice: dict[str, int] = field(default_factory=dict)
    errors: list[tuple[str, Place]] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    before: dict[str, Parameter] = field(default_factory=dict)
    after: dict[str, Parameter] = field(default_factory=dict)


_decode_line = msgspec.json.Decoder(Line).decode
_decode_parameter = msgspec.json.Decoder(Parameter).decode


def read_updates(paths: Iterable[str]) -> tuple[list[Update], list[str]]:
    """Return the updates found below `paths` in order, and in words what could not be used. Never raises OSError."""
    updates: list[Update] = []
    troubles: list[str] = []
    for path in paths:
        if os.path.isfile(path):
            folder, name = os.path.split(path)
            if name == "received.jsonl":
                updates.append(_recorded(folder, troubles))
            elif name.endswith((".safetensors", ".sent.json")):
                updates.append(_saved(folder, [name]))
            else:
                troubles.append(f"{path} is no recording of weights")
            continue
        found = [update for folder, names in _folders(path) if (update := _of_folder(folder, names, troubles))]
        if not found:
            troubles.append(f"{path} holds no recording of weights")
        updates += found
    _chain(updates)
    return [update for update in updates if update.sent or update.errors], troubles


def _folders(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (folder, file names) below `path`, not deeper than DEPTH, in order."""
    top = path.rstrip("/").count("/")
    for folder, folders, names in os.walk(path):
        folders.sort()
        if folder.count("/") - top >= DEPTH:
            folders.clear()
        yield folder, sorted(names)


def _of_folder(folder: str, names: list[str], troubles: list[str]) -> Update | None:
    if "received.jsonl" in names:
        return _recorded(folder, troubles)
    saved = [name for name in names if name.endswith((".safetensors", ".sent.json"))]
    return _saved(folder, saved) if saved else None


def _chain(updates: list[Update]) -> None:
    """Give each recorded update the engine's parameters as the ones before it left them; all but the last are whole."""
    last: dict[str, dict[str, Parameter]] = {}
    earlier: dict[str, Update] = {}
    for update in updates:
        if update.kind == "saved":
            continue
        stream = os.path.dirname(update.path)
        if stream in earlier:
            earlier[stream].whole = True
        earlier[stream] = update
        known = last.setdefault(stream, {})
        update.before = dict(known)
        known.update(update.after)
        update.after = dict(known)


def _recorded(folder: str, troubles: list[str]) -> Update:
    """Read one update of the recorder."""
    update = Update(folder, _label(folder), "load", whole=False)
    sources: dict[int, str] = {}
    ended: set[int] = set()
    for number, offset, raw in _lines(os.path.join(folder, "received.jsonl"), troubles):
        place = Place(os.path.join(folder, "received.jsonl"), number, offset)
        try:
            line = _decode_line(raw)
        except (msgspec.DecodeError, ValueError):
            update.troubles.append(f"{place.path}:{number} cannot be read")
            continue
        if line.ev == "begin":
            update.kind, update.model, update.version = line.kind or "load", line.model, line.weight_version
            sources[line.call] = line.group
            update.whole = False
        elif line.ev == "tensor":
            update.sent.append(_recorded_tensor(folder, line, sources.get(line.call, ""), place))
        elif line.ev == "end":
            ended.add(line.call)
            if line.error:
                update.errors.append((sanitise(line.error, 300), place))
            update.whole = line.call in sources and update.kind in ("load", "disk")
        elif line.ev == "idle":
            update.whole = set(sources) <= ended
    for _, _, raw in _lines(os.path.join(folder, "engine.jsonl"), []):
        try:
            parameter = _decode_parameter(raw)
        except (msgspec.DecodeError, ValueError):
            continue
        update.after[parameter.name] = parameter
    headers: dict[str, dict[str, int]] = {}
    update.sent = [_with_bytes(sent, headers) for sent in update.sent]
    return update


def _label(folder: str) -> str:
    """Return what to call an update: its folder, from the engine's on."""
    parts = folder.rstrip("/").split("/")
    start = next((number for number, part in enumerate(parts[-4:]) if part.startswith("engine-")), 3)
    return "/".join(parts[-4:][start:])


def _recorded_tensor(folder: str, line: Line, source: str, place: Place) -> Sent:
    file = os.path.join(folder, os.path.basename(line.file)) if line.file else ""
    return Sent(line.name, line.shape, line.dtype, source, place, file, -1, line)


def _with_bytes(sent: Sent, headers: dict[str, dict[str, int]]) -> Sent:
    """Return a recorded tensor with the place of its bytes, if its file holds it."""
    if not sent.file:
        return sent
    if sent.file not in headers:
        header = read_header(sent.file)
        headers[sent.file] = {
            name: header.data + entry.data_offsets[0]
            for name, entry in header.tensors.items()
            if entry.data_offsets[0] >= 0 and header.data + entry.data_offsets[1] <= header.size and not _misfit(entry)
        }
    start = headers[sent.file].get(sent.name, -1)
    return Sent(sent.name, sent.shape, sent.dtype, sent.source, sent.place, sent.file, start, sent.line)


def _lines(path: str, troubles: list[str]) -> Iterator[tuple[int, int, bytes]]:
    """Yield (1-based number, offset, line without its end) of a file; its last line may be torn off."""
    offset = 0
    try:
        with open(path, "rb") as file:
            for number, raw in enumerate(file, start=1):
                if number > LINES or not raw.endswith(b"\n"):
                    return
                if raw.strip():
                    yield number, offset, raw[:-1]
                offset += len(raw)
    except OSError as error:
        troubles.append(f"{path} cannot be read ({error.strerror})")


def _saved(folder: str, names: list[str]) -> Update:
    """Read the safetensors files and .sent.json of one folder as one update."""
    update = Update(folder, os.path.basename(folder.rstrip("/")), "saved")
    for name in (each for each in names if each.endswith(".safetensors")):
        path = os.path.join(folder, name)
        header = read_header(path)
        for fault in header.faults:
            update.troubles.append(f"{path} {fault.words.en}")
        source = _source(name)
        for tensor, entry in header.tensors.items():
            start, end = entry.data_offsets
            held = 0 <= start <= end <= header.size - header.data and not _misfit(entry)
            place = Place(path, None, header.data + start if held else None)
            update.sent.append(
                Sent(tensor, entry.shape, entry.dtype, source, place, path, header.data + start if held else -1)
            )
    kept = {(sent.source, sent.name) for sent in update.sent}
    for name in (each for each in names if each.endswith(".sent.json")):
        _listed(update, os.path.join(folder, name), _source(name), kept)
    return update


def _misfit(entry: Entry) -> bool:
    """Whether a tensor has not as many bytes as its dtype and shape need."""
    start, end = entry.data_offsets
    return prod(entry.shape) * BITS.get(entry.dtype, -8) != (end - start) * 8


def _source(name: str) -> str:
    """Return who sent the tensors of a file, by its name without endings."""
    return re.sub(r"\.(?:safetensors|sent\.json)$", "", name)


def _listed(update: Update, path: str, source: str, kept: set[tuple[str, str]]) -> None:
    """Add what a .sent.json tells beyond the tensors: names without a tensor, and names that came more than once."""
    counts: dict[str, int] = {}
    for name, dtype, shape in _entries(path, update.troubles):
        counts[name] = counts.get(name, 0) + 1
        if (source, name) not in kept:
            kept.add((source, name))
            update.sent.append(Sent(name, shape, dtype, source, Place(path)))
    for name, count in counts.items():
        if count > 1:
            update.twice[name] = max(update.twice.get(name, 0), count)


def quote(place: Place) -> bytes:
    """Return the line of text that a place points at; empty for a tensor in a file. Raises OSError."""
    if place.line is None or place.offset is None:
        return b""
    with open(place.path, "rb") as file:
        file.seek(place.offset)
        return file.readline(1 << 20).removesuffix(b"\n")


def _entries(path: str, troubles: list[str]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    try:
        with open(path, "rb") as file:
            value: Any = json.loads(file.read(JSON_LIMIT))
        buckets = value["buckets"] if isinstance(value, dict) else value
        for bucket in buckets:
            for name, dtype, shape in bucket:
                yield str(name), str(dtype).removeprefix("torch."), tuple(int(size) for size in shape)
    except OSError as error:
        troubles.append(f"{path} cannot be read ({error.strerror})")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        troubles.append(f"{path} is no list of what was sent ({sanitise(str(error), 80)})")

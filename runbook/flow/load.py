"""Reads flow files, keeping the line and column of every key.

A flow is data that strangers may write: nothing in it is executed, every scalar is read as text. Duplicate keys,
unknown keys and characters that a terminal would act upon are errors with their place. The number of nodes is bounded,
so that an alias bomb ends at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from yaml import CSafeLoader  # libyaml: the pure Python loader is slower and refuses `{en: Coherent?, zh: …}`

from runbook.errors import FlowError
from runbook.flow.model import Cause, Flow, Node, Vocabulary
from runbook.text import sanitise

T = TypeVar("T")

NODE_LIMIT = 200_000
"""YAML nodes of one file; the largest real flow has a few thousand."""

VOCABULARY_FILE = "causes.yaml"


class Place(NamedTuple):
    """A place in a file; line and column are 1-based."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Source(NamedTuple):
    """A loaded file with the places of its keys, by key path such as ("nodes", "x", "branches", "yes")."""

    path: str
    places: Mapping[tuple[str, ...], Place]

    def place(self, *keys: str) -> Place:
        """Return the place of a key path, or of its nearest parent that has one."""
        while keys and keys not in self.places:
            keys = keys[:-1]
        return self.places.get(keys, Place(self.path, 1, 1))


class LoadedFlow(NamedTuple):
    """A flow with its source. hash: SHA-256 of its content, independent of comments and layout."""

    flow: Flow
    source: Source
    hash: str


class LoadedVocabulary(NamedTuple):
    """The causes of one file by id, with its source and the sections of the guide that need a node."""

    causes: dict[str, Cause]
    source: Source
    guide: tuple[str, ...] = ()


def load_flow(path: str | Path) -> LoadedFlow:
    """Return the flow in `path`. Raises FlowError naming line and column."""
    data, source = _read(str(path))
    if not isinstance(data, dict):
        raise FlowError(f"{path}:1:1: a flow is a mapping", "see docs/writing-a-flow.md")
    raw_nodes = data.get("nodes", {})
    if not isinstance(raw_nodes, dict):
        raise FlowError(f"{source.place('nodes')}: nodes is a mapping of node id to node", "see docs/writing-a-flow.md")
    nodes = {name: _convert(raw, Node, source, ("nodes", name)) for name, raw in raw_nodes.items()}
    head = _convert({**data, "nodes": {}}, Flow, source, ())
    flow = msgspec.structs.replace(head, nodes=nodes)
    return LoadedFlow(flow, source, flow_hash(flow))


def completed(loaded: LoadedFlow, vocabulary: Mapping[str, Cause]) -> LoadedFlow:
    """Return the flow with leaves that say what their causes say; the hash is of what is then shown."""
    flow = loaded.flow.completed(vocabulary)
    return LoadedFlow(flow, loaded.source, flow_hash(flow))


def load_vocabulary(path: str | Path) -> LoadedVocabulary:
    """Return the causes in `path` with their places. Raises FlowError naming line and column."""
    data, source = _read(str(path))
    if not isinstance(data, dict) or not isinstance(data.get("causes"), dict):
        raise FlowError(f"{path}:1:1: a vocabulary is a mapping with the key causes", "see docs/writing-a-flow.md")
    head = _convert({**data, "causes": {}}, Vocabulary, source, ())
    causes = {name: _convert(raw, Cause, source, ("causes", name)) for name, raw in data["causes"].items()}
    return LoadedVocabulary(causes, source, head.guide)


def flow_hash(flow: Flow) -> str:
    """Return the SHA-256 of a flow's content as hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(flow, order="deterministic")).hexdigest()


def flow_files(folder: str | Path) -> list[Path]:
    """Return the flow files of a folder in name order. Raises FlowError when the folder cannot be read."""
    try:
        return sorted(
            path for path in Path(folder).iterdir() if path.suffix == ".yaml" and path.name != VOCABULARY_FILE
        )
    except OSError as error:
        raise FlowError(f"{folder}: {error.strerror}", "give a folder with flow files") from error


def _read(path: str) -> tuple[Any, Source]:
    try:
        with open(path, "rb") as file:
            node = yaml.compose(file, CSafeLoader)
    except OSError as error:
        raise FlowError(f"{path}: {error.strerror}", "check the path and its permissions") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path, 1, 1)
        raise FlowError(f"{place}: not YAML: {error.problem}", "correct the syntax at this place") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FlowError(f"{path}:1:1: not YAML: {error}", "save the file as UTF-8 text") from error
    places: dict[tuple[str, ...], Place] = {}
    if node is None:
        raise FlowError(f"{path}:1:1: the file is empty", "see docs/writing-a-flow.md")
    try:
        return _plain(node, path, (), places, iter(range(NODE_LIMIT))), Source(path, places)
    except RecursionError as error:
        raise FlowError(f"{path}:1:1: the file nests without end", "let no alias hold itself") from error


def _plain(
    node: yaml.Node, path: str, keys: tuple[str, ...], places: dict[tuple[str, ...], Place], budget: Iterator[int]
) -> Any:
    """Return a YAML node as dict, list and str; every scalar stays text, so that an answer `no` is the word no."""
    place = Place(path, node.start_mark.line + 1, node.start_mark.column + 1)
    places.setdefault(keys, place)
    if next(budget, None) is None:
        raise FlowError(f"{place}: the file unfolds to more than {NODE_LIMIT} values", "do not nest aliases")
    if isinstance(node, yaml.ScalarNode):
        _refuse_controls(node.value, place)
        return None if node.tag == "tag:yaml.org,2002:null" and not node.style else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, path, (*keys, str(i)), places, budget) for i, item in enumerate(node.value)]
    result: dict[str, Any] = {}
    for key_node, value in node.value:
        at = Place(path, key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
            raise FlowError(f"{at}: a key is a plain word here", "write the mapping out")
        _refuse_controls(key_node.value, at)
        if key_node.value in result:
            raise FlowError(f"{at}: the key {key_node.value!r} stands twice", "keep one of them")
        inner = (*keys, key_node.value)
        places[inner] = at
        result[key_node.value] = _plain(value, path, inner, places, budget)
    return result


def _refuse_controls(text: str, place: Place) -> None:
    """Raise FlowError when `text` holds what a terminal would act upon; a flow's words are drawn as they are."""
    line = text.replace("\n", " ").replace("\t", " ")
    if sanitise(line) != line:
        raise FlowError(f"{place}: a control, escape or bidi character", "write plain text")


_FIELD = re.compile(r"`([^`]*)`")


def _convert(data: Any, kind: type[T], source: Source, keys: tuple[str, ...]) -> T:
    """Return `data` as `kind`; a mismatch becomes a FlowError at the key that msgspec names."""
    try:
        return msgspec.convert(data, kind, strict=False)
    except msgspec.ValidationError as error:
        words, _, where = str(error).partition(" - at ")
        inner: list[str] = []
        for part in filter(None, re.split(r"(\[\.\.\.\])|[.\[\]]", where.strip("`").removeprefix("$"))):
            inner.append(_culprit(data, kind, tuple(inner), str(error)) if part == "[...]" else part)
        unknown = _FIELD.search(words) if "unknown field" in words else None
        place = source.place(*keys, *inner, *([unknown.group(1)] if unknown else []))
        within = f"{'.'.join(keys)}: " if keys else ""
        raise FlowError(f"{place}: {within}{words}", "see docs/writing-a-flow.md") from error


def _culprit(data: Any, kind: type, keys: tuple[str, ...], message: str) -> str:
    """Return the key in the mapping at `keys` whose value is at fault; msgspec calls every key of a mapping `...`."""
    mapping = data
    for key in keys:
        mapping = mapping[int(key) if isinstance(mapping, list) else key]
    for key, value in mapping.items():
        try:
            msgspec.convert(_with(data, keys, {key: value}), kind, strict=False)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return str(key)
    return ""


def _with(data: Any, keys: tuple[str, ...], value: Any) -> Any:
    """Return a copy of `data` in which `value` stands at `keys`."""
    if not keys:
        return value
    first, rest = keys[0], keys[1:]
    if isinstance(data, list):
        return [_with(item, rest, value) if str(i) == first else item for i, item in enumerate(data)]
    return {**data, first: _with(data[first], rest, value)}

"""Edits of a bash launch script, made where a person would make them: in its arrays, lines and runtime env.

Every function yields candidate texts, the most natural first; `script_change` reads each again and takes the first that
amounts to what was asked for. So a candidate may be wrong, and nothing here guesses which is right. Offsets are bytes,
as tree-sitter counts them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes import script_edit_strings as strings
from probes.readers.bash_tree import parse
from probes.readers.launch_model import Job, Launch, Occurrence
from probes.script_edit_env import runtime_env

if TYPE_CHECKING:
    from tree_sitter import Node

Words = tuple[str, ...]
_CONTAINERS = ("array", "command")
_LAST = ("misc", "debug")
"""Words in the names of arrays that take what belongs nowhere else."""


@dataclass(frozen=True)
class Unit:
    """A flag as it is written: the elements of an array or command from the flag to its last value.

    start, end: bytes. container: the array or command it stands in.
    """

    start: int
    end: int
    container: Node


def removed(data: bytes, path: str, launch: Launch, flag: str) -> Iterator[bytes]:
    """Yield the script without its occurrences of a flag in this file."""
    units = [unit for one in strings.occurrences(launch, path, flag) for unit in _units(data, one)[:1]]
    if units:
        out = data
        for unit in sorted(set(units), key=lambda unit: -unit.start):
            out = _cut(out, unit)
        yield out
    yield from strings.removed(data, path, launch, flag)


def put(data: bytes, path: str, launch: Launch, flag: str, words: Words) -> Iterator[bytes]:
    """Yield the script with the flag set to these words: in its place where it has one, else among its kin."""
    written = strings.written(flag, words)
    for one in reversed(strings.occurrences(launch, path, flag)):
        for unit in _units(data, one):
            yield data[: unit.start] + written + data[unit.end :]
    yield from strings.replaced(data, path, launch, flag, written)
    for unit in _kin(data, path, launch, flag):
        yield _inserted(data, unit, written)
    yield from strings.added(data, path, launch, flag, written)
    for job in launch.jobs:
        if job.place.path == path:
            yield from _after_command(data, job, written)


def variable(data: bytes, path: str, launch: Launch, name: str, value: str) -> Iterator[bytes]:
    """Yield the script in which the job's processes get a variable: by the runtime env, else by the environment."""
    yield from runtime_env(data, name, value)
    quoted = shlex.quote(value).encode()
    exported = re.compile(rb"(?m)^([ \t]*(?:export[ \t]+)?" + name.encode() + rb"=)(?:\"[^\"\n]*\"|'[^'\n]*'|\S*)")
    if exported.search(data):
        yield exported.sub(lambda found: found[1] + quoted, data)
    for job in launch.jobs:
        if job.place.path != path:
            continue
        start = job.place.offset
        submit = re.compile(rb"ray[ \t]+job[ \t]+submit\b").search(data, start)
        if submit and not job.has_runtime_env and submit.start() < strings.line_end(data, start):
            pair = f'{{"env_vars": {{"{name}": "{value}"}}}}'
            option = b" --runtime-env-json=" + shlex.quote(pair).encode()
            yield data[: submit.end()] + option + data[submit.end() :]
        indent = re.match(rb"[ \t]*", data[start:])
        yield data[:start] + (indent[0] if indent else b"") + f"export {name}=".encode() + quoted + b"\n" + data[start:]


def _units(data: bytes, one: Occurrence) -> list[Unit]:
    """Return where a flag may be written on its line: every element of an array or command that begins with it."""
    line = data[one.place.offset : strings.line_end(data, one.place.offset)]
    root = parse(data)
    units = []
    for found in re.finditer(rb"--" + re.escape(one.flag).encode() + rb"(?![\w.-])", line):
        unit = _unit_at(root, one.place.offset + found.start(), len(one.values))
        if unit is not None:
            units.append(unit)
    return units


def _unit_at(root: Node, offset: int, values: int) -> Unit | None:
    node = root.descendant_for_byte_range(offset, offset + 1)
    while node is not None and (node.parent is None or node.parent.type not in _CONTAINERS):
        node = node.parent
    if node is None or node.parent is None or node.type == "comment":
        return None
    quoted = node.type in ("string", "raw_string") and not re.search(rb"\s", node.text or b" ")
    if node.start_byte + quoted != offset:
        return None
    last = node
    following = node.next_named_sibling
    while following is not None and values and not _begins_flag(following) and following.type != "comment":
        last, values = following, values - 1
        following = following.next_named_sibling
    return Unit(node.start_byte, last.end_byte, node.parent)


def _begins_flag(node: Node) -> bool:
    text = node.text or b""
    return text.lstrip(b"\"'").startswith(b"--") or (
        text.startswith((b"${", b'"${')) and text.rstrip(b'"').endswith(b"@]}")
    )


def _cut(data: bytes, unit: Unit) -> bytes:
    """Return the script without a unit, and without the line that it leaves empty."""
    start = data.rfind(b"\n", 0, unit.start) + 1
    end = strings.line_end(data, unit.end)
    rest = re.fullmatch(rb"[ \t]*(\\?)[ \t]*(?:#.*)?\r?", data[unit.end : end])
    if data[start : unit.start].strip(b" \t") or rest is None:
        before = data[: unit.start].rstrip(b" \t") if data[start : unit.start].strip(b" \t") else data[: unit.start]
        return before + (data[unit.end :] if before != data[: unit.start] else data[unit.end :].lstrip(b" \t"))
    head = data[:start]
    if unit.container.type == "command" and not rest[1]:  # the line before must no longer continue
        head = re.sub(rb"[ \t]*\\\r?\n\Z", b"\n", head)
    return head + data[end + 1 :]


def _inserted(data: bytes, unit: Unit, written: bytes) -> bytes:
    """Return the script with words after a unit: on a line of their own where the unit has one."""
    start = data.rfind(b"\n", 0, unit.start) + 1
    end = strings.line_end(data, unit.end)
    indent, rest = data[start : unit.start], data[unit.end : end]
    if indent.strip(b" \t"):
        return data[: unit.end] + b" " + written + data[unit.end :]
    if unit.container.type == "array":
        if b")" in rest.partition(b"#")[0]:
            return data[: unit.end] + b"\n" + indent + written + data[unit.end :]
        return data[:end] + b"\n" + indent + written + data[end:]
    if rest.rstrip().endswith(b"\\"):
        return data[: end + 1] + indent + written + b" \\\n" + data[end + 1 :]
    return data[: unit.end] + b" \\\n" + indent + written + data[unit.end :]


def _kin(data: bytes, path: str, launch: Launch, flag: str) -> list[Unit]:
    """Return the flags after which a new one may be put, nearest kin first.

    Kin are flags with the same first words (`--sglang-…`, `--rollout-…`); of equal ones the last. Flags that stand in
    other files, in strings or behind a condition are passed over.
    """
    ranked: list[tuple[int, int, Unit]] = []
    root = parse(data)
    for job in launch.jobs:
        for name, ones in job.flags.items():
            for one in ones:
                if one.place.path != path or not one.sure:
                    continue
                shared = strings.shared(flag, name)
                ranked += [(shared or _catch_all(data, unit), unit.start, unit) for unit in _units_in(data, root, one)]
    ranked.sort(key=lambda item: (-item[0], -item[1]))
    return [unit for _, _, unit in ranked[:12]]


def _units_in(data: bytes, root: Node, one: Occurrence) -> list[Unit]:
    at = data.find(b"--" + one.flag.encode(), one.place.offset, strings.line_end(data, one.place.offset))
    unit = _unit_at(root, at, len(one.values)) if at >= 0 else None
    return [unit] if unit is not None else []


def _catch_all(data: bytes, unit: Unit) -> int:
    """Return 1 where the unit stands in an array for what belongs nowhere else."""
    assigned = unit.container.parent
    named = assigned is not None and assigned.type == "variable_assignment"
    name = data[assigned.start_byte : unit.container.start_byte].lower() if assigned is not None and named else b""
    return int(any(word.encode() in name for word in _LAST))


def _after_command(data: bytes, job: Job, written: bytes) -> Iterator[bytes]:
    """Yield the script with words behind the last one of a command, for flags that all come from elsewhere."""
    root = parse(data)
    at = re.compile(rb"\S").search(data, job.place.offset)
    node = root.descendant_for_byte_range(at.start(), at.start() + 1) if at else None
    while node is not None and node.type != "command":
        node = node.parent
    if node is not None:
        yield data[: node.end_byte] + b" " + written + data[node.end_byte :]

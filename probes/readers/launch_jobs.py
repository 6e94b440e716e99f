"""Reads the training command out of what Ray says of its jobs: `ray job list`, or the dashboard's /api/jobs/.

The first prints Python's repr of JobDetails on one line each, the second JSON; both have `entrypoint`, the command line
as it was submitted, and `runtime_env`. A line `entrypoint: ...`, as people copy it into a ticket, is read too.
Invariants: nothing is run; every flag is cited at the line that holds the entrypoint; what is not a training command is
passed over.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import msgspec

from probes.readers.bash_script import read_script
from probes.readers.bash_tree import Source
from probes.readers.launch_commands import MAX_VARIABLES, Meaning, understand
from probes.readers.launch_model import Place, Setting

_ENTRY = re.compile(
    rb"(?<![\w-])entrypoint(?P<key>[\"']?)\s*[=:]\s*"
    rb"(?:\"(?P<double>(?:[^\"\\\n]|\\.)*)\"|'(?P<single>(?:[^'\\\n]|\\.)*)'|(?P<bare>[^\s\"'{\[][^\n]*))"
)
_RUNTIME = re.compile(rb"[\"']?runtime_env[\"']?\s*[=:]\s*(?=\{)")
MAX_JOBS = 200
MAX_RUNTIME = 64 << 10
"""Bytes of one runtime env that are read."""


def has_entrypoint(data: bytes) -> bool:
    """Return whether a file looks like what Ray says of its jobs."""
    return _ENTRY.search(data) is not None


def read_jobs(path: str, data: bytes) -> Meaning:
    """Return the training jobs that the entrypoints of `data`, the bytes of `path`, start."""
    source = Source(path, data)
    meaning = Meaning()
    entries = [*_ENTRY.finditer(data)][:MAX_JOBS]
    for number, entry in enumerate(entries):
        place = source.place(entry.start())
        before = len(meaning.jobs)
        script = read_script(path, _text(entry).encode("utf-8", "surrogatepass"))
        understand(script, _at(place), meaning)
        end = entries[number + 1].start() if number + 1 < len(entries) else len(data)
        variables = _runtime(data[entry.end() : min(end, entry.end() + MAX_RUNTIME)], place)
        for index in range(before, len(meaning.jobs)):
            job = meaning.jobs[index]
            if variables is not None and not job.has_runtime_env:
                meaning.jobs[index] = msgspec.structs.replace(job, runtime_env=variables, has_runtime_env=True)
    return meaning


def _at(place: Place) -> Any:
    return lambda _path, _offset: place


def _text(entry: re.Match[bytes]) -> str:
    """Return the command line with its escapes undone; as it is written where they are none."""
    if entry["bare"] is not None:
        return entry["bare"].decode("utf-8", "replace")
    quote = b'"' if entry["double"] is not None else b"'"
    inner = entry["double"] if entry["double"] is not None else entry["single"]
    text = (quote + inner + quote).decode("utf-8", "replace")
    value = _literal(text)
    return value if isinstance(value, str) else inner.decode("utf-8", "replace")


def _literal(text: str) -> Any:
    for load in (json.loads, ast.literal_eval):
        try:
            return load(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _runtime(data: bytes, place: Place) -> dict[str, Setting] | None:
    """Return env_vars of the runtime env that follows an entrypoint; None when there is none that can be read."""
    start = _RUNTIME.search(data)
    if start is None:
        return None
    depth = 0
    for at in range(start.end(), len(data)):
        depth += (data[at : at + 1] == b"{") - (data[at : at + 1] == b"}")
        if depth == 0:
            value = _literal(data[start.end() : at + 1].decode("utf-8", "replace"))
            inner = value.get("env_vars") if isinstance(value, dict) else None
            pairs = list(inner.items())[:MAX_VARIABLES] if isinstance(inner, dict) else []
            return {str(name): Setting(str(name), str(item), str(item), place) for name, item in pairs}
    return None

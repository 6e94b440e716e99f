"""Edits of the runtime env inside a launch script: JSON with or without escaped quotes, or a Python dictionary."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator

_OBJECT = re.compile(rb"(\\?['\"])env_vars\1\s*:\s*\{")
"""The start of the variables, with the quote that stands around names: bare, or escaped inside a shell string."""
_PYTHON = re.compile(rb"\b(?:extra_env_vars|env_vars)\s*=\s*(?:dict\()?\{")


def runtime_env(data: bytes, name: str, value: str) -> Iterator[bytes]:
    """Yield the script with a variable changed in, or added to, each place where variables of a job are written."""
    key = re.escape(name).encode()
    held = re.compile(rb"((\\?['\"])" + key + rb"\2\s*:\s*)(f?)(\\?['\"])((?:(?!\4).)*)\4")
    for found in held.finditer(data):
        quote = found[4]
        yield data[: found.start()] + found[1] + quote + _escaped(value, quote) + quote + data[found.end() :]
    for opening in _OBJECT.finditer(data):
        yield _first(data, opening.end(), opening[1], name, value)
    for opening in _PYTHON.finditer(data):
        yield _first(data, opening.end(), b'"', name, value)
    yield from _argument(data, name, value)


def _escaped(value: str, quote: bytes) -> bytes:
    """Return a value as it stands inside JSON that is quoted by `quote`."""
    inner = json.dumps(value)[1:-1]
    if quote.startswith(b"\\"):
        inner = inner.replace("\\", "\\\\").replace('"', '\\"')
    return inner.encode()


def _first(data: bytes, at: int, quote: bytes, name: str, value: str) -> bytes:
    """Return the script with a pair put first into the object that opens before `at`, in the layout it has."""
    rest = data[at:]
    layout = re.match(rb"\s*", rest)
    gap = layout[0] if layout else b""
    empty = rest[len(gap) : len(gap) + 1] == b"}"
    pair = quote + name.encode() + quote + b": " + quote + _escaped(value, quote) + quote
    if empty:
        return data[:at] + pair + rest
    return data[:at] + gap + pair + (b"," + gap if gap else b", ") + rest[len(gap) :]


def _argument(data: bytes, name: str, value: str) -> Iterator[bytes]:
    """Yield a Python launcher in which every call of execute_train gets the variable as an argument of its own."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    starts = [0, *(found.end() for found in re.finditer(rb"\n", data))]
    ends = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("execute_train"):
            last = max(
                (*node.args, *(one.value for one in node.keywords)), key=lambda one: one.end_lineno or 0, default=None
            )
            if last is not None and last.end_lineno and last.end_col_offset is not None:
                ends.append((starts[last.end_lineno - 1] + last.end_col_offset, last.end_lineno > node.lineno))
    out = data
    pair = f"extra_env_vars={{{json.dumps(name)}: {json.dumps(value)}}}".encode()
    for at, lines in sorted(ends, reverse=True):
        start = out.rfind(b"\n", 0, at) + 1
        indent = re.match(rb"[ \t]*", out[start:])
        gap = b"\n" + indent[0] if lines and indent else b" "
        out = out[:at] + b"," + gap + pair + out[at:]
    if out != data:
        yield out

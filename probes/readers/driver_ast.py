"""Follows a driver script (train.py) as a syntax tree: in which order it initialises Ray, stops and calls other code.

Only the main flow counts: the module, its main guard, and functions of the same file that it calls. Bodies of
remote functions and classes run in workers and are passed over. Nothing is imported or run.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

LIMIT = 2 << 20
_HARMLESS = frozenset({
    "parse_args", "configure_logger", "print", "basicConfig", "getLogger", "ArgumentParser", "add_argument",
    "set_start_method", "info", "warning", "debug", "join", "abspath", "dirname", "insert", "append", "get",
    "getenv", "setdefault", "int", "str", "bool", "float", "len", "seed", "manual_seed",
})  # fmt: skip
"""Calls that cannot initialise Ray. slime's parse_args only parses."""


@dataclass(frozen=True)
class Event:
    """A step of the main flow.

    kind: "init" (ray.init), "breakpoint", or "call" (any other call that may initialise Ray). bare: ray.init() without
    arguments.
    """

    kind: str
    line: int
    offset: int
    text: str
    bare: bool = False


def read_driver(path: str) -> list[Event] | None:
    """Return the events of the main flow in order; None when the file cannot be read or is not Python."""
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        return list(_Flow(data, tree).events())
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return None


class _Flow:
    def __init__(self, data: bytes, tree: ast.Module) -> None:
        self.lines = data.split(b"\n")
        self.tree = tree
        self.functions = {
            node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and not _is_remote(node)
        }
        self.aliases = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "ray"
            for name in node.names
            if name.name == "init"
        }
        self.inside: list[str] = []

    def events(self) -> Iterator[Event]:
        """Yield the events of the module in order."""
        for node in self.tree.body:
            yield from self.of(node)

    def of(self, node: ast.AST) -> Iterator[Event]:
        """Yield the events of a node: arguments before the call itself, functions of the file in place."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return
        for child in ast.iter_child_nodes(node):
            yield from self.of(child)
        if isinstance(node, ast.Call):
            yield from self.call(node)

    def call(self, node: ast.Call) -> Iterator[Event]:
        """Yield what a call amounts to."""
        target = node.func
        owner = target.value.id if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else ""
        name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
        if (owner == "ray" and name == "init") or (not owner and name in self.aliases):
            yield self.event("init", node, bare=not node.args and not node.keywords)
        elif isinstance(target, ast.Name) and name == "breakpoint":
            yield self.event("breakpoint", node)
        elif (
            isinstance(target, ast.Name)
            and name in self.functions
            and name not in self.inside
            and len(self.inside) < 20
        ):
            self.inside.append(name)
            for statement in self.functions[name].body:
                yield from self.of(statement)
            self.inside.pop()
        elif name not in _HARMLESS:
            yield self.event("call", node)

    def event(self, kind: str, node: ast.Call, *, bare: bool = False) -> Event:
        """Build an event at the node's line."""
        offset = sum(len(line) + 1 for line in self.lines[: node.lineno - 1])
        return Event(kind, node.lineno, offset, self.lines[node.lineno - 1].decode("utf-8", "replace"), bare)


def _is_remote(node: ast.FunctionDef) -> bool:
    return any("remote" in ast.dump(decorator) for decorator in node.decorator_list)

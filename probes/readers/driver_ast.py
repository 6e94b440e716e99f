"""Follows a driver script (train.py) as a syntax tree: where it initialises Ray, where it stops, and in which process.

Two kinds of code are told apart. The *main flow* runs in the driver: the module, its main guard, and the functions that
it calls, in this file or in one that lies beside it (imports are followed one step). *Remote* code runs in workers:
what is decorated with `ray.remote` or handed to it, and slime's actor classes (imports are followed two steps, as from
slime's train.py to its actors). Statements behind a condition carry it
(`driver_guards`). Nothing is imported or run.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from probes.readers.driver_guards import Guard, dotted, guards

LIMIT = 2 << 20
MANY_IMPORTS = 60
DEEP = 20
"""Calls within calls that are followed."""
_HARMLESS = frozenset({
    "parse_args", "configure_logger", "print", "basicConfig", "getLogger", "ArgumentParser", "add_argument",
    "set_start_method", "info", "warning", "debug", "join", "abspath", "dirname", "insert", "append", "get",
    "getenv", "setdefault", "int", "str", "bool", "float", "len", "seed", "manual_seed", "is_initialized",
    "getattr", "hasattr", "isinstance", "range", "enumerate", "exit", "_exit", "quit",
})  # fmt: skip
"""Calls that cannot initialise Ray. slime's parse_args only parses."""
_STOPS = frozenset({
    "breakpoint", "ray.util.pdb.set_trace", "ray.util.rpdb.set_trace", "ray.util.debugpy.set_trace",
    "ray.util.ray_debugpy.set_trace",
})  # fmt: skip
"""What enters Ray's debugger: PYTHONBREAKPOINT is ray.util.rpdb.set_trace in every worker and submitted driver."""
_CONSOLES = frozenset({
    "pdb.set_trace", "ipdb.set_trace", "pudb.set_trace", "pdb.post_mortem", "ipdb.post_mortem", "code.interact",
})  # fmt: skip
"""What reads from the process's own terminal, which no Ray process has."""
_AUTO_INIT = frozenset({"ray.get", "ray.put", "ray.wait", "ray.kill", "ray.get_actor", "ray.cluster_resources"})
"""Calls that initialise Ray by themselves (ray/_private/auto_init_hook.py), as `.remote()` of an actor or task does."""
_ACTOR_BASE = re.compile(r"(?:^|\.)\w*RayActor$")
_ACTORS = frozenset({"RolloutManager", "SGLangEngine", "MegatronTrainRayActor", "FSDPTrainRayActor"})
"""slime's actor classes, which it hands to ray.remote in another file."""
_GUIDE_LINE = re.compile(rb"^[ \t]*#[ \t]*breakpoint\(\)")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Event:
    """A step of a driver, or a stop in code that it runs elsewhere.

    kind: "init" (Ray is initialised), "breakpoint", "console" (pdb and the like) or "call" (any other call that may
    initialise Ray). where: "driver", "worker", or "" for a function that nothing seen here calls. bare: ray.init()
    without arguments. written: ray.init() itself, not a call that initialises Ray by the way. guards: what must hold
    for it to run.
    """

    kind: str
    path: str
    line: int
    offset: int
    text: str
    where: str = "driver"
    bare: bool = False
    written: bool = False
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Driver:
    """A driver script. events: of the main flow in order, then stops in workers, then those that nothing calls.

    commented: places where a breakpoint() was commented out, as (line, offset, text).
    """

    events: tuple[Event, ...]
    commented: tuple[tuple[int, int, str], ...] = ()


def read_driver(path: str) -> Driver | None:
    """Return what a driver script does; None when the file cannot be read or is not Python."""
    module = _read(path)
    if module is None:
        return None
    try:
        base = Path(path).parent
        others = dict(_imported(module, base))
        further = [other for one in others.values() for _, other in _imported(one, base)]
        main = list(_Flow(module, others).events())
        rest = _elsewhere(module, [*others.values(), *further], {(event.path, event.line) for event in main})
        return Driver((*main, *rest), tuple(_commented(module)))
    except (ValueError, RecursionError):
        return None


@dataclass
class Module:
    """A parsed file. names: what a local name stands for, dotted. definitions: functions and classes by name."""

    path: str
    lines: list[bytes]
    tree: ast.Module
    offsets: list[int]
    names: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)

    def full(self, node: ast.AST) -> str:
        """Return the dotted name of an expression with its import resolved, such as "ray.util.pdb.set_trace"."""
        head, dot, rest = dotted(node).partition(".")
        return self.names.get(head, head) + dot + rest

    def made_by(self, node: ast.Call) -> str:
        """Return the dotted name of what is called, of `f(1)(2)` that of f."""
        return self.full(node.func.func if isinstance(node.func, ast.Call) else node.func)

    def event(self, kind: str, node: ast.AST, **more: object) -> Event:
        """Build an event at the node's line."""
        number = getattr(node, "lineno", 1)
        text = self.lines[number - 1].decode("utf-8", "replace") if number <= len(self.lines) else ""
        return Event(kind, self.path, number, self.offsets[number - 1], text, **more)  # type: ignore[arg-type]


def _read(path: str) -> Module | None:
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        return _module(path, data, tree)
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _module(path: str, data: bytes, tree: ast.Module) -> Module:
    lines = data.split(b"\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    module = Module(path, lines, tree, offsets)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module.names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            for alias in node.names:
                module.names[alias.asname or alias.name] = f"{source}{'' if source.endswith('.') else '.'}{alias.name}"
    module.definitions = {node.name: node for node in tree.body if isinstance(node, Definition)}
    return module


def _imported(module: Module, base: Path) -> Iterator[tuple[str, Module]]:
    """Yield the modules that a file imports and that lie below `base`, by the name they are imported by."""
    wanted = dict.fromkeys(part for name in module.names.values() for part in (name, name.rpartition(".")[0]))
    read = 0
    for name in wanted:
        short = name.lstrip(".")
        up = len(name) - len(short)
        if not re.fullmatch(r"[\w.]{1,200}", short) or read >= MANY_IMPORTS or up >= len(Path(module.path).parents):
            continue
        root = Path(module.path).parents[up - 1] if up else base
        stem = root.joinpath(*short.split("."))
        for place in (stem.with_suffix(".py"), stem / "__init__.py"):
            if place.is_file() and (other := _read(str(place))) is not None:
                read += 1
                yield name, other
                break


class _Flow:
    """The main flow: what the driver's own process does, in order."""

    def __init__(self, module: Module, others: dict[str, Module]) -> None:
        self.others = others
        self.driver = self.module = module
        self.inside: list[tuple[str, str]] = []
        self.guards: tuple[Guard, ...] = ()

    def events(self) -> Iterator[Event]:
        """Yield the events of the module in order."""
        yield from self.block(self.module.tree.body)

    def block(self, body: Iterable[ast.stmt]) -> Iterator[Event]:
        """Yield the events of statements in order, up to one that leaves the block."""
        before = self.guards
        for node in body:
            yield from self.of(node)
            if _leaves(node):
                break
            if isinstance(node, ast.If) and not node.orelse and _leaves(node.body[-1]):
                self.guards += guards(node.test, negated=True)
        self.guards = before

    def under(self, more: tuple[Guard, ...], body: Iterable[ast.stmt]) -> Iterator[Event]:
        """Yield the events of statements behind further conditions."""
        before, self.guards = self.guards, self.guards + more
        if not any(guard.kind == "constant" and not guard.holds(None) for guard in more):
            yield from self.block(body)
        self.guards = before

    def of(self, node: ast.AST) -> Iterator[Event]:
        """Yield the events of a node: arguments before the call itself, called functions in place."""
        if isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            return
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            yield from self.short(node)
            return
        first, blocks = _parts(node)
        for child in first:
            yield from self.of(child)
        for more, body in blocks:
            yield from self.under(more, body)
        if isinstance(node, ast.Call):
            yield from self.call(node)

    def short(self, node: ast.IfExp | ast.BoolOp) -> Iterator[Event]:
        """Yield the events of an expression of which parts may not be evaluated."""
        if isinstance(node, ast.IfExp):
            parts = [((), node.test), (guards(node.test), node.body), (guards(node.test, negated=True), node.orelse)]
        else:
            negated = isinstance(node.op, ast.Or)
            before: tuple[Guard, ...] = ()
            parts = []
            for value in node.values:
                parts.append((before, value))
                before = (*before, *guards(value, negated=negated))
        for more, value in parts:
            yield from self.under(more, [ast.copy_location(ast.Expr(value), value)])

    def call(self, node: ast.Call) -> Iterator[Event]:
        """Yield what a call amounts to."""
        name = self.module.full(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
        if name == "ray.init":
            bare = not node.args and not node.keywords
            yield self.module.event("init", node, bare=bare, written=True, guards=self.guards)
        elif kind := _stop(name):
            yield self.module.event(kind, node, guards=self.guards)
        elif name in _AUTO_INIT or (last == "remote" and name != "ray.remote"):
            yield self.module.event("init", node, guards=self.guards)
        elif last in _HARMLESS and name not in self.module.definitions:
            return
        elif (target := self.target(name)) is not None:
            yield from self.into(*target)
        elif self.module.made_by(node) != "ray.remote":
            yield self.module.event("call", node, guards=self.guards)

    def target(self, name: str) -> tuple[Module, Function] | None:
        """Return the function that a call runs in this process, where its text is at hand."""
        module, short = self.module, name
        if short not in module.definitions:
            source, _, short = name.rpartition(".")
            found = self.others.get(source)
            if found is None or module is not self.driver:
                return None
            module = found
        node = module.definitions.get(short)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or _decorated(module, node):
            return None
        return module, node

    def into(self, module: Module, node: Function) -> Iterator[Event]:
        """Yield the events of a called function."""
        if (module.path, node.name) in self.inside or len(self.inside) >= DEEP:
            return
        before, self.module = self.module, module
        self.inside.append((module.path, node.name))
        yield from self.under((), node.body)
        self.inside.pop()
        self.module = before


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _parts(node: ast.AST) -> tuple[list[ast.AST], list[tuple[tuple[Guard, ...], list[ast.stmt]]]]:
    """Return what a node evaluates first, and the blocks that may follow, each with its conditions."""
    if isinstance(node, (ast.If, ast.While)):
        return [node.test], [(guards(node.test), node.body), (guards(node.test, negated=True), node.orelse)]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.iter], [((), node.body), ((), node.orelse)]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [*node.items], [((), node.body)]
    if isinstance(node, ast.Match):
        return [node.subject], [((Guard("other", "", "case"),), case.body) for case in node.cases]
    if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        caught = [((Guard("other", "", "except"),), handler.body) for handler in node.handlers]  # type: ignore[attr-defined]
        return [], [((), node.body), *caught, ((), node.orelse), ((), node.finalbody)]  # type: ignore[attr-defined]
    return [*ast.iter_child_nodes(node)], []


def _leaves(node: ast.stmt) -> bool:
    """Whether nothing of the block runs behind a statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return dotted(node.value.func) in ("sys.exit", "exit", "quit", "os._exit")
    return isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _stop(name: str) -> str | None:
    return "breakpoint" if name in _STOPS else "console" if name in _CONSOLES else None


def _decorated(module: Module, node: Definition) -> bool:
    """Whether a definition is decorated with ray.remote, with or without options."""
    return any(
        module.full(one.func if isinstance(one, ast.Call) else one) == "ray.remote" for one in node.decorator_list
    )


def _elsewhere(module: Module, others: list[Module], seen: set[tuple[str, int]]) -> list[Event]:
    """Return the stops in remote code of the driver and of what it imports, and those in functions nobody calls."""
    modules = {one.path: one for one in (module, *others)}.values()
    handed = {name for one in modules for name in _handed(one)}
    found = []
    for one in modules:
        for node in ast.walk(one.tree):
            if not isinstance(node, _DEFINITIONS):
                continue
            remote = _decorated(one, node) or node.name in handed or node.name in _ACTORS
            if isinstance(node, ast.ClassDef):
                remote = remote or any(_ACTOR_BASE.search(one.full(base)) for base in node.bases)
            if not remote and one is not module:
                continue
            for event in _stops(one, node, "worker" if remote else ""):
                if (event.path, event.line) not in seen:
                    found.append(event)
                    if remote:
                        seen.add((event.path, event.line))
    workers = {(event.path, event.line) for event in found if event.where == "worker"}
    idle = {(event.path, event.line): event for event in found if not event.where}
    return [
        *(event for event in found if event.where == "worker"),
        *(event for place, event in idle.items() if place not in workers),
    ]


def _handed(module: Module) -> Iterator[str]:
    """Yield the names of functions and classes that are handed to ray.remote, as in `ray.remote(num_gpus=1)(Actor)`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and module.made_by(node) == "ray.remote":
            yield from (module.full(one).rpartition(".")[2] for one in node.args if dotted(one))


def _stops(module: Module, node: Definition, where: str) -> Iterator[Event]:
    """Yield the stops in the body of a definition, with the conditions inside it."""
    flow = _Flow(module, {})
    for inner in ast.walk(node):
        if isinstance(inner, _DEFINITIONS):
            for event in flow.block(inner.body):
                if event.kind in ("breakpoint", "console"):
                    yield replace(event, where=where)


def _commented(module: Module) -> Iterator[tuple[int, int, str]]:
    """Yield each breakpoint() that was commented out."""
    for number, line in enumerate(module.lines, start=1):
        if _GUIDE_LINE.match(line):
            yield number, module.offsets[number - 1], line.decode("utf-8", "replace").rstrip("\r")

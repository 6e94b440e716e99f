"""Reads a Python launcher as a syntax tree: the strings it concatenates into a training command.

slime's Python launchers build `train_args` from f-strings and hand it to `execute_train`, which sources the model
script and runs `ray job submit`; others pass one shell string to `os.system` or `subprocess`. Nothing is imported
or run. A value is a tuple of fragments as in bash_values, so that a flag is cited at its own line; what depends on
the environment or on other modules is unknown.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from probes.readers.bash_tree import Source
from probes.readers.bash_values import known, marked
from probes.readers.python_values import UNKNOWN, Expressions, add, called, either
from probes.readers.value_limits import Stop, TooLong

MAX_STEPS = 20_000
_SHELLS = frozenset({"exec_command", "system", "run", "Popen", "call", "check_call", "check_output", "submit_job"})
_STARTERS = ("execute_train", "submit_job", "exec_command", "system")


@dataclass(frozen=True)
class Call:
    """A call that starts something.

    name: last part of the dotted name. args: evaluated arguments by name or position. sure: no unknown condition
    guards it.
    """

    name: str
    args: dict[str | int, Any]
    offset: int
    sure: bool


@dataclass
class PythonScript:
    """The calls of interest, in the order in which they would run, and what could not be followed."""

    source: Source
    calls: list[Call] = field(default_factory=list)
    gaps: list[tuple[str, str, int]] = field(default_factory=list)


class _Return(Exception):  # noqa: N818 - no error either
    """Carries a value out of a function body."""

    def __init__(self, value: Any) -> None:
        self.value = value


def read_python(path: str, data: bytes) -> PythonScript | None:
    """Walk a launcher; None when it is not Python. Never raises for hostile input."""
    script = PythonScript(Source(path, data))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in somebody's string is not our concern
            tree = ast.parse(data)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    walk = _Walk(script)
    try:
        walk.block(tree.body, walk.globals)
        for name, function in list(walk.functions.items()):  # pytest and typer call these, not the module itself
            if name not in walk.called and any(
                isinstance(node, ast.Call) and called(node).endswith(_STARTERS) for node in ast.walk(function)
            ):
                walk.call_function(function, {})
    except (Stop, RecursionError):
        script.gaps.append((path, "the launcher is too long to follow to its end", 0))
    return script


class _Walk(Expressions):
    """The state of one walk over a launcher."""

    def __init__(self, script: PythonScript) -> None:
        super().__init__(script.source)
        self.script = script
        self.functions: dict[str, ast.FunctionDef] = {}
        self.called: set[str] = set()
        self.results: list[Any] = []  # what branches that may run would return from the function being walked
        self.steps = 0

    def block(self, body: Iterable[ast.stmt], scope: dict[str, Any]) -> None:
        """Walk statements in order."""
        for statement in body:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise Stop
            self.statement(statement, scope)

    def statement(  # noqa: C901 - one branch for each kind of statement
        self, node: ast.stmt, scope: dict[str, Any]
    ) -> None:
        """Walk one statement."""
        if isinstance(node, ast.FunctionDef):
            self.functions[node.name] = node
        elif isinstance(node, ast.Assign):
            value = self.value(node.value, scope)
            for target in node.targets:
                self.assign(target, value, scope)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            before, more = (
                scope.get(node.target.id, self.globals.get(node.target.id, UNKNOWN)),
                self.value(node.value, scope),
            )
            if self.unsure and isinstance(more, tuple):
                more = marked(more, sure=False)
            try:
                scope[node.target.id] = add(before, more)
            except TooLong:
                scope[node.target.id] = UNKNOWN
            self.budget.spend(len(before) if isinstance(before, (tuple, list)) else 1)
        elif isinstance(node, (ast.If, ast.Match)):
            self.branch(node, scope)
        elif isinstance(node, (ast.For, ast.While)):
            self.loop(node, scope)
        elif isinstance(node, (ast.With, ast.Try)):
            self.block(node.body, scope)
            self.block(getattr(node, "finalbody", []), scope)
        elif isinstance(node, ast.Return):
            raise _Return(self.value(node.value, scope) if node.value is not None else None)
        elif isinstance(node, ast.Expr):
            self.value(node.value, scope)

    def assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        """Bind a name, an element of a dict, or several names."""
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, ast.Subscript):
            holder, key = self.value(target.value, scope), self.value(target.slice, scope)
            if isinstance(holder, dict) and isinstance(key, tuple) and (name := known(key)) is not None:
                holder[name] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = (
                value if isinstance(value, list) and len(value) == len(target.elts) else [UNKNOWN] * len(target.elts)
            )
            for one, part in zip(target.elts, values, strict=True):
                self.assign(one, part, scope)

    def branch(self, node: ast.If | ast.Match, scope: dict[str, Any]) -> None:
        """Follow the branch whose condition is certain, otherwise all as not sure."""
        if isinstance(node, ast.Match):
            wildcard = any(isinstance(case.pattern, ast.MatchAs) and case.guard is None for case in node.cases)
            self.fork([*(case.body for case in node.cases), *([] if wildcard else [[]])], scope)
            return
        if _is_main_guard(node.test):
            self.block(node.body, scope)
            return
        truth, default = self.truth(node.test, scope)
        if truth is not None and not default:
            self.block(node.body if truth else node.orelse, scope)
            return
        self.fork([node.body, node.orelse], scope)

    def fork(self, bodies: list[list[ast.stmt]], scope: dict[str, Any]) -> None:
        """Walk bodies of which one runs, each as not sure."""
        outcomes = []
        for body in bodies:
            self.budget.spend(len(scope))
            inner = dict(scope)
            self.maybe(body, inner)
            outcomes.append(inner)
        for name in dict.fromkeys(name for outcome in outcomes for name in outcome):
            scope[name] = reduce(either, (outcome.get(name, ()) for outcome in outcomes))

    def maybe(self, body: list[ast.stmt], scope: dict[str, Any]) -> None:
        """Walk statements that may not run; what they would return is kept as one possible result."""
        self.unsure += 1
        try:
            self.block(body, scope)
        except _Return as returned:
            self.results.append(returned.value)
        finally:
            self.unsure -= 1

    def loop(self, node: ast.For | ast.While, scope: dict[str, Any]) -> None:
        """Walk a loop over a known list; any other loop once, as not sure."""
        items = self.value(node.iter, scope) if isinstance(node, ast.For) else UNKNOWN
        if isinstance(node, ast.For) and isinstance(items, list) and len(items) <= 64:
            for item in items:
                self.assign(node.target, item, scope)
                self.block(node.body, scope)
            return
        self.budget.spend(len(scope))
        inner = dict(scope)
        if isinstance(node, ast.For):
            self.assign(node.target, UNKNOWN, inner)
        self.maybe(node.body, inner)
        for name, value in inner.items():
            scope[name] = either(value, scope.get(name, ()))

    def followed(self, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> tuple[bool, Any]:
        """Note a call that starts something, and walk a function of this file."""
        name = called(node)
        if name in _SHELLS or (name.endswith("execute_train") and name not in self.functions):
            given: dict[str | int, Any] = dict(enumerate(args))
            given.update(keywords.items())
            self.script.calls.append(Call(name, given, self.offset(node), not self.unsure))
            return True, UNKNOWN
        if isinstance(node.func, ast.Name) and name in self.functions and len(args) == len(node.args):
            function = self.functions[name]
            names = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
            return True, self.call_function(function, {**dict(zip(names, args, strict=False)), **keywords})
        return False, UNKNOWN

    def call_function(self, function: ast.FunctionDef, given: dict[str, Any]) -> Any:
        """Walk a function of this file with the given arguments and its defaults."""
        self.called.add(function.name)
        if self.depth > 40:
            return UNKNOWN
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        scope: dict[str, Any] = {arg.arg: UNKNOWN for arg in (*positional, *arguments.kwonlyargs)}
        for arg, default in zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        ):
            scope[arg.arg] = self.value(default, self.globals)
        for arg, kw_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if kw_default is not None:
                scope[arg.arg] = self.value(kw_default, self.globals)
        scope.update({name: value for name, value in given.items() if name in scope})
        self.depth += 5
        outer, self.results = self.results, []
        result: Any = None
        try:
            self.block(function.body, scope)
        except _Return as returned:
            result = returned.value
        finally:
            self.depth -= 5
            possible, self.results = self.results, outer
        for other in possible:
            result = either(other, result)
        return result


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"

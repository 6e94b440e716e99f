"""The conditions under which a statement of a driver script runs, as far as they can be told.

A condition is told apart only where it is as simple as people write it around a breakpoint: a flag of the parsed
arguments, a variable of the environment, a constant. Everything else is "other" and decides nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

_ARGUMENTS = frozenset({"args", "arg", "opts", "options", "cfg", "config", "flags", "FLAGS"})
_READS_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv", "environ.get", "getenv"})
_ENVIRONMENT = frozenset({"os.environ", "environ"})
_INITIALISED = "ray.is_initialized"


@dataclass(frozen=True)
class Guard:
    """One condition that must hold.

    kind: "flag" (name without dashes), "env", "constant" (`equals` is "1" or "") or "other". equals: the text that the
    variable must have; None: any text that is not empty; `number`: it is taken as a number, and must not be 0.
    default: what an unset variable counts as, None where that fulfils nothing. negated: it must not hold. text: as
    written.
    """

    kind: str
    name: str
    text: str
    equals: str | None = None
    default: str | None = ""
    number: bool = False
    negated: bool = False

    def holds(self, value: str | None) -> bool:
        """Return whether a variable with this value (None: unset) fulfils the condition."""
        held = self._held(self.default if value is None else value)
        return held is not self.negated

    def _held(self, value: str | None) -> bool:
        if value is None:
            return False
        if self.equals is not None:
            return value == self.equals
        return value.strip() not in ("", "0") if self.number else bool(value)


def dotted(node: ast.AST) -> str:
    """Return a name such as "os.environ.get", empty where it is no plain chain of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def guards(test: ast.expr, *, negated: bool = False) -> tuple[Guard, ...]:
    """Return the conditions that must all hold where `test` is true (or false); () where it says nothing of the run.

    The main guard of a module, and whether Ray is already initialised, are no conditions here.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return guards(test.operand, negated=not negated)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or if negated else ast.And):
        return tuple(guard for value in test.values for guard in guards(value, negated=negated))
    if _is_main(test) or (isinstance(test, ast.Call) and dotted(test.func) == _INITIALISED):
        return ()
    return (replace(_one(test), negated=negated, text=ast.unparse(test)[:120]),)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _one(test: ast.expr) -> Guard:
    other = Guard("other", "", "")
    if isinstance(test, ast.Constant):
        return Guard("constant", "", "", default="1" if test.value else "")
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test) or other
    return _flag(test) or _variable(test) or other


def _flag(test: ast.expr) -> Guard | None:
    if isinstance(test, ast.Call) and dotted(test.func) == "getattr" and len(test.args) >= 2:
        owner, name = dotted(test.args[0]), _text(test.args[1])
    else:
        owner, _, name = dotted(test).rpartition(".")
    return Guard("flag", name.replace("_", "-"), "") if name and owner.split(".")[-1] in _ARGUMENTS else None


def _variable(test: ast.expr) -> Guard | None:
    """Return the condition that a variable is set to something."""
    if isinstance(test, ast.Call):
        name = dotted(test.func)
        if name in ("int", "bool") and len(test.args) == 1:
            inner = _variable(test.args[0])
            return replace(inner, number=name == "int") if inner else None
        if name in _READS_ENVIRONMENT and test.args:
            default = _text(test.args[1]) if len(test.args) > 1 else ""
            return Guard("env", _text(test.args[0]) or "", "", default=default) if _text(test.args[0]) else None
    if isinstance(test, ast.Subscript) and dotted(test.value) in _ENVIRONMENT:
        name = _text(test.slice)
        return Guard("env", name, "", default=None) if name else None
    return None


def _compared(test: ast.Compare) -> Guard | None:
    """Return the condition of `environ.get("X") == "1"` and of `"X" in os.environ`."""
    operator, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(operator, ast.In) and dotted(right) in _ENVIRONMENT:
        return Guard("env", _text(left), "", default=None) if _text(left) else None
    inner = _variable(left)
    if inner is None or not isinstance(operator, ast.Eq) or not isinstance(right, ast.Constant):
        return None
    return replace(inner, equals=str(right.value), number=False)


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, (str, int)) else ""

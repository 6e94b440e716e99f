"""Evaluates the expressions of a Python launcher, without running it.

A string is a tuple of fragments (bash_values), so that every flag keeps the line at which it is written; numbers,
lists and dicts are Python's own; everything that depends on the machine or on another module is UNKNOWN, or an
unknown part of a string.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from probes.readers.bash_tree import Source
from probes.readers.bash_values import Fragment, Value, known, marked, show, unknown_value
from probes.readers.value_limits import MAX_FRAGMENTS, TOO_LONG, Budget, TooLong, join

MAX_INT = 1 << 63
"""Beyond it an integer is no number of GPUs, tokens or bytes."""


class Unknown:
    """A value that only running the launcher could tell."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Guess:
    """A truth that rests on the default of an environment variable."""

    truth: bool


class Expressions:
    """The evaluation of expressions of one source. unsure: how many unknown conditions guard the place."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.globals: dict[str, Any] = {}
        self.unsure = self.depth = 0
        self.budget = Budget()

    def offset(self, node: ast.AST) -> int:
        """Return the byte offset of a node: ast counts columns in UTF-8 bytes."""
        line: int = getattr(node, "lineno", 1)
        starts = self.source.starts
        return int(starts[min(line, len(starts)) - 1] + getattr(node, "col_offset", 0))

    def end(self, node: ast.AST) -> int:
        """Return the byte offset at which a node ends."""
        starts = self.source.starts
        line: int = getattr(node, "end_lineno", 1) or 1
        return int(starts[min(line, len(starts)) - 1] + (getattr(node, "end_col_offset", None) or 0))

    def unknown(self, node: ast.AST, reason: str = "it is only known when the launcher runs") -> Value:
        """Return an unknown string that is shown as it is written."""
        text = self.source.slice(self.offset(node), self.end(node))[:80]
        return unknown_value(self.source.path, self.offset(node), "${" + " ".join(text.split()) + "}", reason)

    def text(self, value: Any, node: ast.AST) -> Value:
        """Return what `str()` of a value is."""
        if isinstance(value, tuple):
            return value
        if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < MAX_INT):
            return (Fragment(str(value), self.source.path, self.offset(node)),)
        return self.unknown(node)

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """Evaluate an expression to a string value, number, list, dict, None or UNKNOWN. Raises Stop."""
        self.depth += 1
        try:
            if self.depth > 200:
                return UNKNOWN
            found = self._value(node, scope)
        except TooLong:
            found = self.unknown(node, TOO_LONG)
        finally:
            self.depth -= 1
        if isinstance(found, tuple):
            self.budget.handle(found)
        else:
            self.budget.spend(1 + (len(found) if isinstance(found, (list, dict)) else 0))
        return found

    def _value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        rule = _RULES.get(type(node))
        return UNKNOWN if rule is None else rule(self, node, scope)

    def constant(self, node: ast.Constant, scope: dict[str, Any]) -> Any:
        """Evaluate a literal."""
        del scope
        if isinstance(node.value, str):
            return self.written(node, [node.value])
        return node.value if node.value is None or isinstance(node.value, (bool, int, float)) else UNKNOWN

    def formatted(self, node: ast.JoinedStr, scope: dict[str, Any]) -> Value:
        """Evaluate an f-string; a part with a format of its own is unknown."""
        pieces: list[Any] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                pieces.append(part.value)
            elif isinstance(part, ast.FormattedValue):
                plain = part.format_spec is None and part.conversion == -1
                inner = self.value(part.value, scope) if plain else UNKNOWN
                pieces.append(self.text(inner, part.value))
        return self.written(node, pieces)

    def name(self, node: ast.Name, scope: dict[str, Any]) -> Any:
        """Look a name up, first among the function's own."""
        return scope.get(node.id, self.globals.get(node.id, UNKNOWN))

    def binary(self, node: ast.BinOp, scope: dict[str, Any]) -> Any:
        """Evaluate + and * of numbers, and + of strings and lists."""
        if isinstance(node.op, ast.Add):
            return self.add(node, scope)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(node.op, ast.Mult) and type(left) is int and type(right) is int:
            product = left * right
            return product if abs(product) < MAX_INT else UNKNOWN
        return UNKNOWN

    def chosen(self, node: ast.IfExp, scope: dict[str, Any]) -> Any:
        """Evaluate `a if test else b`."""
        truth, default = self.truth(node.test, scope)
        if truth is None:
            sides = [self.value(side, scope) for side in (node.body, node.orelse)]
            return either(*(marked(side, sure=False) if isinstance(side, tuple) else side for side in sides))
        value = self.value(node.body if truth else node.orelse, scope)
        return marked(value, default=True) if default and isinstance(value, tuple) else value

    def item(self, node: ast.Subscript, scope: dict[str, Any]) -> Any:
        """Evaluate an element of a dict."""
        holder, key = self.value(node.value, scope), self.value(node.slice, scope)
        if isinstance(holder, dict) and isinstance(key, tuple):
            return holder.get(known(key) or "", UNKNOWN)
        return UNKNOWN

    def tested(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """Evaluate a condition that is used as a value."""
        truth, default = self.truth(node, scope)
        return UNKNOWN if truth is None or default else truth

    def written(self, node: ast.expr, pieces: list[Any]) -> Value:
        """Return a string literal, cut so that every word has its own offset; comments between parts are skipped."""
        return join(self._written(node, pieces))

    def _written(self, node: ast.expr, pieces: list[Any]) -> Iterator[Value]:
        path, start = self.source.path, self.offset(node)
        segment = re.sub(
            rb"(?m)^[ \t]*#.*$", lambda found: b" " * len(found[0]), self.source.data[start : self.end(node)]
        )
        at = 0
        for piece in pieces:
            if isinstance(piece, tuple):
                yield piece
                continue
            for word in re.findall(r"\s*\S+\s*|\s+", piece):
                begin = segment.find(word.strip().encode("utf-8", "surrogatepass"), at) if word.strip() else -1
                at = begin if begin >= 0 else at
                yield (Fragment(word, path, start + at),)

    def add(self, node: ast.BinOp, scope: dict[str, Any]) -> Any:
        """Concatenate; an unknown side of a string stays as an unknown part of it."""
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, tuple) and not isinstance(right, tuple):
            right = self.text(right, node.right)
        if isinstance(right, tuple) and not isinstance(left, tuple):
            left = self.text(left, node.left)
        return add(left, right)

    def items(self, node: ast.List | ast.Tuple, scope: dict[str, Any]) -> Any:
        """Evaluate a list; a starred unknown makes an unknown element. Raises TooLong."""
        found: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.value(element.value, scope)
                found += inner if isinstance(inner, list) else [self.unknown(element.value)]
            else:
                found.append(self.value(element, scope))
            if len(found) > MAX_FRAGMENTS:
                raise TooLong
        return found

    def mapping(self, node: ast.Dict, scope: dict[str, Any]) -> dict[str, Any]:
        """Evaluate a dict with string keys; parts that are unknown are left out."""
        found: dict[str, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is None:
                found.update(value if isinstance(value, dict) else {})
                continue
            name = self.value(key, scope)
            if isinstance(name, tuple) and (text := known(name)) is not None:
                found[text] = self.text(value, item) if not isinstance(value, (dict, list)) else value
        return found

    def truth(self, node: ast.expr, scope: dict[str, Any]) -> tuple[bool | None, bool]:
        """Return whether a condition holds (None when unknown), and whether that rests on the environment's default."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth, default = self.truth(node.operand, scope)
            return (None if truth is None else not truth), default
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value, scope) for value in node.values]
            stop = isinstance(node.op, ast.Or)
            default = any(one for _, one in parts)
            if any(truth is stop for truth, _ in parts):
                return stop, default
            return (None if any(truth is None for truth, _ in parts) else not stop), default
        if isinstance(node, ast.Compare):
            return self.compared(node, scope)
        return _truth(self.value(node, scope))

    def compared(self, node: ast.Compare, scope: dict[str, Any]) -> tuple[bool | None, bool]:
        """Decide ==, !=, is and is not over known values."""
        op = node.ops[0]
        if len(node.ops) > 1 or not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            return None, False
        sides = [self.value(node.left, scope), self.value(node.comparators[0], scope)]
        default = any(part.default for side in sides if isinstance(side, tuple) for part in side)
        plain = [known(side) if isinstance(side, tuple) else side for side in sides]
        if any(isinstance(side, (Unknown, Guess, list, dict)) for side in sides):
            return None, False
        if any(text is None and isinstance(side, tuple) for text, side in zip(plain, sides, strict=True)):
            return None, False
        return (plain[0] == plain[1]) is isinstance(op, (ast.Eq, ast.Is)), default

    def call(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        """Evaluate a call: a function of this file, a call that starts something, or a library function on strings."""
        args = [self.value(arg, scope) for arg in node.args if not isinstance(arg, ast.Starred)]
        keywords = {word.arg: self.value(word.value, scope) for word in node.keywords if word.arg}
        done, result = self.followed(node, args, keywords)
        return result if done else self.builtin(node, args, keywords, scope)

    def followed(self, node: ast.Call, args: list[Any], keywords: dict[str, Any]) -> tuple[bool, Any]:
        """Deal with a call that the walk itself follows; return whether it did and the result."""
        del node, args, keywords
        return False, UNKNOWN

    def builtin(self, node: ast.Call, args: list[Any], keywords: dict[str, Any], scope: dict[str, Any]) -> Any:
        """Evaluate the few library functions that launchers use on strings.

        slime's get_default_wandb_args returns W&B flags, or nothing where the environment has no key.
        """
        name = called(node)
        method = isinstance(node.func, ast.Attribute)
        if name == "join" and args:
            return self.join(node, args, scope)
        if name == "get_default_wandb_args":
            return (Fragment("--use-wandb ", self.source.path, self.offset(node), sure=False),)
        if method and name in ("append", "extend", "update") and len(args) == 1:
            return self.grow(node, args[0], scope)
        if name in ("get", "getenv", "get_bool_env_var") and args and isinstance(args[0], tuple):
            return _environment(name, [*args, *keywords.values()])
        if name in ("int", "bool", "str", "quote", "Path", "strip", "dedent") and len(args) <= 1:
            inner = (
                args[0]
                if args
                else self.value(node.func.value, scope)
                if isinstance(node.func, ast.Attribute)
                else UNKNOWN
            )
            return _cast(name, inner)
        return UNKNOWN

    def join(self, node: ast.Call, args: list[Any], scope: dict[str, Any]) -> Any:
        """Evaluate `" ".join([...])` and os.path.join(...)."""
        if len(args) == 1 and isinstance(args[0], list) and isinstance(node.func, ast.Attribute):
            glue = self.value(node.func.value, scope)
            if not isinstance(glue, tuple):
                return UNKNOWN
            return join((*(glue if index else ()), *self.text(item, node)) for index, item in enumerate(args[0]))
        if not all(isinstance(arg, tuple) for arg in args):
            return UNKNOWN
        joined: Value = args[0]
        for arg in args[1:]:
            slash = "" if show(joined).endswith("/") else "/"
            joined = join((joined, (Fragment(slash, self.source.path, self.offset(node)),), arg))
        return joined

    def grow(self, node: ast.Call, more: Any, scope: dict[str, Any]) -> None:
        """Carry out append, extend and update on a known list or dict."""
        target = node.func
        holder = self.value(target.value, scope) if isinstance(target, ast.Attribute) else UNKNOWN
        if isinstance(holder, list):
            added = [more] if called(node) == "append" else more if isinstance(more, list) else [self.unknown(node)]
            if len(holder) + len(added) > MAX_FRAGMENTS or more is holder:
                holder[:] = [self.unknown(node, TOO_LONG)]
                return
            holder += [marked(one, sure=False) if self.unsure and isinstance(one, tuple) else one for one in added]
        elif isinstance(holder, dict) and isinstance(more, dict):
            holder.update(more)


def either(one: Any, other: Any) -> Any:
    """Return what is known of a value that is `one` or `other`: all words of both strings.

    They are not sure, but for the flags that both begin with.
    """
    if one is other or one == other:
        return one
    if not isinstance(one, tuple) or not isinstance(other, tuple) or len(one) + len(other) > MAX_FRAGMENTS:
        return UNKNOWN
    if one[: len(other)] == other:
        return one
    if other[: len(one)] == one:
        return other
    same = _common_flags(one, other)
    return (*one[:same], *marked(one[same:], sure=False), *marked(other[same:], sure=False))


def _common_flags(one: Value, other: Value) -> int:
    """Return how many fragments two strings begin with in common, up to where both go on with a new flag."""
    pairs = zip(one, other, strict=False)
    most = next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other)))
    for count in range(most, 0, -1):
        ahead, nexts = one[count - 1].text or "", (one[count].text or "", other[count].text or "")
        if ahead[-1:].isspace() and all(text.startswith("--") for text in nexts):
            return count
    return 0


def add(left: Any, right: Any) -> Any:
    """Return the sum of two strings, lists or numbers; UNKNOWN for anything else. Raises TooLong."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return join((left, right))
    if isinstance(left, list) and isinstance(right, list):
        if len(left) + len(right) > MAX_FRAGMENTS:
            raise TooLong
        return [*left, *right]
    if type(left) is int and type(right) is int:
        return left + right if abs(left + right) < MAX_INT else UNKNOWN
    return UNKNOWN


def _cast(name: str, inner: Any) -> Any:
    if name in ("quote", "str", "Path", "strip", "dedent"):
        return inner if isinstance(inner, (tuple, int)) else UNKNOWN
    if isinstance(inner, Guess):
        return inner
    if isinstance(inner, tuple):
        text, default = known(inner), any(part.default for part in inner)
        if text is None or (name == "int" and not re.fullmatch(r"-?\d{1,18}", text.strip())):
            return UNKNOWN
        number = int(text) if name == "int" else int(bool(text))
        return Guess(bool(number)) if default else number
    return int(inner) if isinstance(inner, (bool, int)) else UNKNOWN


def called(node: ast.Call) -> str:
    """Return the last part of the name that is called."""
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _truth(value: Any) -> tuple[bool | None, bool]:
    if isinstance(value, Unknown):
        return None, False
    if isinstance(value, Guess):
        return value.truth, True
    if isinstance(value, tuple):
        text = known(value)
        return (None if text is None else bool(text)), any(part.default for part in value)
    return bool(value), False


def _environment(name: str, args: list[Any]) -> Any:
    """Return the default of a variable of the environment, marked as one."""
    fallback = args[1] if len(args) > 1 else UNKNOWN
    if name == "get_bool_env_var":
        return Guess(isinstance(fallback, tuple) and known(fallback) in ("1", "true"))
    return marked(fallback, default=True) if isinstance(fallback, tuple) else UNKNOWN


_RULES: dict[type[ast.expr], Callable[..., Any]] = {
    ast.Constant: Expressions.constant,
    ast.JoinedStr: Expressions.formatted,
    ast.Name: Expressions.name,
    ast.BinOp: Expressions.binary,
    ast.List: Expressions.items,
    ast.Tuple: Expressions.items,
    ast.Dict: Expressions.mapping,
    ast.IfExp: Expressions.chosen,
    ast.Subscript: Expressions.item,
    ast.Call: Expressions.call,
    ast.Compare: Expressions.tested,
    ast.BoolOp: Expressions.tested,
    ast.UnaryOp: Expressions.tested,
}
"""How a kind of expression is evaluated; any other is unknown."""

"""Values of a bash script that is read and never run: fragments of text that know where they were written.

A value is a tuple of fragments, because a word like `${BASE}/ckpt` is partly known, and because a flag that
reaches a command through an array or a string must still be cited at the line where it stands. Splitting,
parameter operations and arithmetic follow the bash manual ("Shell Expansions"); pathname expansion is left out, as
it depends on the machine.
"""

from __future__ import annotations

import ast
import fnmatch
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Fragment:
    """A piece of a value.

    text: None when unknown. offset: bytes in `path` where it is written. split: the result of an unquoted
    expansion, so blanks in it separate words. end: a boundary between two words of "${X[@]}". sure, default,
    reason: see launch_model.Token.
    """

    text: str | None
    path: str
    offset: int
    shown: str = ""
    split: bool = False
    end: bool = False
    sure: bool = True
    default: bool = False
    reason: str = ""


Value = tuple[Fragment, ...]


def unknown_value(path: str, offset: int, shown: str, reason: str) -> Value:
    """Return a value that only running the script could tell."""
    return (Fragment(None, path, offset, shown=shown, reason=reason),)


def literal(text: str, path: str, offset: int) -> Value:
    """Return text written at `offset`."""
    return (Fragment(text, path, offset),)


def known(value: Iterable[Fragment]) -> str | None:
    """Return the whole text of a value, or None when a part is unknown."""
    parts = []
    for fragment in value:
        if fragment.text is None:
            return None
        parts.append(fragment.text)
    return "".join(parts)


def show(value: Iterable[Fragment]) -> str:
    """Return the text with unknown parts spelled as they are written."""
    return "".join(fragment.shown if fragment.text is None else fragment.text for fragment in value)


def marked(
    value: Iterable[Fragment], *, sure: bool | None = None, default: bool | None = None, split: bool | None = None
) -> Value:
    """Return the value with the given marks on every fragment; a mark that is None stays as it is."""
    return tuple(
        replace(
            fragment,
            sure=fragment.sure if sure is None else sure,
            default=fragment.default if default is None else default,
            split=fragment.split if split is None else split,
        )
        for fragment in value
    )


def fields(value: Value) -> list[Value]:
    """Split a value into words as bash does: at boundaries and at blanks of unquoted expansions."""
    words: list[Value] = []
    current: list[Fragment] | None = None
    for fragment in value:
        if fragment.end:
            if current is not None:
                words.append(tuple(current))
            current = None
        elif not fragment.split or fragment.text is None:
            current = [*(current or ()), fragment]
        else:
            at = 0
            for piece in re.split(r"([ \t\n]+)", fragment.text):
                if piece and piece[0] in " \t\n":
                    if current is not None:
                        words.append(tuple(current))
                    current = None
                elif piece:
                    offset = fragment.offset + len(fragment.text[:at].encode("utf-8", "replace"))
                    current = [*(current or ()), replace(fragment, text=piece, offset=offset)]
                at += len(piece)
    if current is not None:
        words.append(tuple(current))
    return words


def boundary(path: str, offset: int) -> Fragment:
    """Return the boundary between two words of an array expansion."""
    return Fragment("", path, offset, end=True)


def strip_pattern(text: str, op: str, pattern: str) -> str:
    """Apply ${X#p}, ${X##p}, ${X%p} or ${X%%p}."""
    match = re.compile(fnmatch.translate(pattern)).match
    lengths: Iterable[int] = range(len(text) + 1)
    if op in ("##", "%"):  # longest prefix, or shortest suffix seen as the longest kept part
        lengths = reversed(range(len(text) + 1))
    for cut in lengths:
        if op[0] == "#" and match(text[:cut]):
            return text[cut:]
        if op[0] == "%" and match(text[cut:]):
            return text[:cut]
    return text


def replace_pattern(text: str, pattern: str, new: str, every: bool) -> str | None:
    """Apply ${X/p/n} or ${X//p/n} for a pattern without wildcards; None for one with wildcards."""
    if not pattern or any(letter in pattern for letter in "*?["):
        return None
    return text.replace(pattern, new, -1 if every else 1)


def _small(number: int, limit: int = 64) -> int:
    """Return the number. Raises OverflowError for one that is not from 0 to below `limit`."""
    if not 0 <= number < limit:
        raise OverflowError
    return number


def _wide(number: int) -> int:
    """Return the number. Raises OverflowError where bash's 64 bits would wrap."""
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError
    return number


_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: int(a / b) if abs(a) < 1 << 52 else a // b,
    ast.Mod: lambda a, b: a - b * int(a / b) if abs(a) < 1 << 52 else a % b,
    ast.LShift: lambda a, b: a << _small(b),
    ast.RShift: lambda a, b: a >> _small(b),
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Pow: lambda a, b: _small(a, 1 << 16) ** _small(b),
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def arithmetic(text: str, lookup: Callable[[str], str | None]) -> int | None:
    """Evaluate an integer expression of bash; None when a name is unknown or the form is not supported.

    `lookup` gives the text of a variable, None when unknown. Sums, products, shifts, comparisons, && and || are
    supported.
    """
    plain = re.sub(r"\$\{?(\w+)\}?", r"\1", text).replace("&&", " and ").replace("||", " or ")
    plain = re.sub(r"(?<!/)/(?!/)", "//", plain)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
        return _arithmetic(tree, lookup)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, MemoryError, RecursionError, TypeError):
        return None


def _arithmetic(  # noqa: PLR0911 - one return for each kind of expression
    node: ast.expr, lookup: Callable[[str], str | None]
) -> int | None:
    if isinstance(node, ast.Constant):
        return _wide(node.value) if type(node.value) is int else None
    if isinstance(node, ast.Name):
        text = lookup(node.id)
        return None if text is None else _wide(int(text[:64] or "0"))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _arithmetic(node.operand, lookup)
        return None if value is None else -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BoolOp):
        parts = [_arithmetic(part, lookup) for part in node.values]
        if None in parts:
            return None
        return int(all(parts) if isinstance(node.op, ast.And) else any(parts))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _arithmetic(node.left, lookup), _arithmetic(node.right, lookup)
        return None if left is None or right is None else _wide(_BINARY[type(node.op)](left, right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left, right = _arithmetic(node.left, lookup), _arithmetic(node.comparators[0], lookup)
        return None if left is None or right is None else int(_COMPARE[type(node.ops[0])](left, right))
    return None

"""Reads a bash script as a syntax tree and follows its assignments, without running anything.

slime's launch scripts begin with `pkill -9 python`, so they must never be executed. This reader walks the tree of
tree-sitter-bash: assignments, arrays, `source`, functions, loops with a known count and conditions over known
values are followed; a branch whose condition is unknown is walked as well, with everything it sets marked as not
sure. Invariant: what only the running script could know (environment, output of commands) becomes an unknown value
with a reason, never a guess.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from probes.readers.bash_assign import assign, declare, set_scalar, unset
from probes.readers.bash_scope import Scope
from probes.readers.bash_tree import Source, parse
from probes.readers.bash_values import Value, fields, known, show, unknown_value
from probes.readers.bash_walk import MAX_DEPTH, MAX_LOOP, MAX_STEPS, Command, Script, Walk
from probes.readers.bash_words import Words
from probes.readers.value_limits import Stop

if TYPE_CHECKING:
    from tree_sitter import Node

_MODEL_SCRIPT = re.compile(r"scripts/models/[\w.-]+\.sh$")
"""A model script of the slime repository; where the launch script was written for, that lies elsewhere."""
_PASSED_OVER = frozenset({"comment", "test_command", "heredoc_redirect", "file_redirect", "herestring_redirect"})


def read_script(path: str, data: bytes, variables: dict[str, Value] | None = None) -> Script:
    """Walk the script `data` that is called `path`.

    `variables` are set beforehand. Never raises for hostile input: what cannot be followed is a gap.
    """
    script = Script()
    walk = Walk(script, Scope(dict(variables or {}), {}, path))
    _file(walk, path, data)
    script.exports = {
        name: value for name in walk.scope.exported if (value := walk.scope.scalars.get(name)) is not None
    }
    return script


def _file(walk: Walk, path: str, data: bytes) -> None:
    if path in walk.script.sources:
        return
    source = Source(path, data)
    walk.script.sources[path] = source
    outer, walk.scope.file = walk.scope.file, path
    try:
        _children(walk, source, parse(data))
    except (Stop, RecursionError):
        walk.script.gaps.append((path, "the script is too long or too deep to follow to its end", path, 0))
    finally:
        walk.scope.file = outer


_ASKING = frozenset({"test", "grep", "egrep", "fgrep", "command", "which", "type", "pgrep", "diff", "cmp"})
"""Commands that are run to know something: what stands behind their `&&` may not run."""


def _children(walk: Walk, source: Source, node: Node) -> None:
    for child in node.named_children:
        _statement(walk, source, child)


def _statement(walk: Walk, source: Source, node: Node) -> None:
    walk.steps += 1
    if walk.steps > MAX_STEPS or walk.depth > MAX_DEPTH:
        raise Stop
    walk.depth += 1
    try:
        if node.type not in _PASSED_OVER:
            _STATEMENTS.get(node.type, _children)(walk, source, node)
    finally:
        walk.depth -= 1


def _case(walk: Walk, source: Source, node: Node) -> None:
    for item in node.named_children:
        if item.type == "case_item":
            inside = (n for i, n in enumerate(item.children) if item.field_name_for_child(i) != "value")
            _maybe(walk, source, list(inside))


def _define(walk: Walk, source: Source, node: Node) -> None:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        walk.scope.functions[source.text(name)] = (source, body)


def _error(walk: Walk, source: Source, node: Node) -> None:
    why = "this is not bash that the reader understands"
    walk.script.gaps.append((source.text(node)[:80], why, source.path, node.start_byte))
    _children(walk, source, node)


def _command(walk: Walk, source: Source, node: Node) -> None:
    words = Words(walk.scope, source)
    env: dict[str, Value] = {}
    expanded: list[Value] = []
    for index, child in enumerate(node.children):
        if child.type == "variable_assignment":
            target, value = child.child_by_field_name("name"), child.child_by_field_name("value")
            if target is not None:
                env[source.text(target)] = words.word(value) if value is not None else ()
        elif node.field_name_for_child(index) in ("name", "argument") or child.type in ("command_name", "word"):
            expanded += fields(words.word(child))
    if not expanded:
        return
    name = known(expanded[0]) or ""
    builtin = _BUILTINS.get(name)
    if builtin is not None and builtin(walk, source, expanded, node.start_byte):
        return
    if name in walk.scope.functions and walk.depth < MAX_DEPTH // 2:
        _call(walk, name, expanded)
        return
    command = Command(tuple(expanded), env, node.start_byte, source.path, not walk.unsure, bool(walk.loops))
    walk.script.commands.append(command)


def _printf(walk: Walk, source: Source, words: list[Value], offset: int) -> bool:
    if len(words) < 4 or known(words[1]) != "-v":
        return False
    text = Words(walk.scope, source).printf(words[3:], offset)
    set_scalar(walk, source, known(words[2]) or "", text, offset)
    return True


def _read(walk: Walk, source: Source, words: list[Value], offset: int) -> bool:
    for word in words[1:]:
        name = known(word) or ""
        if name.isidentifier():
            value = unknown_value(source.path, offset, f"${{{name}}}", "it is read while the script runs")
            set_scalar(walk, source, name, value, offset)
    return True


def _eval(walk: Walk, source: Source, words: list[Value], offset: int) -> bool:
    if all(known(word) is not None for word in words) and any(".py" in show(word) for word in words):
        return False  # a training command in a string that is known: read as `bash -c` is
    text = " ".join(map(show, words))[:80]
    walk.script.gaps.append((text, "eval builds commands while the script runs", source.path, offset))
    return True


def _cd(walk: Walk, source: Source, words: list[Value], offset: int) -> bool:
    del source, offset
    target = known(words[-1]) or ""
    walk.scope.folder = target if os.path.isabs(target) else None
    return True


def _call(walk: Walk, name: str, expanded: list[Value]) -> None:
    source, body = walk.scope.functions[name]
    outer = walk.scope.positional
    walk.scope.positional = expanded
    try:
        _statement(walk, source, body)
    finally:
        walk.scope.positional = outer


def _above(folder: str, tail: str) -> Iterator[str]:
    """Yield where `tail` would stand in `folder` and the folders above it: the repository lies elsewhere here."""
    for _ in range(4):
        yield os.path.join(folder, tail)
        folder = os.path.dirname(folder)


def _source(walk: Walk, source: Source, words: list[Value], offset: int) -> bool:
    if len(words) < 2:
        return True
    shown, path = show(words[1]), known(words[1])
    if path is None:
        walk.script.gaps.append(
            (shown, "the path of the sourced file is only known when the script runs", source.path, offset)
        )
        return True
    folder = os.path.dirname(walk.script.sources[next(iter(walk.script.sources))].path)
    tried = (
        [path]
        if os.path.isabs(path)
        else [os.path.join(walk.scope.folder or folder, path), os.path.join(os.path.dirname(source.path), path)]
    )
    model = _MODEL_SCRIPT.search(path)
    if model is not None and not os.path.isdir(path[: model.start()] or "."):
        tried += list(_above(os.path.abspath(folder), model[0]))
    for candidate in tried:
        try:
            with open(candidate, "rb") as file:
                data = file.read(Source.LIMIT)
        except (OSError, ValueError):
            continue
        _file(walk, os.path.normpath(candidate), data)
        return True
    walk.script.gaps.append((shown, "the sourced file is not there", source.path, offset))
    return True


def _branches(node: Node) -> Iterator[tuple[list[Node], list[Node]]]:
    """Yield (condition nodes, body nodes) of an if statement; the else branch has no condition."""
    head: list[Node] = []
    body: list[Node] = []
    in_body = False
    for child in node.children:
        if child.type == "then":
            in_body = True
        elif child.type == "elif_clause":
            yield head, body
            yield from _branches(child)
            head, body = [], []
        elif child.type == "else_clause":
            if head or body:
                yield head, body
            head, body = [], []
            yield [], [part for part in child.children if part.type != "else"]
        elif child.is_named and child.type != "comment":
            (body if in_body else head).append(child)
    if head or body:
        yield head, body


def _if(walk: Walk, source: Source, node: Node) -> None:
    branches = list(_branches(node))
    for index, (conditions, body) in enumerate(branches):
        truth: bool | None = True
        if conditions:
            _run_conditions(walk, source, conditions)
            truth = Words(walk.scope, source).truth(conditions[0]) if len(conditions) == 1 else None
        if truth is True:
            for child in body:
                _statement(walk, source, child)
            return
        if truth is None:  # from the first unknown condition on, every branch may be the one that runs
            for _, rest in branches[index:]:
                _maybe(walk, source, rest)
            return


def _run_conditions(walk: Walk, source: Source, nodes: list[Node]) -> None:
    """Follow the commands that a condition runs, as in `if ! ray job submit ...; then`."""
    for node in nodes:
        if node.type in ("command", "negated_command", "pipeline", "list", "redirected_statement"):
            _statement(walk, source, node)


def _maybe(walk: Walk, source: Source, nodes: list[Node]) -> None:
    walk.unsure += 1
    try:
        for child in nodes:
            if child.is_named:
                _statement(walk, source, child)
    finally:
        walk.unsure -= 1


def _list(walk: Walk, source: Source, node: Node) -> None:
    """Follow `a && b` and `a || b`: the right side depends on the left when the left is a test."""
    left, right = node.children[0], node.children[-1]
    op = node.children[1].type if len(node.children) > 2 else ""
    _statement(walk, source, left)
    truth = Words(walk.scope, source).truth(left)
    tested = left.type in ("test_command", "negated_command", "list") or _arithmetic_test(left) or _asks(source, left)
    if not tested:
        if op == "||":
            _maybe(walk, source, [right])
        else:
            _statement(walk, source, right)
    elif truth is None:
        _maybe(walk, source, [right])
    elif truth is (op == "&&"):
        _statement(walk, source, right)


def _asks(source: Source, node: Node) -> bool:
    """Whether a command, or the last one of a pipeline, is run for its answer, as `grep -q` is."""
    if node.type in ("pipeline", "redirected_statement") and node.named_children:
        return _asks(source, node.named_children[-1 if node.type == "pipeline" else 0])
    name = node.child_by_field_name("name") if node.type == "command" else None
    return name is not None and source.text(name) in _ASKING


def _arithmetic_test(node: Node) -> bool:
    return node.type == "compound_statement" and bool(node.children) and node.children[0].type == "(("


def _loop(walk: Walk, source: Source, node: Node) -> None:
    body = [child for child in node.named_children if child.type in ("do_group", "compound_statement")][-1:]
    if node.type == "c_style_for_statement" and _counted(walk, source, node, body):
        return
    if node.type == "for_statement" and _each(walk, source, node, body):
        return
    if node.type == "while_statement":
        _run_conditions(walk, source, [child for child in node.named_children if child not in body])
    walk.loops += 1
    _maybe(walk, source, body)
    walk.loops -= 1


def _counted(walk: Walk, source: Source, node: Node, body: list[Node]) -> bool:
    """Follow `for ((i=0; i<N; i++))`; return whether it came to its end."""
    words = Words(walk.scope, source)
    start, condition, update = (node.child_by_field_name(name) for name in ("initializer", "condition", "update"))
    if condition is None or not words.counter(start, start=True):
        return False
    for _ in range(MAX_LOOP):
        again = words.number(source.text(condition))
        if not again:
            return again == 0
        for child in body:
            _statement(walk, source, child)
        if not words.counter(update):
            return False
    return False


def _each(walk: Walk, source: Source, node: Node, body: list[Node]) -> bool:
    """Follow `for X in ...` over known words; return whether they are known."""
    target = node.child_by_field_name("variable")
    if target is None:
        return False
    values = [child for index, child in enumerate(node.children) if node.field_name_for_child(index) == "value"]
    items, name = Words(walk.scope, source).fields_of(values), source.text(target)
    if not items or len(items) > MAX_LOOP or any(known(item) is None for item in items):
        reason = "the loop runs over values known only then"
        walk.scope.scalars[name] = unknown_value(source.path, node.start_byte, f"${{{name}}}", reason)
        return False
    for item in items:
        set_scalar(walk, source, name, item, node.start_byte)
        for child in body:
            _statement(walk, source, child)
    return True


_STATEMENTS: dict[str, Callable[[Walk, Source, Node], object]] = {
    "variable_assignment": assign,
    "declaration_command": declare,
    "command": _command,
    "unset_command": unset,
    "if_statement": _if,
    "list": _list,
    "for_statement": _loop,
    "c_style_for_statement": _loop,
    "while_statement": _loop,
    "case_statement": _case,
    "function_definition": _define,
    "ERROR": _error,
}
"""How a kind of node is followed; the children of all others (pipelines, groups, subshells) are walked in order."""

_BUILTINS: dict[str, Callable[[Walk, Source, list[Value], int], bool]] = {
    "source": _source,
    ".": _source,
    "printf": _printf,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "eval": _eval,
    "cd": _cd,
}
"""Commands that change the walk itself; each returns whether it dealt with the command."""

"""What is certain of conditions and of command substitutions, without running any command.

`[ … ]`, `[[ … ]]` and `(( … ))` are decided only over values that the script itself fixes: the default of a
variable that the environment may set decides nothing. Of commands, only those are answered whose output follows
from their words: echo, printf, seq, dirname, basename, `cd DIR && pwd`, and cat of a here-document.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from probes.readers.bash_values import Fragment, Value, known, literal
from probes.readers.bash_words import MAX_SEQUENCE, Words
from probes.readers.value_limits import join

if TYPE_CHECKING:
    from tree_sitter import Node

_FILES = {"-f": os.path.isfile, "-d": os.path.isdir, "-e": os.path.exists}


def _certain(words: Words, node: Node) -> str | None:
    value = words.word(node)
    return None if any(part.default or not part.sure for part in value) else known(value)


def truth(words: Words, node: Node) -> bool | None:  # noqa: PLR0911 - one return for each kind of condition
    """Return whether the condition `node` holds, None when that is not certain."""
    kind = node.type
    if kind in ("test_command", "parenthesized_expression"):
        inner = node.named_children
        return truth(words, inner[0]) if len(inner) == 1 else None
    if kind == "negated_command" or (kind == "unary_expression" and node.children[0].type == "!"):
        inner_truth = truth(words, node.named_children[-1]) if node.named_children else None
        return None if inner_truth is None else not inner_truth
    if kind == "compound_statement" and node.children and node.children[0].type == "((":
        text = words.source.text(node)[2:-2]
        number = None if words.rests_on_default(text) else words.number(text)
        return None if number is None else number != 0
    if kind == "list" and len(node.children) == 3:
        return _both(words, node.children[0], node.children[1].type, node.children[2])
    if kind == "unary_expression":
        return _unary(words, node)
    if kind == "binary_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        op = node.child_by_field_name("operator")
        if left is None or right is None or op is None:
            return None
        return _binary(words, left, words.source.text(op), right)
    if kind == "command":
        return {"true": True, ":": True, "false": False}.get(words.source.text(node))
    return None


def _both(words: Words, left: Node, op: str, right: Node) -> bool | None:
    one, other = truth(words, left), truth(words, right)
    if op == "&&":
        return False if False in (one, other) else None if None in (one, other) else True
    if op == "||":
        return True if True in (one, other) else None if None in (one, other) else False
    return None


def _unary(words: Words, node: Node) -> bool | None:
    op, operand = words.source.text(node.children[0]), node.children[-1]
    text = _certain(words, operand)
    if text is None or op in _FILES:  # whether a file exists is a question about another machine
        return None
    return {"-z": text == "", "-n": text != ""}.get(op)


def _binary(words: Words, left: Node, op: str, right: Node) -> bool | None:
    if op in ("&&", "||"):
        return _both(words, left, op, right)
    one, other = _certain(words, left), _certain(words, right)
    if one is None or other is None:
        return None
    if op in ("=", "==", "!="):
        if right.type in ("extglob_pattern", "regex") and any(letter in other for letter in "*?["):
            return None
        return (one == other) is (op != "!=")
    compare = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}.get(op)
    number = (
        words.number(f"({one}) {compare} ({other})")
        if compare and re.fullmatch(r"-?\d+", one) and re.fullmatch(r"-?\d+", other)
        else None
    )
    return None if number is None else bool(number)


def output(words: Words, node: Node) -> Value | None:
    """Return what a command substitution prints, None when only running it could tell; `words` is a subshell's."""
    result: Value | None = None
    for child in node.named_children:
        if child.type == "comment":
            continue
        result = _printed(words, child)
        if result is None:
            return None
    if result is None:
        return None
    return _chomp(result)


def _chomp(value: Value) -> Value:
    """Drop trailing newlines, as bash does with the output of a command."""
    parts = list(value)
    while parts and parts[-1].text is not None:
        text = parts[-1].text.rstrip("\n")
        last = parts.pop()
        if text:
            parts.append(Fragment(text, last.path, last.offset, sure=last.sure, default=last.default))
            break
    return tuple(parts)


def _printed(words: Words, node: Node) -> Value | None:
    if node.type == "variable_assignment":
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return None
        words.scope.scalars[words.source.text(name)] = words.word(value)
        return ()
    if node.type == "list" and len(node.children) == 3 and node.children[1].type == "&&":
        first = _printed(words, node.children[0])
        second = _printed(words, node.children[2])
        return None if first is None or second is None else join((first, second))
    if node.type == "redirected_statement":
        return _redirected(words, node)
    if node.type != "command":
        return None
    return _command(
        words, words.fields_of([child for child in node.named_children if child.type != "variable_assignment"]), node
    )


def _redirected(words: Words, node: Node) -> Value | None:
    body = node.child_by_field_name("body")
    document = next((child for child in node.named_children if child.type == "heredoc_redirect"), None)
    if body is None:
        return None
    if document is None:
        return _printed(words, body)
    if words.source.text(body).strip() != "cat":
        return None
    start = next((child for child in document.children if child.type == "heredoc_start"), None)
    text = next((child for child in document.children if child.type == "heredoc_body"), None)
    if start is None or text is None:
        return None
    begin = words.source.data.find(b"\n", start.end_byte) + 1
    begin = min(begin, text.start_byte) if begin > 0 else text.start_byte
    if words.source.text(start)[:1] in "'\"\\":
        return literal(words.source.slice(begin, text.end_byte), words.source.path, begin)
    return words.gapped(text, begin, text.end_byte, quoted=True)


def _command(  # noqa: PLR0911 - one return for each command
    words: Words, expanded: list[Value], node: Node
) -> Value | None:
    name = known(expanded[0]) if expanded else None
    rest = [word for word in expanded[1:] if known(word) != "--"]
    plain = [known(word) for word in rest]
    if name == "echo":
        blank = literal(" ", words.source.path, node.start_byte)
        return join((*(blank if index else ()), *word) for index, word in enumerate(rest))
    if name == "printf" and rest:
        return words.printf(rest, node.start_byte)
    if name == "cd" and len(plain) == 1:
        words.scope.folder = plain[0] if plain[0] is not None and os.path.isabs(plain[0]) else None
        return () if words.scope.folder else None
    if name == "pwd" and words.scope.folder:
        return literal(os.path.normpath(words.scope.folder), words.source.path, node.start_byte)
    if name in ("dirname", "basename") and len(plain) == 1 and plain[0] is not None:
        stripped = plain[0].rstrip("/") or "/"
        text = (os.path.dirname(stripped) or ".") if name == "dirname" else os.path.basename(stripped)
        return literal(text, words.source.path, node.start_byte)
    if name == "seq" and 1 <= len(plain) <= 3:
        return _sequence(words, plain, node)
    return None


def _sequence(words: Words, plain: list[str | None], node: Node) -> Value | None:
    if not all(text is not None and re.fullmatch(r"-?\d{1,9}", text) for text in plain):
        return None
    numbers = [int(text or 0) for text in plain]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    if step == 0 or abs(numbers[-1] - first) // abs(step) > MAX_SEQUENCE:
        return None
    values = range(first, numbers[-1] + (1 if step > 0 else -1), step)
    return literal("\n".join(map(str, values)), words.source.path, node.start_byte)

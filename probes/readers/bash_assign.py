"""Follows what sets variables in a bash script: assignments, arrays, export, declare and unset.

Invariant: under a condition that cannot be decided a value is kept as not certain, and two different values make an
unknown one; a value that grows beyond its limits becomes unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.readers.bash_tree import Source
from probes.readers.bash_values import Value, literal, marked, show, unknown_value
from probes.readers.bash_walk import Walk
from probes.readers.bash_words import Words
from probes.readers.value_limits import MAX_FRAGMENTS, TOO_LONG, TooLong, join

if TYPE_CHECKING:
    from tree_sitter import Node


def assign(walk: Walk, source: Source, node: Node) -> str:
    """Carry out `NAME=value`, `NAME+=value` and their forms with arrays; return the name, "" for an element."""
    name_node, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
    words, scope = Words(walk.scope, source), walk.scope
    append = any(child.type == "+=" for child in node.children)
    if name_node is not None and name_node.type == "subscript":
        _assign_element(walk, source, name_node, value_node)
        return ""
    name = source.text(name_node) if name_node is not None else ""
    if value_node is not None and value_node.type == "array":
        items = words.fields_of([child for child in value_node.named_children if child.type != "comment"])
        _assign_array(walk, source, name, items, node.start_byte, append=append)
        return name
    value = words.word(value_node) if value_node is not None else literal("", source.path, node.start_byte)
    value = marked(value, split=False)
    if append and name in scope.arrays:
        first = scope.arrays[name][:1] or [()]
        scope.arrays[name] = [_grown(walk, source, name, first[0], value, node.start_byte), *scope.arrays[name][1:]]
        return name
    if append:
        value = _grown(walk, source, name, scope.scalars.get(name, ()), value, node.start_byte)
    set_scalar(walk, source, name, value, node.start_byte)
    return name


def _grown(walk: Walk, source: Source, name: str, before: Value, more: Value, offset: int) -> Value:
    try:
        value = join((before, more))
    except TooLong:
        value = unknown_value(source.path, offset, f"${{{name}}}", TOO_LONG)
    walk.scope.budget.handle(value)
    return value


def _assign_array(walk: Walk, source: Source, name: str, items: list[Value], offset: int, *, append: bool) -> None:
    scope = walk.scope
    if walk.unsure:
        items = [marked(item, sure=False) for item in items]
    before = scope.arrays.get(name, []) if append or walk.unsure else []
    count = sum(map(len, before)) + sum(map(len, items))
    scope.budget.spend(count)
    if count > MAX_FRAGMENTS:
        items, before = [unknown_value(source.path, offset, f"${{{name}[@]}}", TOO_LONG)], []
    elif not append:
        before = [marked(item, sure=False) for item in before]
    scope.arrays[name] = [*before, *items]
    scope.scalars.pop(name, None)


def set_scalar(walk: Walk, source: Source, name: str, value: Value, offset: int) -> None:
    """Set a variable; under an unknown condition a second, different value makes it unknown."""
    scope = walk.scope
    if walk.unsure:
        before = scope.scalars.get(name)
        if before is None:
            value = marked(value, default=True)
        elif show(before) != show(value):
            value = unknown_value(
                source.path, offset, f"${{{name}}}", f"{name} is set in different ways by a condition"
            )
    scope.scalars[name] = value
    scope.arrays.pop(name, None)


def _assign_element(walk: Walk, source: Source, target: Node, value_node: Node | None) -> None:
    name_node, index_node = target.child_by_field_name("name"), target.child_by_field_name("index")
    if name_node is None or index_node is None or value_node is None:
        return
    name, words = source.text(name_node), Words(walk.scope, source)
    elements = list(walk.scope.arrays.get(name, []))
    walk.scope.budget.spend(sum(map(len, elements)))
    index = words.number(source.text(index_node))
    value = marked(words.word(value_node), split=False)
    if index is None or walk.unsure or not -len(elements) <= index <= len(elements):
        walk.scope.arrays[name] = [marked(element, sure=False) for element in elements] + [marked(value, sure=False)]
        return
    elements[index : index + 1 or None] = [value]
    walk.scope.arrays[name] = elements


def declare(walk: Walk, source: Source, node: Node) -> None:
    """Carry out export, declare, local and readonly."""
    exporting = node.children[0].type == "export" if node.children else False
    for child in node.named_children:
        name = ""
        if child.type == "variable_assignment":
            name = assign(walk, source, child)
        elif child.type == "variable_name":
            name = source.text(child)
        elif child.type == "word" and source.text(child) in ("-x", "-gx"):
            exporting = True
        if exporting and name:
            walk.scope.exported[name] = None


def unset(walk: Walk, source: Source, node: Node) -> None:
    """Carry out `unset NAME`."""
    for name in node.named_children:
        walk.scope.forget(source.text(name))

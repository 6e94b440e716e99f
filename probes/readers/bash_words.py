"""Expands the words of a bash script: variables, defaults, arrays, quoting and arithmetic.

The order and meaning follow the bash manual, "Shell Expansions". Invariant: an expansion that is not implemented,
that needs the machine or that grows beyond its limits, gives an unknown fragment spelled as in the script; text is
never dropped silently.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.readers.bash_scope import Scope
from probes.readers.bash_tree import Source
from probes.readers.bash_values import (
    Fragment,
    Value,
    arithmetic,
    boundary,
    fields,
    known,
    literal,
    marked,
    replace_pattern,
    strip_pattern,
    unknown_value,
)
from probes.readers.value_limits import MAX_TEXT, TOO_LONG, TooLong, join

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFAULTS = (":-", "-", ":=", "=", ":+", "+", ":?", "?")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\", "a": "\a", "e": "\x1b", "0": "\0"}
MAX_SEQUENCE = 4096
"""Characters of a text that is edited, and items of a sequence."""


@dataclass(frozen=True)
class Words:
    """The expansion of nodes of one source under one scope."""

    scope: Scope
    source: Source

    def _unknown(self, node: Node, reason: str) -> Value:
        return unknown_value(self.source.path, node.start_byte, self.source.text(node)[:200], reason)

    def _literal(self, text: str, offset: int) -> Value:
        return literal(text, self.source.path, offset)

    def word(self, node: Node) -> Value:
        """Return the value of a word outside quotes; expansions in it may be split afterwards. Raises Stop."""
        try:
            value = self._word(node)
        except TooLong:
            value = self._unknown(node, TOO_LONG)
        self.scope.budget.handle(value)
        return value

    def _word(self, node: Node) -> Value:  # noqa: C901, PLR0911 - one return for each kind of word
        kind = node.type
        if kind in ("word", "number", "regex", "extglob_pattern", "variable_name", "test_operator"):
            if node.named_child_count:
                return self.gapped(node, node.start_byte, node.end_byte, quoted=False)
            return self._literal(
                re.sub(r"\\\n", "", self.source.text(node)).replace("\\\\", "\0").replace("\\", "").replace("\0", "\\"),
                node.start_byte,
            )
        if kind == "raw_string":
            return self._literal(self.source.slice(node.start_byte + 1, node.end_byte - 1), node.start_byte + 1)
        if kind == "ansi_c_string":
            text = self.source.slice(node.start_byte + 2, node.end_byte - 1)
            return self._literal(
                re.sub(r"\\(.)", lambda found: _ANSI.get(found[1], found[0]), text, flags=re.DOTALL),
                node.start_byte + 2,
            )
        if kind in ("string", "translated_string"):
            start = node.start_byte + (2 if kind == "translated_string" else 1)
            inner = self.gapped(node, start, max(node.end_byte - 1, start), quoted=True)
            spread = any(part.end for part in inner) or (not inner and re.search(r"[\[$]@", self.source.text(node)))
            return (
                inner if spread else (*self._literal("", start), *inner)
            )  # "${X[@]}" of an empty array is no word at all
        if kind in ("concatenation", "command_name"):
            return join(map(self.word, node.children)) or self._literal(self.source.text(node), node.start_byte)
        if kind in ("simple_expansion", "expansion"):
            return marked(self._expansion(node, quoted=False), split=True)
        if kind == "command_substitution":
            return marked(self._substitution(node), split=True)
        if kind == "arithmetic_expansion":
            return self._arithmetic(node)
        if kind == "process_substitution":
            return self._unknown(node, "a process substitution")
        return self._literal(self.source.text(node), node.start_byte)

    def gapped(self, node: Node, start: int, end: int, *, quoted: bool) -> Value:
        """Expand a node whose literal text lies between its children (strings, here-documents). Raises TooLong."""
        return join(self._gapped(node, start, end, quoted=quoted))

    def _gapped(self, node: Node, start: int, end: int, *, quoted: bool) -> Iterator[Value]:
        at = start
        inner = [
            child
            for child in node.named_children
            if child.type not in ("string_content", "heredoc_content", "word", "string_end")
        ]
        for child in inner:
            if child.start_byte < at or child.end_byte > end:
                continue
            if quoted:
                yield self._quoted_text(at, child.start_byte)
            else:
                yield self._literal(self.source.slice(at, child.start_byte), at)
            if child.type in ("simple_expansion", "expansion"):
                yield marked(self._expansion(child, quoted=quoted), split=not quoted)
            elif child.type == "command_substitution":
                yield self._substitution(child)
            elif child.type == "arithmetic_expansion":
                yield self._arithmetic(child)
            else:
                yield self._quoted_text(child.start_byte, child.end_byte)
            at = child.end_byte
        yield self._quoted_text(at, end) if quoted else self._literal(self.source.slice(at, end), at)

    def _quoted_text(self, start: int, end: int) -> Value:
        """Return text inside double quotes: a backslash escapes only `$`, a backquote, `"`, itself and a newline."""
        parts: list[Fragment] = []
        data, at = self.source.data, start
        for found in re.finditer(rb'\\([$`"\\\n])', data[start:end]):
            begin = start + found.start()
            parts += self._literal(self.source.slice(at, begin), at)
            if found[1] != b"\n":
                parts += self._literal(found[1].decode(), begin + 1)
            at = start + found.end()
        parts += self._literal(self.source.slice(at, end), at)
        return tuple(part for part in parts if part.text)

    def variable(  # noqa: PLR0911 - one return for each kind of name
        self, name: str, offset: int, shown: str, *, quoted: bool = True
    ) -> Value | None:
        """Return the value of a name, None when the script has not set it."""
        scope = self.scope
        if name in ("BASH_SOURCE", "0"):
            return self._literal(os.path.abspath(self.source.path), offset)
        if name == "PWD" and scope.folder:
            return self._literal(scope.folder, offset)
        if name.isdigit() and scope.positional:
            index = int(name)
            return scope.positional[index] if index < len(scope.positional) else None
        if name in ("@", "*"):
            if scope.positional:
                return self._join(scope.positional[1:], offset, star=name == "*", quoted=quoted)
            return unknown_value(self.source.path, offset, shown, "the arguments given to the script")
        if name in scope.arrays:
            elements = scope.arrays[name]
            return elements[0] if elements else None
        return scope.scalars.get(name)

    def _join(self, elements: list[Value], offset: int, *, star: bool, quoted: bool) -> Value:
        if star and quoted:
            separator = (known(self.scope.scalars.get("IFS", literal(" ", "", 0))) or "")[:1]
            between, split = self._literal(separator, offset), None
        else:
            between, split = (boundary(self.source.path, offset),), not quoted
        self.scope.budget.spend(len(elements))
        pieces = (
            (*(between if index else ()), *marked(element, split=split)) for index, element in enumerate(elements)
        )
        return join(pieces)

    def _expansion(self, node: Node, *, quoted: bool) -> Value:  # noqa: PLR0911 - one return for each form
        text = self.source.text(node)
        name, rest, operand = _dissect(text)
        offset = node.start_byte
        if name is None:
            return self._unknown(node, "an expansion that the reader does not know")
        base, _, index = name.partition("[")
        index = index.rstrip("]")
        if text.startswith("${#"):
            elements = self.scope.arrays.get(base)
            value = self.variable(base, offset, text)
            length = (
                len(elements)
                if elements is not None and index in ("@", "*")
                else None
                if value is None
                else len(known(value) or "")
            )
            return (
                self._literal(str(length), offset)
                if length is not None
                else self._unknown(node, f"{base} is not set in the script")
            )
        if index in ("@", "*") and base != "BASH_SOURCE":
            elements = self.scope.arrays.get(base)
            if elements is None:  # an array cannot come from the environment: unset means empty
                scalar = self.scope.scalars.get(base)
                elements = [] if scalar is None else [scalar]
            if not elements and rest in (":-", "-"):
                return self._operand(node, quoted=quoted)
            if not elements and rest in (":+", "+"):
                return ()
            if rest and rest not in _DEFAULTS:
                return self._unknown(node, "an operation on a whole array")
            if rest in (":+", "+"):
                return self._operand(node, quoted=quoted)
            return self._join(elements, offset, star=index == "*", quoted=quoted)
        value = (
            self._element(base, index)
            if index and base != "BASH_SOURCE"
            else self.variable(base, offset, text, quoted=quoted)
        )
        return self._operate(node, base, value, rest, operand, quoted=quoted)

    def _element(self, base: str, index: str) -> Value | None:
        number, elements = self.number(index), self.scope.arrays.get(base, [])
        if number is None or not -len(elements) <= number < len(elements):
            return None
        return elements[number]

    def _operate(self, node: Node, base: str, value: Value | None, op: str, operand: str, *, quoted: bool) -> Value:  # noqa: PLR0911 - one return for each operator
        text = None if value is None else known(value)
        if op in (":-", "-", ":=", "="):
            if value is not None and (text != "" or op in ("-", "=")):
                return value
            operand_value = self._operand(node, quoted=quoted) or self._literal("", node.start_byte)
            return marked(operand_value, default=value is None, split=not quoted)
        if op in (":+", "+"):
            if value is None:
                return self._unknown(node, f"{base} is not set in the script")
            return () if text == "" and op == ":+" else self._operand(node, quoted=quoted)
        if value is None:
            return self._unknown(node, f"{base} is not set in the script")
        if op in ("", ":?", "?"):
            return value
        changed = None if text is None or len(text) > MAX_SEQUENCE else self._change(text, op, self._named(operand))
        return (
            self._unknown(node, f"{base} is changed in a way that is not evaluated")
            if changed is None
            else self._literal(changed, value[0].offset if value else node.start_byte)
        )

    def _named(self, operand: str) -> str:
        """Return an operand with the names in it replaced. Raises TooLong."""
        named = re.sub(r"\$\{?(\w+)\}?", lambda found: known(self.variable(found[1], 0, "") or ()) or found[0], operand)
        if len(named) > MAX_SEQUENCE:
            raise TooLong
        return named

    def _change(self, text: str, op: str, operand: str) -> str | None:
        if op in ("#", "##", "%", "%%"):
            self.scope.budget.spend(len(text) * len(text) // 64)
            return strip_pattern(text, op, operand.strip("\"'"))
        if op in ("/", "//"):
            pattern, _, new = operand.partition("/")
            return replace_pattern(text, pattern, new, op == "//")
        if op in ("^^", ",,") and not operand:
            return text.upper() if op == "^^" else text.lower()
        if op == ":":
            numbers = [self.number(part) for part in operand.split(":")]
            if any(number is None for number in numbers) or len(numbers) > 2:
                return None
            start = numbers[0] or 0
            tail = text[start:]
            return tail if len(numbers) == 1 else tail[: numbers[1]]
        return None

    def _operand(self, node: Node, *, quoted: bool) -> Value:
        """Return the word after `:-` and its like; it is expanded, and it is split where the whole expansion is."""
        parts = join(self._operands(node))
        return marked((part for part in parts if part.text != ""), split=not quoted)

    def _operands(self, node: Node) -> Iterator[Value]:
        after = next((child for child in node.children if child.type in _DEFAULTS), None)
        if after is None:
            return
        at, end = after.end_byte, node.end_byte - 1
        for child in node.children:
            if child.start_byte < after.end_byte or child.end_byte > end:
                continue
            yield self._literal(self.source.slice(at, child.start_byte), at)
            if child.type in ("word", "number") and not child.named_child_count:
                yield self._literal(self.source.text(child), child.start_byte)
            else:
                yield self.word(child)
            at = child.end_byte
        yield self._literal(self.source.slice(at, end), at)

    def _arithmetic(self, node: Node) -> Value:
        text = self.source.text(node)
        number = self.number(text[3:-2] if text.startswith("$((") else text[2:-1])
        if number is None:
            return self._unknown(node, "arithmetic over values that are not known")
        return marked(self._literal(str(number), node.start_byte), default=self.rests_on_default(text))

    def rests_on_default(self, text: str) -> bool:
        """Return whether a name in an expression has its value from the default of an environment variable."""
        return any(
            part.default for name in re.findall(r"[A-Za-z_]\w*", text) for part in self.scope.scalars.get(name, ())
        )

    def number(self, text: str) -> int | None:
        """Return the value of an arithmetic expression, None when unknown."""
        if not text or len(text) > MAX_SEQUENCE:
            return None

        def lookup(name: str) -> str | None:
            value = self.variable(name, 0, "")
            return None if value is None else known(value)

        return arithmetic(text, lookup)

    def counter(self, node: Node | None, *, start: bool = False) -> bool:
        """Carry out `i=0`, `i++`, `i+=2` of a counted loop; return whether it was understood."""
        text = "" if node is None else self.source.text(node).strip()
        if found := re.fullmatch(r"(\w+)\s*(\+\+|--)|(?:(\+\+|--)(\w+))", text):
            name, step = found[1] or found[4], "1" if (found[2] or found[3]) == "++" else "-1"
            number = self.number(f"{name} + {step}")
        elif found := re.fullmatch(r"(\w+)\s*(\+=|-=|=)\s*(.+)", text):
            name = found[1]
            number = self.number(found[3] if found[2] == "=" else f"{name} {found[2][0]} ({found[3]})")
        else:
            return False
        if number is None or (start and "=" not in text):
            return False
        self.scope.scalars[name] = self._literal(str(number), 0)
        return True

    def printf(self, words: list[Value], offset: int) -> Value:
        """Return what printf prints for a format of `%s` and `%d`; values beyond that are unknown."""
        template = known(words[0]) if words else None
        rest = [known(word) for word in words[1:]]
        if sum(len(text or "") for text in rest) > MAX_TEXT:
            return unknown_value(self.source.path, offset, "$(printf)", TOO_LONG)
        if template is None or None in rest or re.search(r"%(?![sd%])", template):
            return unknown_value(self.source.path, offset, "$(printf)", "the output of printf")
        text = re.sub(r"\\(.)", lambda found: _ANSI.get(found[1], found[0]), template)
        values = iter(rest)
        return self._literal(
            re.sub(r"%[sd%]", lambda found: "%" if found[0] == "%%" else str(next(values, "")), text), offset
        )

    def truth(self, node: Node) -> bool | None:
        """Return whether a condition holds, None when it depends on anything that is not certain."""
        from probes.readers.bash_tests import truth

        return truth(self, node)

    def _substitution(self, node: Node) -> Value:
        from probes.readers.bash_tests import output

        if self.source.text(node).startswith("$(("):  # so the grammar reads arithmetic in a here-document
            return self._arithmetic(node)
        value = output(Words(self.scope.copy(), self.source), node)
        if value is None:
            shown = " ".join(self.source.text(node).split())[:80]
            return unknown_value(self.source.path, node.start_byte, shown, "the output of a command")
        return value

    def fields_of(self, nodes: list[Node]) -> list[Value]:
        """Return the words that several nodes expand to. Raises Stop."""
        found: list[Value] = []
        for node in nodes:
            found += fields(self.word(node))
            self.scope.budget.spend(len(found) // 64)
        return found


def _dissect(text: str) -> tuple[str | None, str, str]:
    """Split `${name[index]op operand}` into name with index, operator and raw operand; name None: not understood."""
    if not text.startswith("${"):
        return text[1:], "", ""
    found = re.fullmatch(
        r"\$\{#?([A-Za-z_]\w*(?:\[[^\]]*\])?|[0-9]+|[@*#?$!-])(:-|:=|:\+|:\?|##|%%|//|\^\^|,,|[-=+?#%/^,:])?(.*)\}",
        text,
        re.DOTALL,
    )
    return (found[1], found[2] or "", found[3]) if found else (None, "", "")

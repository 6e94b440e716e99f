"""Bash source as bytes with positions, and its syntax tree.

tree-sitter counts in bytes, and so do citations; text is decoded only where a value is needed. What it misreads is
blanked out byte for byte before it looks: the carriage return of a script that was saved on Windows, and a comment in
backticks (`# so` between the lines of a command), which it takes to swallow the rest of the script.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

from probes.readers.launch_model import Place

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_INLINE_COMMENT = re.compile(rb"`[ \t]*#[^`\n]*`")


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(data: bytes) -> Node:
    """Return the root node of a bash script; broken text gives ERROR nodes, never an exception."""
    unix = data.replace(b"\\\r\n", b" \\\n").replace(b"\r\n", b" \n")
    return _parser().parse(_INLINE_COMMENT.sub(lambda found: b" " * len(found[0]), unix)).root_node


@dataclass(frozen=True)
class Source:
    """A script's bytes under its path."""

    LIMIT: ClassVar[int] = 2 << 20

    path: str
    data: bytes

    @cached_property
    def starts(self) -> list[int]:
        """Return the offsets at which lines start."""
        found = [0]
        at = self.data.find(b"\n")
        while at >= 0:
            found.append(at + 1)
            at = self.data.find(b"\n", at + 1)
        return found

    @cached_property
    def places(self) -> dict[int, Place]:
        """Return the lines that were asked for; many words of one long line share its text."""
        return {}

    def place(self, offset: int) -> Place:
        """Return the line that holds `offset`."""
        index = max(bisect_right(self.starts, offset) - 1, 0)
        if index not in self.places:
            self.places[index] = self._line(index)
        return self.places[index]

    def _line(self, index: int) -> Place:
        start = self.starts[index]
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else len(self.data)
        text = self.data[start:end].decode("utf-8", "replace").rstrip("\r")
        return Place(self.path, index + 1, start, text)

    def text(self, node: Node) -> str:
        """Return the text of a node as it is written."""
        return self.slice(node.start_byte, node.end_byte)

    def slice(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.data[start:end].decode("utf-8", "replace")

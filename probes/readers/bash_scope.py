"""The variables of a bash script while it is walked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from probes.readers.bash_tree import Source
from probes.readers.bash_values import Value
from probes.readers.value_limits import Budget

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass
class Scope:
    """Variables of a walk.

    folder: where `cd` went, None when unknown. file: the script being read. IFS is an ordinary variable.
    """

    scalars: dict[str, Value]
    arrays: dict[str, list[Value]]
    file: str
    exported: dict[str, None] = field(default_factory=dict)
    functions: dict[str, tuple[Source, Node]] = field(default_factory=dict)
    positional: list[Value] = field(default_factory=list)
    folder: str | None = None
    budget: Budget = field(default_factory=Budget)

    def forget(self, name: str) -> None:
        """Unset a variable."""
        self.scalars.pop(name, None)
        self.arrays.pop(name, None)
        self.exported.pop(name, None)

    def copy(self) -> Scope:
        """Return what a subshell sees. Raises Stop."""
        self.budget.spend(len(self.scalars) + len(self.arrays))
        return Scope(
            dict(self.scalars),
            dict(self.arrays),
            self.file,
            dict(self.exported),
            self.functions,
            self.positional,
            self.folder,
            self.budget,
        )

"""The state of a walk over a bash script, and what the walk finds.

The limits bound a walk over hostile text; what lies beyond them is a gap, never a hang.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from probes.readers.bash_scope import Scope
from probes.readers.bash_tree import Source
from probes.readers.bash_values import Value

MAX_STEPS = 30_000
MAX_DEPTH = 60
MAX_LOOP = 2_000


@dataclass(frozen=True)
class Command:
    """A command that the script would run.

    words: after expansion. env: assignments before it. loop: it stands in a loop of unknown length.
    """

    words: tuple[Value, ...]
    env: dict[str, Value]
    offset: int
    path: str
    sure: bool = True
    loop: bool = False


@dataclass
class Script:
    """What walking a script found, in the order of the text."""

    commands: list[Command] = field(default_factory=list)
    exports: dict[str, Value] = field(default_factory=dict)
    gaps: list[tuple[str, str, str, int]] = field(default_factory=list)  # what, why, path, offset
    sources: dict[str, Source] = field(default_factory=dict)


@dataclass
class Walk:
    """The state of one walk; `scope` holds the variables, `script` what was found."""

    script: Script
    scope: Scope
    steps: int = 0
    depth: int = 0
    unsure: int = 0
    loops: int = 0

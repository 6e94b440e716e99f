"""The ways in which a pickled file cannot be read, told apart because each needs another remedy.

A DumpError never reaches the user: probes turn it into a finding, so it is none of the engine's errors. It imports
nothing of the tool, because the child that reads a pickle raises it too.
"""

from __future__ import annotations

from enum import Enum


class Fault(str, Enum):
    """Why a file could not be read.

    The first four are faults of the file. The last three are not: it may be sound, and nothing is known of it.
    """

    TRUNCATED = "truncated"
    EMPTY = "empty"
    UNSAFE = "unsafe"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"
    WRITING = "writing"
    RESOURCES = "resources"


class DumpError(Exception):
    """A pickled file that cannot be read.

    fault: in which way. path: the file. what: the reason without the path. refused: the global it named, if unsafe.
    kind: what the file is or holds instead, one of the keys of `probes.dump_remedies.REMEDIES`; "" when only the fault
    is known.
    """

    def __init__(self, fault: Fault, path: str, what: str, refused: str = "", kind: str = "") -> None:
        super().__init__(f"{path}: {what}")
        self.fault, self.path, self.what, self.refused, self.kind = fault, path, what, refused, kind

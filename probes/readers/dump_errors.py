"""The ways in which a pickled file cannot be read, told apart because each needs another remedy.

A DumpError never reaches the user: probes turn it into a finding, so it is none of the engine's errors.
"""

from __future__ import annotations

from enum import Enum


class Fault(str, Enum):
    """Why a file could not be read."""

    TRUNCATED = "truncated"
    EMPTY = "empty"
    UNSAFE = "unsafe"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


class DumpError(Exception):
    """A pickled file that cannot be read.

    fault: in which way. path: the file. what: the reason without the path. refused: the global it named, if unsafe.
    """

    def __init__(self, fault: Fault, path: str, what: str, refused: str = "") -> None:
        super().__init__(f"{path}: {what}")
        self.fault, self.path, self.what, self.refused = fault, path, what, refused

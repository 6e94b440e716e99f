"""The ways in which a pickled file cannot be read, told apart because each needs another remedy."""

from __future__ import annotations

from enum import Enum

from runbook.errors import EvidenceError


class Fault(str, Enum):
    """Why a file could not be read."""

    TRUNCATED = "truncated"
    EMPTY = "empty"
    UNSAFE = "unsafe"
    FOREIGN = "foreign"
    UNREADABLE = "unreadable"


class DumpError(EvidenceError):
    """A pickled file that cannot be read.

    fault: in which way. path: the file. what: the reason without the path. refused: the global it named, if unsafe.
    """

    def __init__(self, fault: Fault, path: str, what: str, hint: str = "", refused: str = "") -> None:
        super().__init__(f"{path}: {what}", hint)
        self.fault, self.path, self.what, self.refused = fault, path, what, refused

"""Puts the paths of the evidence into the commands of a flow, so that they can be copied as they stand.

The name of a slot in capitals (`LOG`, `HF_CHECKPOINT`) stands for the path of its evidence.
Invariant: a word is replaced only by one path that there is, and that no shell and no quotes around it would read as
anything but a path; else the word stays and a person fills it in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from runbook.evidence import Evidence
from runbook.finding import Citation
from runbook.flow.model import Node

_WORD = re.compile(r"(?<![A-Za-z0-9_$/{.-])[A-Z][A-Z_]+(?![A-Za-z0-9_}])")
_PLAIN = re.compile(r"[A-Za-z0-9_./@%+=:,-]+")


def filled(node: Node, evidence: Evidence, cited: Sequence[Citation] = ()) -> Node:
    """Return a node whose commands name the evidence.

    cited: places that prove what the node is about; of several items of a slot the one cited first is meant.
    """
    if not any(action.command for action in node.actions):
        return node
    actions = tuple(
        msgspec.structs.replace(action, command=fill(action.command, evidence, cited)) if action.command else action
        for action in node.actions
    )
    return node if actions == node.actions else msgspec.structs.replace(node, actions=actions)


def fill(command: str, evidence: Evidence, cited: Sequence[Citation] = ()) -> str:
    """Return a command with the words that stand for evidence replaced by its paths."""
    return _WORD.sub(lambda word: _path(word[0], evidence, cited) or word[0], command)


def _path(word: str, evidence: Evidence, cited: Sequence[Citation]) -> str:
    paths = evidence.paths(word.lower())
    named = [citation.path for citation in cited if citation.path in paths]
    path = named[0] if named else paths[0] if len(paths) == 1 else ""
    return path if _PLAIN.fullmatch(path) and not path.startswith("-") else ""

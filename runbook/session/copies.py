"""The changed copies that experiments ask for: which file is changed, by whom, and where the copy is kept.

The edits that findings propose are kept there too. The originals stay as they are.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import NamedTuple

from runbook.catalog import Catalog
from runbook.changing import Changed, unified
from runbook.errors import EvidenceError, RunbookError, SessionError, UsageError
from runbook.evidence import Evidence
from runbook.finding import Finding
from runbook.flow.model import Change
from runbook.private import write_below
from runbook.session.events import CopyChanged
from runbook.text import visible

DEADLINE = 60.0
"""Seconds that making a changed copy may take: it is read again after each edit."""
FOLDER = "changed"


class Planned(NamedTuple):
    """What is to be changed, and by which function of which package."""

    function: Callable[[str, Change], Changed]
    path: str
    change: Change


def plan(catalog: Catalog, evidence: Evidence, flow_id: str, node: str) -> Planned:
    """Return what to do for an experiment.

    Raises UsageError when the node asks for no change, EvidenceError when the evidence holds nothing to be changed.
    """
    wanted = catalog.flows[flow_id].nodes[node].change
    if wanted is None:
        raise UsageError(f"{flow_id}/{node}: this node asks for no change", "go to an experiment")
    for slot, changer in catalog.changers.items():
        for path in evidence.paths(slot):
            return Planned(changer.change, path, wanted)
    flags = ", ".join(catalog.slots[slot].flag for slot in catalog.changers if slot in catalog.slots)
    raise EvidenceError(f"{flow_id}/{node}: there is no file to change", f"give it with {flags}")


def keep(folder: str, flow_id: str, node: str, made: Changed) -> CopyChanged:
    """Write a copy below the session's folder and return what to record; "" as `folder` keeps the diff alone.

    Raises SessionError when it cannot be written.
    """
    name, path = os.path.basename(made.of), ""
    try:
        with open(made.of, "rb") as file:
            before = file.read().decode("utf-8", "surrogateescape")
        if folder:
            names = (FOLDER, f"{flow_id}.{node}", name)
            path = os.path.join(folder, *names)
            write_below(folder, names, made.text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        where = path or made.of
        raise SessionError(f"{where}: {error.strerror}", "make room or give the file again, then ask again") from error
    diff = visible(unified(before, made.text, name))
    command = submission(made, path, node) if path else ""
    return CopyChanged(flow_id, node, made.of, path, diff, made.notes, made.left, command)


def keep_edits(folder: str, finding: Finding) -> None:
    """Write the edits that a finding proposes into a session's folder; "" keeps none. Raises SessionError."""
    for proposal in finding.proposals if folder else ():
        name = f"{finding.probe}.{os.path.basename(proposal.name)}"
        try:
            write_below(folder, (name,), proposal.diff.encode("utf-8", "surrogateescape"))
        except OSError as error:
            path = os.path.join(folder, name)
            raise SessionError(f"{path}: cannot be written: {error.strerror}", "make room, then ask again") from error


def submission(made: Changed, path: str, node: str) -> str:
    """Return the command that submits the copy at `path`, as its original is submitted; "" when none is known.

    A copy that works only beside its original is put there first, under the name of the experiment.
    """
    if not made.submit:
        return ""
    if not made.beside:
        return shlex.join((*made.submit, path))
    stem, suffix = os.path.splitext(os.path.basename(made.of))
    there = os.path.join(os.path.dirname(made.of), f"{stem}.{node}{suffix}")
    return f"{shlex.join(('cp', path, there))} && {shlex.join((*made.submit, there))}"


def failure(path: str, answer: object) -> RunbookError:
    """Return the error for a copy that could not be made. answer: what the worker ended with."""
    if isinstance(answer, RunbookError):
        return answer
    return EvidenceError(
        f"{path}: the changed copy could not be made: {answer!r}", "change a copy by hand, as the node says"
    )

"""Runs that are attached to experiments: whether they can be what the experiment asks for, and how that is checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from runbook.catalog import Catalog
from runbook.changing import Checked
from runbook.errors import EvidenceError
from runbook.evidence import Evidence, Item
from runbook.flow.model import Change, Flow
from runbook.session.events import RunAttached
from runbook.session.state import SessionState
from runbook.text import Text, sanitise

DEADLINE = 60.0
"""Seconds that checking a new run against the change may take: a launch script and the begin of its logs are read."""


UNCHECKED = Text("Whether this run was made with the change could not be checked.", "无法核对该运行是否带有此改动。")


class Check(NamedTuple):
    """What is to be checked, and by which function of which package."""

    function: Callable[[Evidence, Change], Checked]
    arguments: tuple[Evidence, Change]


def wanted_slots(catalog: Catalog, flow: Flow, node: str) -> tuple[str, ...]:
    """Return the slots that the probes of a node look into."""
    probes = (catalog.probes[probe] for probe in flow.nodes[node].probes if probe in catalog.probes)
    return tuple(dict.fromkeys(slot for probe in probes for need in probe.needs for slot in need.split("|")))


def refuse(catalog: Catalog, state: SessionState, flow: Flow, node: str, evidence: Evidence) -> None:
    """Raise EvidenceError when there is no evidence, or what the node's probes would look into is the first run's."""
    if all(item.missing for item in evidence.items):
        raise EvidenceError(
            f"{evidence.root}: nothing in it is evidence of a known kind", "give the log or the folder of the new run"
        )
    for item in shared(catalog, state, flow, node, evidence):
        if item.origin != "named":
            raise EvidenceError(
                f"{item.path}: this belongs to the first run already", "give the log or the folder of the new run alone"
            )


def shared(catalog: Catalog, state: SessionState, flow: Flow, node: str, evidence: Evidence) -> tuple[Item, ...]:
    """Return what the probes of a node would look into that the first run has as evidence as well."""
    first = {os.path.realpath(item.path) for item in state.items if not item.run and not item.missing}
    slots = wanted_slots(catalog, flow, node)
    there = (item for item in evidence.items if item.slot in slots and not item.missing)
    return tuple(item for item in there if os.path.realpath(item.path) in first)


def plan(catalog: Catalog, flow: Flow, node: str, evidence: Evidence) -> Check | None:
    """Return how a run is checked against an experiment's change, None when no package can."""
    wanted = flow.nodes[node].change
    changer = next(iter(catalog.changers.values()), None)
    return None if wanted is None or changer is None else Check(changer.check, (evidence, wanted))


def remarks(catalog: Catalog, state: SessionState, flow: Flow, node: str, evidence: Evidence) -> tuple[Text, ...]:
    """Return what to say of a run that may not answer the node: nothing to ask, or what the first run has as well."""
    probes = [catalog.probes[probe] for probe in flow.nodes[node].probes if probe in catalog.probes]
    said = []
    if probes and not any(all(evidence.has(need) for need in probe.needs) for probe in probes):
        slots = [catalog.slots[slot] for slot in wanted_slots(catalog, flow, node) if slot in catalog.slots]
        en, zh = (", ".join(slot.title.say(language) for slot in slots) for language in ("en", "zh"))
        said.append(Text(f"Nothing in it answers this question: {en}.", f"其中没有可回答此问题的内容：{zh}。"))
    said += (
        Text(
            f"{path} is evidence of the first run as well: make sure that the new run wrote it.",
            f"{path} 同时是首次运行的证据：请确认它由新的运行写出。",
        )
        for path in dict.fromkeys(sanitise(item.path) for item in shared(catalog, state, flow, node, evidence))
    )
    return tuple(said)


def arrival(flow: str, node: str, run: str, root: str, answer: object, said: tuple[Text, ...] = ()) -> RunAttached:
    """Return what to record.

    answer: what the check ended with; one that failed leaves the change unchecked. said: `remarks`.
    """
    checked = answer if isinstance(answer, Checked) else Checked(notes=(UNCHECKED,))
    return RunAttached(flow, node, run, root, checked.lacks, (*said, *checked.notes))

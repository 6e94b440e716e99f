"""Finds probes, slots and flows through entry points, so that a third party's stand beside our own.

An entry point of the group `slime_runbook.probes` names a package: every Probe, Slot and Follower that stands at
module level in it or in its direct modules is taken. One of the group `slime_runbook.flows` names a package or a
folder of YAML files. Nothing registers itself by being imported.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from runbook.errors import FlowError, RunbookError
from runbook.evidence import Follower, Slot
from runbook.flow.load import VOCABULARY_FILE, LoadedFlow, flow_files, load_flow, load_vocabulary
from runbook.flow.model import Cause, Flow
from runbook.probe import Probe

PROBES = "slime_runbook.probes"
FLOWS = "slime_runbook.flows"

T = TypeVar("T")


@dataclass(frozen=True)
class Catalog:
    """Everything that is known.

    Probes and slots by name, followers, flows in display order, the vocabulary of causes.

    broken: modules that could not be imported, as (module, reason); their probes or flows are missing, everything
    else works.
    """

    probes: dict[str, Probe] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    followers: tuple[Follower, ...] = ()
    loaded: dict[str, LoadedFlow] = field(default_factory=dict)
    vocabulary: dict[str, Cause] = field(default_factory=dict)
    broken: tuple[tuple[str, str], ...] = ()

    @property
    def flows(self) -> dict[str, Flow]:
        """Return the flows by id, in display order."""
        return {name: loaded.flow for name, loaded in self.loaded.items()}

    @property
    def hashes(self) -> dict[str, str]:
        """Return the content hash of each flow."""
        return {name: loaded.hash for name, loaded in self.loaded.items()}

    @property
    def answers(self) -> dict[str, tuple[str, ...]]:
        """Return the declared answers by probe id."""
        return {name: probe.answers for name, probe in self.probes.items()}


def load_catalog(extra_dirs: Iterable[str] = ()) -> Catalog:
    """Return the catalog of all installed packages and of the flow folders in `extra_dirs`.

    A flow in `extra_dirs` replaces an installed one of the same id. Raises FlowError for a flow that cannot be
    loaded and RunbookError for two probes of one id.
    """
    modules, broken = probe_modules()
    probes: dict[str, Probe] = {}
    for module in modules:
        for probe in _members(module, Probe):
            if probe.id in probes and probes[probe.id] is not probe:
                raise RunbookError(f"{module.__name__}: two probes are called {probe.id}", "rename one of them")
            probes[probe.id] = probe
    slots, followers = _slots(modules)
    loaded, vocabulary = load_flows(extra_dirs)
    ordered = dict(sorted(probes.items()))
    lost = tuple((p.module, reason) for p in _points(FLOWS) if isinstance(reason := _import(p.module), str))
    return Catalog(ordered, slots, followers, loaded, vocabulary, tuple(dict.fromkeys((*broken, *lost))))


def load_slots() -> tuple[dict[str, Slot], tuple[Follower, ...]]:
    """Return the slots by name and the followers of all probe packages, without reading any flow."""
    return _slots(probe_modules()[0])


def _slots(modules: Iterable[ModuleType]) -> tuple[dict[str, Slot], tuple[Follower, ...]]:
    every = list(modules)
    slots = {slot.name: slot for module in every for slot in _members(module, Slot)}
    return slots, tuple(dict.fromkeys(f for module in every for f in _members(module, Follower)))


def probe_modules() -> tuple[list[ModuleType], tuple[tuple[str, str], ...]]:
    """Return the modules of every probe package, and (module, reason) for those that could not be imported."""
    found: list[ModuleType] = []
    broken: list[tuple[str, str]] = []
    for name in probe_module_names():
        module = _import(name)
        if isinstance(module, str):
            broken.append((name, module))
        else:
            found.append(module)
    return found, tuple(broken)


def _import(name: str) -> ModuleType | str:
    """Return the module, or why it could not be imported: a broken third-party module must not take the tool down.

    What it prints meanwhile is dropped, for our stdout carries data only.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"


def probe_module_names() -> list[str]:
    """Return the dotted names of all probe modules, without importing more than the packages themselves."""
    names: list[str] = []
    for point in _points(PROBES):
        names.append(point.module)
        paths = getattr(_import(point.module), "__path__", ())
        names += [f"{point.module}.{info.name}" for info in pkgutil.iter_modules(paths) if not info.ispkg]
    return list(dict.fromkeys(names))


def load_flows(extra_dirs: Iterable[str] = ()) -> tuple[dict[str, LoadedFlow], dict[str, Cause]]:
    """Return all flows by id in display order, and the merged vocabulary. Raises FlowError."""
    loaded: dict[str, LoadedFlow] = {}
    vocabulary: dict[str, Cause] = {}
    for folder, replaces in _flow_folders(extra_dirs):
        if (folder / VOCABULARY_FILE).is_file():
            vocabulary.update(load_vocabulary(folder / VOCABULARY_FILE)[0])
        for path in flow_files(folder):
            one = load_flow(path)
            if one.flow.flow in loaded and not replaces:
                raise FlowError(f"{path}: a second flow is called {one.flow.flow!r}", "rename one of them")
            loaded[one.flow.flow] = one
    return dict(sorted(loaded.items(), key=lambda pair: (pair[1].flow.order, pair[0]))), vocabulary


def _flow_folders(extra_dirs: Iterable[str]) -> Iterator[tuple[Path, bool]]:
    for point in _points(FLOWS):
        for folder in getattr(_import(point.module), "__path__", ()):
            yield Path(folder), False
    for extra in extra_dirs:
        yield Path(extra), True


def _points(group: str) -> list[EntryPoint]:
    return sorted(entry_points(group=group), key=lambda point: point.name)


def _members(module: ModuleType, kind: type[T]) -> list[T]:
    """Return the values of `kind` at module level, also those inside a module-level tuple."""
    found: list[T] = []
    for value in vars(module).values():
        if isinstance(value, kind):
            found.append(value)
        elif isinstance(value, tuple):
            found += [part for part in value if isinstance(part, kind)]
    return found

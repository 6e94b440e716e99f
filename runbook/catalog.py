"""Finds probes, slots and flows through entry points, so that a third party's stand beside our own.

An entry point of the group `slime_runbook.probes` names a package: every Probe, Slot, Follower, Browser and Changer
that stands at module level in it or in its direct modules is taken. One of the group `slime_runbook.flows` names a
package, whose YAML files are taken. Nothing registers itself by being imported. What cannot be used, a module, a flow,
or a second thing of a name that is taken, is left out and named (`Broken`); it never takes down what is sound.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeVar

from runbook.browse import Browser
from runbook.changing import Changer
from runbook.command import Command
from runbook.errors import FlowError
from runbook.evidence import Follower, Slot
from runbook.flow.lint import unsound
from runbook.flow.load import (
    VOCABULARY_FILE,
    LoadedFlow,
    LoadedVocabulary,
    Place,
    Source,
    completed,
    flow_files,
    load_flow,
    load_vocabulary,
)
from runbook.flow.model import Cause, Flow
from runbook.probe import Probe

PROBES = "slime_runbook.probes"
FLOWS = "slime_runbook.flows"

T = TypeVar("T")


class Broken(NamedTuple):
    """Something that had to be left out.

    source: module or file. reason: in words, with the place where there is one. flow: it is a flow or a vocabulary
    rather than probes. given: it is of a folder that was asked for by name.
    """

    source: str
    reason: str
    flow: bool = False
    given: bool = False


class Shelf(NamedTuple):
    """What the flow folders hold.

    loaded: the flows that can be used by id, in display order. vocabulary: the causes by id. broken: what was left
    out. every: all flows that could be read, as written, also those that cannot be used. guide: the sections that some
    node must answer, with the place where a folder says so.
    """

    loaded: dict[str, LoadedFlow]
    vocabulary: dict[str, Cause]
    broken: tuple[Broken, ...] = ()
    every: tuple[LoadedFlow, ...] = ()
    guide: tuple[tuple[str, Place], ...] = ()


@dataclass(frozen=True)
class Catalog:
    """Everything that is known.

    Probes, slots and browsers by name, changers by the slot whose files they change, followers, flows in display
    order, the vocabulary of causes.

    broken: what had to be left out; everything else works.
    """

    probes: dict[str, Probe] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    followers: tuple[Follower, ...] = ()
    loaded: dict[str, LoadedFlow] = field(default_factory=dict)
    vocabulary: dict[str, Cause] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    browsers: dict[str, Browser] = field(default_factory=dict)
    changers: dict[str, Changer] = field(default_factory=dict)

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

    A flow in `extra_dirs` replaces an installed one of the same id.
    """
    probes = load_probes()
    shelf = load_flows(extra_dirs)
    return Catalog(
        probes.probes,
        probes.slots,
        probes.followers,
        shelf.loaded,
        shelf.vocabulary,
        tuple(dict.fromkeys((*probes.broken, *shelf.broken))),
        probes.browsers,
        probes.changers,
    )


def load_commands() -> dict[str, Command]:
    """Return the commands that probe packages add to the command line, by name."""
    return _named(probe_modules()[0], Command, lambda command: command.name)[0]


def load_browsers() -> dict[str, Browser]:
    """Return the browsers of all probe packages, by id."""
    return _named(probe_modules()[0], Browser, lambda browser: browser.id)[0]


def load_probes() -> Catalog:
    """Return the catalog of all probe packages, without reading any flow."""
    modules, broken = probe_modules()
    probes, double = _named(modules, Probe, lambda probe: probe.id)
    slots, doubles = _named(modules, Slot, lambda slot: slot.name)
    browsers, more = _named(modules, Browser, lambda browser: browser.id)
    changers, others = _named(modules, Changer, lambda changer: changer.slot)
    followers = tuple(dict.fromkeys(f for module in modules for f in _members(module, Follower)))
    left_out = (*broken, *double, *doubles, *more, *others)
    known = dict(sorted(probes.items()))
    return Catalog(known, slots, followers, broken=left_out, browsers=browsers, changers=changers)


def load_slots() -> tuple[dict[str, Slot], tuple[Follower, ...]]:
    """Return the slots by name and the followers of all probe packages, without reading any flow."""
    loaded = load_probes()
    return loaded.slots, loaded.followers


def _named(
    modules: Iterable[ModuleType], kind: type[T], name_of: Callable[[T], str]
) -> tuple[dict[str, T], list[Broken]]:
    """Return the values of `kind` by name, and the second ones of a name: which is meant cannot be told."""
    found: dict[str, T] = {}
    double: list[Broken] = []
    for module in modules:
        for value in _members(module, kind):
            name = name_of(value)
            if found.setdefault(name, value) is not value:
                words = f"a second {kind.__name__.lower()} is called {name}; rename one of them"
                double.append(Broken(module.__name__, words))
    return found, double


def probe_modules() -> tuple[list[ModuleType], tuple[Broken, ...]]:
    """Return the modules of every probe package, and those that could not be imported."""
    found: list[ModuleType] = []
    broken: list[Broken] = []
    for name in probe_module_names():
        module = _import(name)
        if isinstance(module, str):
            broken.append(Broken(name, module))
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


def load_flows(extra_dirs: Iterable[str] = ()) -> Shelf:
    """Return what the installed flow packages and the folders in `extra_dirs` hold.

    A leaf that leaves out what to do says what its cause says, in the vocabulary that all folders have together. A
    folder in `extra_dirs` goes before what is installed; of two others of one name the first is taken.
    """
    loaded: dict[str, tuple[LoadedFlow, bool]] = {}
    vocabulary: dict[str, tuple[Cause, bool]] = {}
    broken = [Broken(p.module, reason) for p in _points(FLOWS) if isinstance(reason := _import(p.module), str)]
    every: list[LoadedFlow] = []
    guide: list[tuple[str, Place]] = []
    for folder, given in _flow_folders(extra_dirs):
        flows, words, faults = _read_folder(folder)
        every += flows
        guide += [(section, words.source.place("guide")) for section in words.guide]
        for name, cause in words.causes.items():
            taken = vocabulary.setdefault(name, (cause, given))
            if given and not taken[1]:
                vocabulary[name] = (cause, given)
            elif taken[0] != cause:
                faults.append((words.source.path, _second("cause", name, words.source.place("causes", name))))
        for one in flows:
            name, fault = one.flow.flow, unsound(one)
            if fault is not None:
                faults.append((one.source.path, str(fault)))
            elif name in loaded and not (given and not loaded[name][1]):
                faults.append((one.source.path, _second("flow", name, one.source.place("flow"))))
            else:
                loaded[name] = (one, given)
        broken += [Broken(source, reason, flow=True, given=given) for source, reason in faults]
    causes = {name: cause for name, (cause, _) in vocabulary.items()}
    ordered = sorted(loaded.items(), key=lambda pair: (pair[1][0].flow.order, pair[0]))
    usable = {name: completed(one, causes) for name, (one, _) in ordered}
    return Shelf(usable, causes, tuple(broken), tuple(every), tuple(guide))


def _read_folder(folder: Path) -> tuple[list[LoadedFlow], LoadedVocabulary, list[tuple[str, str]]]:
    """Return the flows and the vocabulary of a folder, and (file, reason) for what could not be read."""
    flows: list[LoadedFlow] = []
    words = LoadedVocabulary({}, Source("", {}))
    faults: list[tuple[str, str]] = []
    try:
        files = flow_files(folder)
    except FlowError as error:
        return flows, words, [(str(folder), _words(error))]
    for path in (*files, folder / VOCABULARY_FILE):
        try:
            if path.name != VOCABULARY_FILE:
                flows.append(load_flow(path))
            elif path.is_file():
                words = load_vocabulary(path)
        except FlowError as error:
            faults.append((str(path), _words(error)))
    return flows, words, faults


def _second(kind: str, name: str, place: Place) -> str:
    return f"{place}: a second {kind} is called {name!r} (rename one of them)"


def _words(error: FlowError) -> str:
    return f"{error.message} ({error.hint})"


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

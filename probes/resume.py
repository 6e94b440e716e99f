"""Whether a folder without a tracker was meant to be loaded, or is only where the job writes its checkpoints.

slime's own scripts give --load and --save the same folder. A fresh run then starts from --ref-load by design, and while
it writes its first checkpoint the folder holds iter_0000020 and no tracker: Megatron writes the tracker last
(megatron/training/checkpointing.py, save_checkpoint). A lost tracker looks exactly the same, so the folder alone proves
nothing. Invariant: "meant" rests on a line that says so: a flag, a row of the arguments table, or a line of a log in
which Megatron or slime tried to load from that folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from probes.readers.logfiles import LogFile, expand, window
from probes.settings import HEAD_LIMIT, MANY_LOGS, Given, Settings, given, scripted
from runbook.evidence import Evidence
from runbook.finding import Citation, cite

_TRIED = re.compile(
    rb"(?m)^.*(?:could not find the metadata file (?P<tracker>\S+)/latest_checkpointed_iteration\.txt"
    rb"|Load checkpoint from HuggingFace model into Megatron \(path=(?P<hf>[^)\n]+)\)).*$"
)
"""Megatron without a tracker (checkpointing.py), and slime that takes the folder for a Hugging Face model
(slime/backends/megatron_utils/checkpoint.py)."""
_LOADED = re.compile(rb"successfully loaded checkpoint from \S")


@dataclass(frozen=True)
class Intent:
    """Whether a folder was meant to be loaded: the lines that say so, and whether anything says otherwise.

    meant: True, or None when it may as well be only --save. saved: --load and --save are the same folder for certain.
    """

    meant: bool | None
    saved: bool = False
    proof: tuple[Citation, ...] = ()


def same_path(one: str, other: str) -> bool:
    """Return whether two paths are spelled alike but for slashes."""
    return os.path.normpath(one.strip()) == os.path.normpath(other.strip())


def is_save(settings: Settings) -> bool | None:
    """Return whether --load is also --save; None when either is not known."""
    load, save = scripted(settings, "load"), scripted(settings, "save") or given(settings, "save")
    if load is None:
        return None
    if save is None:
        return False if settings.whole else None
    return same_path(load.shown, save.shown)


def intent(evidence: Evidence, settings: Settings, folder: str, *, given_by_hand: bool = False) -> Intent:
    """Return whether `folder`, which lacks a tracker, was meant to be loaded.

    given_by_hand: a person named it as --load. That counts where no script and no table tells about --save and no log
    shows that another folder was loaded instead.
    """
    saved = is_save(settings)
    told = [*_flags(settings), *_applied(settings, folder)]
    if told:
        return Intent(True, bool(saved), tuple(one.citation for one in told))
    heads = list(_heads(evidence))
    tried = next((line for file, head in heads if (line := _tried(file, head, folder))), None)
    if tried is not None:
        return Intent(True, bool(saved), (tried,))
    load = scripted(settings, "load")
    if saved is False and load is not None:
        return Intent(True, proof=(load.citation,))
    loaded = any(_LOADED.search(head) for _, head in heads)
    by_hand = given_by_hand and saved is None and not settings.known and not loaded
    return Intent(True if by_hand else None, bool(saved))


def _flags(settings: Settings) -> Iterator[Given]:
    """Yield flags that only a resume has: a chosen iteration, or a first rollout after 0."""
    for flag in ("ckpt-step", "start-rollout-id"):
        one = scripted(settings, flag)
        if one is not None and one.sure and re.fullmatch(r"0*[1-9]\d*", one.value or ""):
            yield one


def _applied(settings: Settings, folder: str) -> Iterator[Given]:
    """Yield the table's `load` when it is this folder: slime keeps it only where it found a checkpoint."""
    if settings.table is None or "load" not in settings.table.rows:
        return
    load, reference = given(settings, "load"), given(settings, "ref-load")
    if load is None or (reference is not None and same_path(load.shown, reference.shown)):
        return
    if _name(load.shown) == _name(folder):
        yield load


def _heads(evidence: Evidence) -> Iterator[tuple[LogFile, bytes]]:
    """Yield the start of each log, where loading is reported."""
    files, _ = expand(evidence.paths("log"))
    for file in files[:MANY_LOGS]:
        yield file, window(file, 0, HEAD_LIMIT)


def _tried(file: LogFile, head: bytes, folder: str) -> Citation | None:
    """Return the line in which loading from `folder` was tried; a copy of the folder has its name and another path."""
    for found in _TRIED.finditer(head):
        path = (found["tracker"] or found["hf"]).decode("utf-8", "replace")
        if _name(path) == _name(folder):
            return cite(
                file.path, found[0].rstrip(b"\r"), line=head.count(b"\n", 0, found.start()) + 1, offset=found.start()
            )
    return None


def _name(path: str) -> str:
    return os.path.basename(os.path.normpath(path.strip()))

"""What is written when: calls of load_weights, grouped into updates.

slime sends an update in buckets, each of which is one call. Calls belong to one update while the weight version of
their request stays the same; without one (the initial load, old versions), until a name comes again after a pause.
The request is found in the frames that called, which costs nothing and needs no edit of SGLang.
"""

from __future__ import annotations

import inspect
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .fingerprint import fingerprint
from .journal import Budget, Journal, note, open_folder
from .options import Options

PAUSE = 2.0
"""Seconds without a call after which a name that comes again begins a new update."""
IDLE = 20.0
"""Seconds without a call after which an update is noted as over."""
FRAMES = 40
"""Callers that are looked at for the request."""
_KIND = re.compile(r"From(\w+?)Req")
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


@dataclass
class _Stream:
    """The recording of one model class: a speculative engine has two.

    request: (kind, weight version) of the present update. seen: the names that came in it. updates: how many began.
    """

    journal: Journal
    request: tuple[str, str] = ("", "")
    seen: set[str] = field(default_factory=set)
    updates: int = 0
    last: float = 0.0


@dataclass
class _Call:
    """The call of load_weights that is running. layers: the layers its tensors belong to, "" for none."""

    stream: _Stream
    model: str
    request: tuple[str, str]
    group: str
    number: int
    began: float
    layers: set[str] = field(default_factory=set)
    tensors: int = 0
    entered: bool = False
    quiet: bool = False
    spent: float = 0.0


class Recorder:
    """The recording of one process. Every entry goes through `guarded`: the first error ends the recording."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.stopped = False
        self._budget = Budget(options.limit)
        self._folder: str | None = None
        self._streams: dict[str, _Stream] = {}
        self._call: _Call | None = None
        self._calls = 0
        self._lock = threading.RLock()
        self._idle: threading.Timer | None = None

    def listening(self) -> bool:
        """Whether anything is still to be recorded in this process."""
        return not self.stopped

    def guarded(self, action: Callable[[], None]) -> None:
        """Do what belongs to the recording; should it fail, write why and stop recording."""
        if self.stopped:
            return
        began = time.perf_counter()
        try:
            with self._lock:
                action()
        except Exception as error:
            self._stop(f"{type(error).__name__}: {error}")
        if self._call is not None:
            self._call.spent += time.perf_counter() - began

    def begin(self, model: Any) -> None:
        """Begin a call of load_weights of `model`."""
        if self._folder is None:
            self._open()
        if self._folder is None:
            return
        name = type(model).__name__
        stream = self._streams.get(name)
        if stream is None:
            journal = Journal(os.path.join(self._folder, name), self._budget)
            stream = self._streams[name] = _Stream(journal)
        kind, version, group = _request()
        self._call = _Call(stream, name, (kind, version), group, self._calls, time.perf_counter())
        self._calls += 1

    def tensor(self, name: str, tensor: Any) -> None:
        """Note one tensor that load_weights is about to see."""
        call = self._call
        if call is None:
            return
        if not call.entered:
            self._enter(call, name)
        if call.quiet:
            return
        facts = fingerprint(tensor)
        layer = _LAYER.search(name)
        call.layers.add(layer[1] if layer else "")
        call.tensors += 1
        call.stream.seen.add(name)
        journal = call.stream.journal
        stored = journal.store(name, tensor, facts) if self.options.tensors else {}
        journal.write(ev="tensor", call=call.number, name=name, device=str(tensor.device), **facts, **stored)

    def end(self, model: Any, problem: str) -> None:
        """End a call; note the engine's own parameters that it was about."""
        call, self._call = self._call, None
        if call is None or not call.entered or call.quiet:
            return
        seconds = time.perf_counter() - call.began
        journal = call.stream.journal
        if self.options.engine:
            for name, tensor in (*model.named_parameters(), *model.named_buffers()):
                layer = _LAYER.search(name)
                if (layer[1] if layer else "") in call.layers:
                    facts = fingerprint(tensor)
                    kept = {key: facts[key] for key in ("shape", "dtype", "hash", "rows", "zeros", "nonfinite")}
                    journal.engine(call=call.number, name=name, **kept)
        journal.write(
            ev="end",
            call=call.number,
            time=round(time.time(), 3),
            error=problem or None,
            tensors=call.tensors,
            seconds=round(seconds, 4),
            recorder_seconds=round(call.spent, 4),
        )
        journal.flush()
        call.stream.last = time.monotonic()
        self._wait()

    def _open(self) -> None:
        """Open this process's folder unless its rank or the number of engines says no."""
        rank, world = _rank()
        if self.options.ranks != "all" and rank != 0:
            self.stopped = True
            return
        self._folder = open_folder(self.options, rank, world)
        if self._folder is None:
            self._stop(f"{self.options.engines} processes record into this folder already")

    def _enter(self, call: _Call, name: str) -> None:
        """Find out, at the first tensor of a call, which update it belongs to."""
        stream = call.stream
        paused = time.monotonic() - stream.last > PAUSE
        again = not call.request[1] and paused and name in stream.seen
        call.entered = True
        if call.request != stream.request or again:
            stream.request, stream.seen = call.request, set()
            stream.updates += 1
            if stream.updates <= self.options.updates:
                stream.journal.turn()
        call.quiet = stream.updates > self.options.updates
        if call.quiet:
            if all(each.updates > self.options.updates for each in self._streams.values()):
                self._stop(f"{self.options.updates} updates are recorded, as asked")
            return
        kind, version = call.request
        stream.journal.write(
            ev="begin",
            call=call.number,
            time=round(time.time(), 3),
            model=call.model,
            kind=kind,
            weight_version=version,
            group=call.group,
        )

    def _stop(self, why: str) -> None:
        """End the recording for good and say why in recorder.log."""
        self.stopped = True
        try:
            note(self.options.folder, f"recording stopped: {why}")
            for stream in self._streams.values():
                stream.journal.close()
        except Exception:  # the disk may be what failed; there is nobody left to tell
            return

    def _wait(self) -> None:
        """Have it noted when nothing more comes for a while."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = threading.Timer(IDLE, lambda: self.guarded(self._rest))
        self._idle.daemon = True
        self._idle.start()

    def _rest(self) -> None:
        for stream in self._streams.values():
            if 0 < stream.updates <= self.options.updates:
                stream.journal.write(ev="idle", time=round(time.time(), 3))


def _rank() -> tuple[int, int]:
    """Return rank and size of the engine's world, (0, 1) where there is none."""
    import torch

    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _request() -> tuple[str, str, str]:
    """Return (kind, weight version, group) of the request that this call serves.

    kind: "tensor", "distributed", "disk", "ipc", or "load" when no update request is being served.
    """
    frame = inspect.currentframe()
    for _ in range(FRAMES):
        if frame is None:
            break
        request = frame.f_locals.get("recv_req")
        kind = _KIND.search(type(request).__name__)
        if kind is not None:
            version, group = getattr(request, "weight_version", None), getattr(request, "group_name", None)
            return kind[1].lower(), "" if version is None else str(version), str(group or "")
        frame = frame.f_back
    return "load", "", ""

"""Wraps load_weights of every model class in a process that imports SGLang.

One seam covers all of them, also the classes of external packages and those defined later: once something of
`sglang.srt` is imported, `torch.nn.Module.__init_subclass__` looks at every new class. Only the outermost call counts,
since models call the load_weights of their parts.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from typing import Any

from .options import from_environment
from .recorder import Recorder

_MARK = "__slime_runbook_recorded__"
_inside = threading.local()


class _Watch(MetaPathFinder):
    """Finds nothing; the first import of something in `sglang.srt` makes it wrap and leave."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Return None always, so that the usual finders go on."""
        if fullname.startswith("sglang.srt"):
            sys.meta_path.remove(self)
            self.recorder.guarded(lambda: watch_classes(self.recorder))


def install() -> None:
    """Arrange for the recording in this process, if the environment names a folder."""
    options = from_environment(os.environ)
    if options is not None:
        sys.meta_path.insert(0, _Watch(Recorder(options)))


def watch_classes(recorder: Recorder) -> None:
    """Have load_weights of every class that is derived from torch.nn.Module from now on wrapped."""
    import torch

    module: Any = torch.nn.Module
    before = module.__dict__.get("__init_subclass__")

    def init_subclass(cls: Any, /, **keywords: Any) -> None:
        if before is None:
            super(module, cls).__init_subclass__(**keywords)
        else:
            before.__get__(None, cls)(**keywords)
        method = cls.__dict__.get("load_weights")
        if callable(method) and not hasattr(method, _MARK):
            setattr(cls, "load_weights", wrapped(method, recorder))  # noqa: B010 - a type checker knows no such name

    module.__init_subclass__ = classmethod(init_subclass)


def wrapped(method: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Return load_weights with the recorder listening; arguments, result and exceptions are those of `method`."""

    @functools.wraps(method)
    def load_weights(self: Any, weights: Any, *rest: Any, **keywords: Any) -> Any:
        if getattr(_inside, "call", False) or not recorder.listening():
            return method(self, weights, *rest, **keywords)
        _inside.call = True
        problem = "load_weights did not return"
        try:
            recorder.guarded(lambda: recorder.begin(self))
            result = method(self, _overheard(weights, recorder), *rest, **keywords)
            problem = ""
        except BaseException as error:
            problem = f"{type(error).__name__}: {error}"[:400]
            raise
        else:
            return result
        finally:
            _inside.call = False
            recorder.guarded(lambda: recorder.end(self, problem))

    setattr(load_weights, _MARK, True)
    return load_weights


def _overheard(weights: Any, recorder: Recorder) -> Any:
    """Return what load_weights shall be given: a list as it is, anything else passed on one by one."""
    if isinstance(weights, (list, tuple)):
        for pair in weights:
            _hear(pair, recorder)
        return weights
    if isinstance(weights, dict):
        for pair in weights.items():
            _hear(pair, recorder)
        return weights
    return _passed_on(weights, recorder)


def _passed_on(weights: Any, recorder: Recorder) -> Iterator[Any]:
    for pair in weights:
        _hear(pair, recorder)
        yield pair


def _hear(pair: Any, recorder: Recorder) -> None:
    recorder.guarded(lambda: recorder.tensor(str(pair[0]), pair[1]))

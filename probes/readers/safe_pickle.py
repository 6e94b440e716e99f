"""Read pickles that somebody else wrote, without importing or running anything they name.

A pickle is a program: `torch.load(..., weights_only=False)`, which slime and torch.distributed use for dumps and
`.metadata`, runs whatever callable it names. Here C's `pickle.Unpickler` does the fast work, while every global is
looked up in an exact table of inert stand-ins. Invariants: no module is imported, no object that outlives the read can
be changed by a pickle (stand-ins are sealed), and an unknown name is refused with that name in the error.

Classes of packages outside the standard library, torch and numpy (an image, a user's own metadata class) become opaque
`Record`s: their data is kept and their code is never looked for. *Calling* such a name is refused, because that is
what an attack does and what a plain data object never needs.

What this cannot bound is the C stack: hashing a tuple nested a million deep may end the process. So dumps are read in a
child of their own (`bounded_read`), whose death is a fault of the file.
"""

from __future__ import annotations

import contextlib
import copyreg
import gc
import io
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

MEMORY_FACTOR = 14
"""Bytes of address space a read may take for each byte of file. A dump of 79 MB of Python ints and floats took 392 MB
resident (measured, 512 samples of 8192 tokens); nearly three times that leaves room for other Python versions."""
MEMORY_FLOOR = 256 * 1024 * 1024
"""Address space that any read may take: allocator arenas and the memo of small files."""


class RefusedGlobalError(Exception):
    """The pickle names a callable that is not on the list of harmless ones. `name` is "module.name"."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Sealed(type):
    """Metaclass of opaque classes: they cannot be altered, and called only when declared callable."""

    source: str
    may_call: bool

    def __setattr__(cls, name: str, value: object) -> None:
        raise AttributeError(name)

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        if not cls.may_call:
            raise RefusedGlobalError(cls.source)
        return Record.__new__(cls, *args, **kwargs)  # type: ignore[arg-type]


class Record:
    """What is left of an object whose class is not loaded: constructor arguments, state, appended items.

    The subclass attribute `source` is the class's dotted name as the pickle spells it.
    """

    __slots__ = ("args", "entries", "state")
    source = ""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Make a record from constructor arguments; keyword arguments join the state."""
        self = object.__new__(cls)
        self.args, self.state, self.entries = args, kwargs or None, []
        return self

    args: tuple[Any, ...]
    state: Any
    entries: list[Any]

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        self.entries.append((key, value))

    def append(self, value: object) -> None:
        """Keep an item of an opaque list."""
        self.entries.append(value)

    def get(self, field: str, default: object = None) -> Any:
        """Return a field of the state; a state of (dict, slots) counts as both."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)
        for part in parts:
            if isinstance(part, dict) and field in part:
                return part[field]
        return default


def opaque_class(source: str, *, may_call: bool = False) -> Any:
    """Return a new sealed opaque class for the dotted name `source`."""
    return _Sealed("Opaque", (Record,), {"__slots__": (), "source": source, "may_call": may_call})


def sealed(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that a pickle's BUILD cannot set attributes on it."""
    stub: Callable[..., Any] = type("Stub", (), {"__slots__": (), "__call__": staticmethod(run)})()
    return stub


def _bytes(text: object = b"", codec: object = "latin1") -> bytes:
    """Return bytes as protocol 2 spells them (`_codecs.encode`, `bytes`, `bytearray`); never a size to allocate."""
    if isinstance(text, str) and codec in ("latin1", "latin-1", "utf-8"):
        return text.encode(str(codec))
    if isinstance(text, bytes):
        return text
    raise pickle.UnpicklingError("bytes from something that is not text")


def _mapping(*args: Any) -> dict[Any, Any]:
    """Return OrderedDict, Counter or defaultdict as a plain dict; a default factory is dropped."""
    given = args[-1] if args and isinstance(args[-1], (dict, list)) else ()
    return dict(given)


def _sequence(items: Any = (), *_: object) -> list[Any]:
    """Return set, frozenset or deque as a list, in the order the pickle holds."""
    return list(items) if isinstance(items, (list, tuple)) else []


def _first(value: object = None, *_: object) -> object:
    """Return the plain value that an enum member or a layout is made from."""
    return value


def _size(dims: Any = ()) -> tuple[Any, ...]:
    return tuple(dims) if isinstance(dims, (list, tuple)) else ()


HARMLESS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): sealed(_mapping),
    ("collections", "defaultdict"): sealed(_mapping),
    ("collections", "Counter"): sealed(_mapping),
    ("collections", "deque"): sealed(_sequence),
    ("_codecs", "encode"): sealed(_bytes),
    ("torch", "Size"): sealed(_size),
    ("torch", "device"): sealed(_first),
    ("torch.serialization", "_get_layout"): sealed(_first),
}
for _module in ("builtins", "__builtin__"):
    HARMLESS |= {
        (_module, "set"): sealed(_sequence),
        (_module, "frozenset"): sealed(_sequence),
        (_module, "bytes"): sealed(_bytes),
        (_module, "bytearray"): sealed(_bytes),
    }
    for _name in ("complex", "range", "slice", "list", "dict", "int", "float", "str", "tuple", "object"):
        HARMLESS[_module, _name] = opaque_class(f"{_module}.{_name}", may_call=True)
for _module, _name in (
    ("datetime", "datetime"), ("datetime", "date"), ("datetime", "time"), ("datetime", "timedelta"),
    ("datetime", "timezone"), ("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID"),
    ("uuid", "SafeUUID"), ("argparse", "Namespace"),
    ("types", "SimpleNamespace"), ("pathlib", "PosixPath"), ("pathlib", "PurePosixPath"), ("pathlib", "Path"),
    ("pathlib._local", "PosixPath"), ("zoneinfo", "ZoneInfo"), ("signal", "Signals"),
):  # fmt: skip
    HARMLESS[_module, _name] = opaque_class(f"{_module}.{_name}", may_call=True)


def top_package(module: str) -> str:
    """Return the first part of a dotted module name."""
    return module.split(".", 1)[0]


_EXACT_ONLY = frozenset(sys.stdlib_module_names) | {"__builtin__", "torch", "numpy", ""}


class _Unpickler(pickle.Unpickler):
    """The C unpickler with both of its doors to the outside replaced."""

    def __init__(
        self,
        file: BinaryIO,
        allowed: dict[tuple[str, str], Any],
        persistent: Callable[[Any], Any] | None,
        opaque: set[str],
        callable_packages: frozenset[str],
    ) -> None:
        super().__init__(file, encoding="utf-8", errors="replace")
        self._allowed, self._persistent, self._opaque = allowed, persistent, opaque
        self._callable_packages = callable_packages

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a global; never import."""
        stub = self._allowed.get((module, name)) or HARMLESS.get((module, name))
        if stub is not None:
            return stub
        source, package = f"{module}.{name}", top_package(module)
        if package in _EXACT_ONLY:
            raise RefusedGlobalError(source)
        self._opaque.add(source)
        return opaque_class(source, may_call=package in self._callable_packages)

    def persistent_load(self, pid: Any) -> Any:
        """Describe what the pickle keeps outside itself (a tensor's storage)."""
        if self._persistent is None:
            raise pickle.UnpicklingError("a persistent id where none is expected")
        return self._persistent(pid)


def load(
    file: BinaryIO | bytes,
    *,
    allowed: dict[tuple[str, str], Any] | None = None,
    persistent: Callable[[Any], Any] | None = None,
    opaque: set[str] | None = None,
    callable_packages: frozenset[str] = frozenset(),
) -> Any:
    """Return the next pickled object of `file` with every class replaced by a stand-in.

    allowed: further exact (module, name) stand-ins. persistent: turns a persistent id into a description. opaque:
    receives the names of foreign classes met. callable_packages: packages whose names may also be called (enums).
    Raises RefusedGlobalError, MemoryError, and whatever the C unpickler raises for damaged data.
    """
    source = io.BufferedReader(io.BytesIO(file)) if isinstance(file, bytes) else file  # peek() makes it thrice as fast
    copyreg.clear_extension_cache()  # an object in that cache would come back without find_class being asked
    unpickler = _Unpickler(
        source, allowed or {}, persistent, opaque if opaque is not None else set(), callable_packages
    )
    collecting = gc.isenabled()
    gc.disable()  # millions of fresh lists hold no cycles; collecting them over and over doubles the time
    try:
        return unpickler.load()
    finally:
        if collecting:
            gc.enable()


def memory_budget(size: int) -> int:
    """Return the bytes of address space that reading a file of `size` bytes may add."""
    return MEMORY_FLOOR + MEMORY_FACTOR * size


_LIMITING = threading.RLock()


@contextlib.contextmanager
def limited_memory(extra: int) -> Iterator[None]:
    """Let this process grow by at most `extra` bytes inside the block: a bomb ends in MemoryError, not in swap.

    Lowers the soft RLIMIT_AS and restores it, one block at a time, because the limit is the whole process's: for a
    probe's worker and for the child of `bounded_read`, never for the process that draws. Where /proc is missing the
    block runs without a limit.
    """
    import resource

    with _LIMITING:
        now = address_space()
        if now is None:
            yield
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        limits = [now + extra, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
        resource.setrlimit(resource.RLIMIT_AS, (min(limits), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def address_space() -> int | None:
    """Return the bytes of address space that this process has; None where /proc does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None

"""The process in which a pickle of somebody else is read: what `bounded_read` starts, and nothing imports.

It gets the open file as standard input and answers on standard output. Invariants: once it reads, it can open no file
or socket, start no process, write no file and take no more memory or processor time than it was given; when the one
that started it dies, it dies too; should memory run out all the same, the kernel takes this process first.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Any

from probes.readers.compact import compact, pack
from probes.readers.dump_errors import DumpError
from probes.readers.safe_pickle import address_space
from probes.readers.torch_zip import describe_fault, read_open

HEADER = struct.Struct("<cQQ")
"""What an answer begins with: LOADED or FAILED, the bytes of the pickle or words behind it, and those of the arrays."""
LOADED, FAILED = b"L", b"E"
SPARE = 64 << 20
"""Address space kept back for saying that memory ran out."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Read standard input as sys.argv says: memory in bytes, seconds, then packages whose names may be called."""
    memory, seconds, packages = int(sys.argv[2]), int(sys.argv[3]), frozenset(sys.argv[4:])
    for codec in ("utf-8", "latin-1", "ascii", "cp437"):
        codecs.lookup(codec)  # codecs are files, and no file can be opened later
    _confine(memory, seconds)
    size = os.fstat(0).st_size
    answer: list[Any]
    try:
        with open(0, "rb", closefd=False) as file:
            loaded = read_open(file, "", packages)
        root = compact(loaded.root, "", size)
        skeleton, arrays = pack((root, loaded.container, loaded.opaque))
        answer = [
            HEADER.pack(LOADED, len(skeleton), sum(len(array) * array.itemsize for array in arrays)),
            skeleton,
            *arrays,
        ]
    except Exception as error:
        answer = _failed(error, size)
    with open(1, "wb", closefd=False) as out:
        out.writelines(answer)
    os._exit(0)  # freeing millions of numbers one by one would take longer than sending them


def _failed(error: Exception, size: int) -> list[bytes]:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    fault = error if isinstance(error, DumpError) else describe_fault(error, "", size)
    words = json.dumps([fault.fault.value, fault.what, fault.refused, fault.kind]).encode()
    return [HEADER.pack(FAILED, len(words), 0), words]


def _confine(memory: int, seconds: int) -> None:
    """Give up everything that reading an open file does not need."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux: the one that started it kills it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    now = address_space()
    if now is not None:
        _lower(resource.RLIMIT_AS, now + memory, now + memory + SPARE)
    _lower(resource.RLIMIT_CPU, seconds, seconds + 1)
    for limit, value in (("CORE", 0), ("FSIZE", 0), ("NPROC", 0), ("NOFILE", 3)):
        with contextlib.suppress(AttributeError):
            _lower(getattr(resource, f"RLIMIT_{limit}"), value, value)


def _lower(limit: int, soft: int, hard: int) -> None:
    """Set a limit, never above the one in force."""
    _, present = resource.getrlimit(limit)
    if present != resource.RLIM_INFINITY:
        soft, hard = min(soft, present), min(hard, present)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(limit, (soft, hard))

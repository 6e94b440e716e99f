"""Read torch's message of an allocation that failed: "CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has …".

Format: c10/cuda/CUDACachingAllocator.cpp. torch 1.x and 2.0 put the numbers in brackets ("GPU 0; 23.69 GiB total
capacity; 21.50 GiB already allocated; …"); 2.1 and later write sentences ("capacty" until 2.2); 2.2 and later tell
memory in private pools. All sizes become bytes; each is exact to half of the last digit that was printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SIZE = r"([\d.]{1,16}) (bytes|[KMGTP]iB)"
_UNITS = {"bytes": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5}
_TRIED = re.compile(rf"out of memory\. Tried to allocate {_SIZE}")
_GPU = re.compile(r"\bGPU (\d{1,4})\b")
_TOTAL = re.compile(rf"total capac(?:i?ty) of {_SIZE}|; {_SIZE} total capacity")
_FREE = re.compile(rf"of which {_SIZE} is free|; {_SIZE} free\b")
_THIS = re.compile(rf"this process has {_SIZE} memory in use")
_OTHER = re.compile(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_ALLOCATED = re.compile(rf"{_SIZE} is allocated by PyTorch|; {_SIZE} already allocated")
_UNALLOCATED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_RESERVED = re.compile(rf"; {_SIZE} reserved in total by PyTorch")
_POOLS = re.compile(rf"with {_SIZE} allocated in private pools")
GIB = 1 << 30


@dataclass(frozen=True)
class OomMessage:
    """The numbers of one message in bytes, None where it does not tell them.

    tried: what was asked for; error: how far the printed one may be off. total, free: of the device. this: the process
    that raised, with what is not torch's. allocated, unallocated: torch's own; unallocated is reserved but not in use.
    pools: allocated in private pools, such as CUDA graphs. others: pid and bytes of processes that are named.
    """

    tried: float
    error: float
    gpu: int | None = None
    total: float | None = None
    free: float | None = None
    this: float | None = None
    allocated: float | None = None
    unallocated: float | None = None
    pools: float | None = None
    others: tuple[tuple[int, float], ...] = ()

    @property
    def strangers(self) -> float | None:
        """Return the bytes on the device that other processes hold; None where the message does not tell."""
        if self.total is not None and self.free is not None and self.this:
            return max(self.total - self.free - self.this, 0.0)
        return None


def read(text: str) -> OomMessage | None:
    """Return the numbers of a message, None where `text` has none that says what was tried."""
    tried = _TRIED.search(text)
    if tried is None:
        return None
    text = text[tried.start() :]
    size = _bytes(tried[1], tried[2])
    if size is None:
        return None
    total, free, allocated = _first(_TOTAL, text), _first(_FREE, text), _first(_ALLOCATED, text)
    unallocated, reserved = _first(_UNALLOCATED, text), _first(_RESERVED, text)
    if unallocated is None and reserved is not None and allocated is not None:
        unallocated = max(reserved - allocated, 0.0)
    gpu = _GPU.search(text)
    others = tuple((int(one[1]), held) for one in _OTHER.finditer(text) if (held := _bytes(one[2], one[3])) is not None)
    this = _first(_THIS, text)
    if not this and (own := _own(others, allocated, unallocated)) is not None:
        this, others = own[1], tuple(one for one in others if one != own)
    return OomMessage(
        size,
        _half_digit(tried[1], tried[2]),
        int(gpu[1]) if gpu else None,
        total,
        free,
        this,
        allocated,
        unallocated,
        _first(_POOLS, text),
        others,
    )


def _own(
    others: tuple[tuple[int, float], ...], allocated: float | None, unallocated: float | None
) -> tuple[int, float] | None:
    """Return which of the named processes raised: the smallest that holds what torch reserved in the raising one.

    In a container the driver's pids are not the process's own, so that torch takes itself for another.
    """
    if allocated is None or unallocated is None:
        return None
    enough = [one for one in others if one[1] >= (allocated + unallocated) * 0.999]
    return min(enough, key=lambda one: one[1], default=None)


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    if found is None:
        return None
    number, unit = [group for group in found.groups() if group is not None][:2]
    return _bytes(number, unit)


def _bytes(number: str, unit: str) -> float | None:
    try:
        return float(number) * float(1024 ** _UNITS[unit])
    except ValueError:
        return None


def _half_digit(number: str, unit: str) -> float:
    digits = len(number.partition(".")[2])
    return 0.5 * float(10**-digits) * float(1024 ** _UNITS[unit]) if unit != "bytes" else 0.0

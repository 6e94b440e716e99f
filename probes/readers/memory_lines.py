"""Read slime's lines of memory: `[Rank 3] Memory-Usage before offload model: {'gpu': '3', 'total_GB': 139.8, ...}`.

Source: slime/utils/memory_utils.py (`print_memory`, since v0.1.0; allocated and reserved since v0.2.0, host_* since
v0.3.0). `used` is the whole device with all its processes, `allocated` and `reserved` are of the process that prints.
One GB here is 2**30 bytes. Ray's de-duplication hides most ranks, so a rank that is not there is unknown, never zero.
"""

from __future__ import annotations

import re

import msgspec

from probes.readers import joblog, timers
from probes.readers.logfiles import LogFile
from probes.readers.logscan import Hit, signature
from probes.readers.metrics import numbers
from probes.readers.timers import Process

USAGE = signature("memory-usage", "Memory-Usage ", r"(?:\[Rank (\d{1,6})\] )?Memory-Usage (.{0,200}?): \{'")
_CLEARED = " (cleared before print)"
_GPU = re.compile(r"'gpu': '?(\d{1,4})")


class Usage(msgspec.Struct, frozen=True, gc=False):
    """One line. what: such as "before offload model". rank: of the trainer, None where v0.1.0 prints none.

    total, free, used: of the device. allocated, reserved: of the process. host_total, host_available: of the node. All
    in GiB, None where the line does not say it. count: processes that Ray's de-duplication says printed it alike.
    """

    what: str
    rank: int | None
    gpu: int | None
    process: Process
    time: float | None
    total: float | None
    free: float | None
    used: float | None
    allocated: float | None
    reserved: float | None
    host_total: float | None
    host_available: float | None
    count: int
    file: LogFile
    line: int
    offset: int

    @property
    def others(self) -> float | None:
        """Return the GiB on the device that are not torch's in this process: other processes, and CUDA's own."""
        return None if self.used is None or self.reserved is None else self.used - self.reserved


def usage(hit: Hit) -> Usage:
    """Turn a hit of USAGE into what it says."""
    rank, what = ((group or b"").decode("utf-8", "replace") for group in hit.groups)
    text = hit.text[:4096].decode("utf-8", "replace")
    line = joblog.parse(hit.raw)
    values = {key.removesuffix("_GB"): value for key, value in numbers(text).items()}
    gpu = _GPU.search(text)

    def finite(name: str) -> float | None:
        value = values.get(name)
        return value if value is not None and 0 <= value < 1e9 else None

    return Usage(
        what.removesuffix(_CLEARED).strip(),
        int(rank) if rank else None,
        int(gpu[1]) if gpu else None,
        timers.process(hit),
        line.time,
        finite("total"),
        finite("free"),
        finite("used"),
        finite("allocated"),
        finite("reserved"),
        finite("host_total"),
        finite("host_available"),
        line.count,
        hit.file,
        hit.line,
        hit.offset,
    )

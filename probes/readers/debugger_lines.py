"""Reads the lines in which Ray's debuggers say where they listen, that they wait, and that somebody attached.

Ray 2.39 and later (ray/util/debugpy.py) logs "Ray debugger is listening on HOST:PORT" at the first breakpoint of a
process, "Ray debugger is already open on PORT" at later ones, each time "Waiting for debugger to attach", and "Debugger
client is connected"; earlier versions print the first line only. With RAY_DEBUG=legacy (ray/util/rpdb.py) a worker
prints "RemotePdb session open at HOST:PORT, use 'ray debug' to connect..." and "RemotePdb accepted connection from".
Ray shows lines that differ only in words with digits once in five seconds, so of many processes that stop together
the driver's log tells the address of one or two; how many there were stands behind the line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from probes.readers import joblog, logplace
from probes.readers.logscan import Hit, signature

LISTENS = signature(
    "debugger-listens",
    "Ray debugger is listening on ",
    r"Ray debugger is listening on (?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[\w.-]{1,253}):(?P<port>\d{1,5})(?!\d)",
)
OPEN = signature("debugger-open", "Ray debugger is already open on ", r"debugger is already open on (\d{1,5})(?!\d)")
WAITS = signature("debugger-waits", "Waiting for debugger to attach", r"Waiting for debugger to attach \(see https?://")
ATTACHED = signature("debugger-attached", "Debugger client is connected")
LEGACY = signature(
    "debugger-legacy",
    "RemotePdb session open at ",
    r"RemotePdb session open at (?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[\w.-]{1,253}):(?P<port>\d{1,5}), use 'ray debug' to",
)
ACCEPTED = signature("debugger-accepted", "RemotePdb accepted connection from ")
SIGNATURES = (LISTENS, OPEN, WAITS, ATTACHED, LEGACY, ACCEPTED)

_FREES = (ATTACHED.label, ACCEPTED.label)
_Process = tuple[str, str | None, int | None, str | None]


@dataclass(frozen=True)
class Stop:
    """A process that waits, or waited, for somebody to attach.

    actor: class or function that Ray's prefix names, None for the driver. host, port: where it listens, empty and 0
    where the log does not tell. listens: the line with the address. since: the line from which on it waits. count: how
    many processes that line speaks for. legacy: it waits for `ray debug`. attached: the line that ends the wait.
    """

    actor: str | None
    pid: int | None
    ip: str | None
    host: str
    port: int
    since: Hit
    listens: Hit | None = None
    count: int = 1
    legacy: bool = False
    attached: Hit | None = None


def stops(hits: Iterable[Hit]) -> list[Stop]:
    """Return every stop in the order in which they began; hits: of SIGNATURES, in the order of printing."""
    now: dict[_Process, Stop] = {}
    addresses: dict[_Process, tuple[str, int, Hit | None]] = {}
    done: list[Stop] = []
    for hit in hits:
        key, count = _process(hit), joblog.parse(hit.raw).count
        if hit.label in _FREES:
            if key in now:
                done.append(replace(now.pop(key), attached=hit))
            continue
        if hit.label == OPEN.label:
            host, _, known = addresses.get(key, ("", 0, None))
            addresses[key] = (host, _port(hit.groups[0]), known)
        elif hit.label in (LISTENS.label, LEGACY.label):
            addresses[key] = ((hit.groups[0] or b"").decode("ascii", "replace").strip("[]"), _port(hit.groups[1]), hit)
        before = now.get(key)
        host, port, listens = addresses.get(key, ("", 0, None))
        if before is None or hit.label == OPEN.label:
            _, actor, pid, ip = key
            now[key] = Stop(actor, pid, ip, host, port, hit, listens, count, hit.label == LEGACY.label)
        else:
            now[key] = replace(before, host=host, port=port, since=hit, listens=listens, count=max(count, before.count))
    return sorted((*done, *now.values()), key=lambda stop: (stop.since.file.path, stop.since.line))


def _process(hit: Hit) -> _Process:
    """Return what tells the process that printed a hit from the others: the log, actor, pid and node."""
    place = logplace.whereabouts(hit)
    return (hit.file.stream, place.actor, place.pid, place.ip)


def _port(text: bytes | None) -> int:
    """Return a port number, 0 where the digits are none."""
    number = int(text or b"0")
    return number if number < 1 << 16 else 0

"""Finds the evidence: what was given, what lies in RUN, and what those items name.

Content decides, not names: every candidate is shown to each slot's recogniser and the best match takes it; where two
slots know it equally well, the first takes it and a note names both with how to choose. The look
is bounded in depth, number and file content, follows no link twice, and a path that is named but absent is kept as
missing, never dropped. Runs in a worker process, since a `stat` on a dead mount may hang.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from runbook.errors import EvidenceError
from runbook.evidence import Candidate, Evidence, Follower, Item, Match, Reference, Slot
from runbook.text import Text, sanitise

DEPTH = 6
"""Folders below RUN that are looked into: `RUN/checkpoints/model/iter_x/` and dump folders lie within."""

ENTRIES = 20_000
"""Files and folders looked at in all."""

SECONDS = 20.0
"""How long RUN is searched: what was found by then is worth more than nothing at the deadline."""

ROUNDS = 3
"""How often what was named is followed again: launch script, sourced file, checkpoint."""

SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__"})

GIVEN = Text("given", "用户指定")
NOT_UTF8 = "its name is not UTF-8"
"""Journals and tickets are JSON, which cannot hold such a path."""


class Found(msgspec.Struct, frozen=True):
    """The outcome. notes: what a person should know: limits reached, equal candidates, unreadable folders."""

    evidence: Evidence
    notes: tuple[Text, ...] = ()


def discover(
    root: str,
    given: Sequence[tuple[str, str]],
    slots: Mapping[str, Slot],
    followers: Sequence[Follower],
    run: str = "",
) -> Found:
    """Return the evidence of RUN `root` ("" when only `given` counts) and of `given`, pairs of slot and path.

    A slot that was given is not filled from elsewhere. Raises EvidenceError when RUN or a given path is not there
    or a slot is not known.
    """
    notes: list[Text] = []
    items = [_given(slot, path, slots, run) for slot, path in given]
    taken = {slot for slot, _ in given}
    for path in (root, *(path for _, path in given)):
        if not _is_utf8(path):
            raise EvidenceError(f"{path}: {NOT_UTF8}", "give it by a link with a plain name")
    if root:
        if not os.path.exists(root):
            raise EvidenceError(
                f"{root}: no such file or folder", "give the folder of the run, or single files by slot"
            )
        items += [i for i in _search(root, slots, run, taken, notes) if i.slot not in taken]
        if not items:
            notes.append(
                Text(f"nothing in {sanitise(root)} is evidence of a known kind", f"{sanitise(root)} 中没有可识别的证据")
            )
    _follow(items, taken, slots, followers, root, run, notes)
    return Found(Evidence(tuple(_settled(items, slots, notes)), root), tuple(notes))


def discover_installed(root: str, given: tuple[tuple[str, str], ...], run: str = "") -> Found:
    """Discover with the installed slots: the entry point for a worker process."""
    from runbook.catalog import load_slots

    slots, followers = load_slots()
    return discover(root, given, slots, followers, run)


def _given(slot: str, path: str, slots: Mapping[str, Slot], run: str) -> Item:
    if slot not in slots:
        raise EvidenceError(f"unknown slot {slot!r}", f"slots: {', '.join(slots)}")
    if slots[slot].holds == "path" and not os.path.exists(path):
        raise EvidenceError(f"{slots[slot].flag} {path}: no such file or folder", "check the path")
    return Item(slot, path, GIVEN, "given", run=run)


def _search(root: str, slots: Mapping[str, Slot], run: str, taken: set[str], notes: list[Text]) -> Iterator[Item]:
    """Yield an item for each recognised file and folder in `root`, breadth first, names in order.

    taken: slots that were given, about which nobody has to choose any more.
    """
    queue: deque[tuple[str, int]] = deque([(root, 0)])
    seen: set[tuple[int, int]] = set()
    unread: list[str] = []
    skipped: list[str] = []
    equal: dict[tuple[str, ...], list[str]] = {}
    budget = ENTRIES
    home, ends = os.path.realpath(root), time.monotonic() + SECONDS
    while queue:
        path, depth = queue.popleft()
        if time.monotonic() > ends:
            notes.append(
                Text(
                    f"stopped looking after {SECONDS:g} s, at {sanitise(path)}; give what is missing by slot",
                    f"搜索 {SECONDS:g} 秒后停止于 {sanitise(path)}；缺少的证据请按证据槽指定",
                )
            )
            break
        candidate = _candidate(path, seen, unread)
        if candidate is None:
            continue
        known = opinions(candidate, slots)
        best = known[0] if known else None
        if best is not None:
            slot, match = best
            rivals = tuple(name for name, other in known if other.score == match.score)
            if len(rivals) > 1 and not taken & set(rivals):
                equal.setdefault(rivals, []).append(path)
            yield Item(slot, path, match.why, "found", run=run)
        closed = best is not None and best[1].closed
        leads_out = depth > 0 and _leads_out(path, home)  # RUN may be a link itself: `latest`
        looks_inside = candidate.is_dir and depth < DEPTH and not closed and not leads_out
        inside = sorted(name for name in candidate.names if name not in SKIPPED) if looks_inside else []
        unread += [f"{path}: {trouble}" for trouble in candidate.troubles]
        if len(inside) > budget:
            skipped.append(path)
        inside = inside[:budget]
        budget -= len(inside)
        queue.extend((os.path.join(path, name), depth + 1) for name in inside)
    notes += _limits(unread, skipped)
    notes += (_equal(rivals, paths, slots) for rivals, paths in equal.items())


def _candidate(path: str, seen: set[tuple[int, int]], unread: list[str]) -> Candidate | None:
    """Return the file or folder at `path`; None for what is unreadable, seen already, a pipe or a device."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):  # a dangling link is ordinary
            unread.append(f"{path}: {error.strerror}")
        return None
    if not _is_utf8(path):
        unread.append(f"{path}: {NOT_UTF8}")
        return None
    is_dir, mark = os.path.isdir(path), (status.st_dev, status.st_ino)
    if is_dir and mark in seen:
        return None
    seen.add(mark)
    if not is_dir and not os.path.isfile(path):
        return None
    return Candidate(path, is_dir, 0 if is_dir else status.st_size)


def _leads_out(path: str, home: str) -> bool:
    """Return whether `path` is a link to a folder that holds RUN `home`: behind it lies the rest of the machine."""
    if not os.path.islink(path):
        return False
    target = os.path.realpath(path)
    return os.path.commonpath((target, home)) == target


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _limits(unread: Sequence[str], skipped: Sequence[str]) -> Iterator[Text]:
    """Yield what was not seen, each kind once: what was not seen is not the same as what is not there."""
    if unread:
        shown, more = sanitise("; ".join(unread[:3])), len(unread) - 3
        yield Text(
            f"could not be read: {shown}" + (f"; and {more} more" if more > 0 else ""),
            f"无法读取：{shown}" + (f"；另有 {more} 项" if more > 0 else ""),
        )
    if skipped:
        yield Text(
            f"looked at {ENTRIES} entries only; the rest of {sanitise(skipped[0])} was not searched",
            f"只查看了 {ENTRIES} 个条目，{sanitise(skipped[0])} 的其余部分未搜索",
        )


def _equal(rivals: tuple[str, ...], paths: Sequence[str], slots: Mapping[str, Slot]) -> Text:
    """Return the note about candidates that several slots know equally well."""
    shown = ", ".join(sanitise(path) for path in paths[:3])
    more = len(paths) - 3
    first, flags = rivals[0], " / ".join(f"{slots[name].flag} PATH" for name in rivals)
    return Text(
        f"{shown}{f' and {more} more' if more > 0 else ''} may be {' or '.join(rivals)}; taken as {first}, "
        f"choose with {flags}",
        f"{shown}{f' 等共 {len(paths)} 项' if more > 0 else ''} 可能是 {' 或 '.join(rivals)}；按 {first} 处理，"
        f"可用 {flags} 指定",
    )


def recognise(candidate: Candidate, slots: Mapping[str, Slot]) -> tuple[str, Match] | None:
    """Return the slot that takes this candidate, and its match; None when no slot knows it."""
    return next(iter(opinions(candidate, slots)), None)


def opinions(candidate: Candidate, slots: Mapping[str, Slot]) -> list[tuple[str, Match]]:
    """Return the slots that know this candidate with their matches, the best first, equals in declared order.

    A recogniser that raises does not know the candidate; one that raises what no content explains is told of.
    """
    known: list[tuple[str, Match]] = []
    for name, slot in slots.items():
        if slot.recognise is None:
            continue
        try:
            match = slot.recognise(candidate)
        except (OSError, ValueError, IndexError, KeyError, RecursionError):
            continue
        except Exception as error:
            candidate.troubles.append(f"{name}: {error!r}")
            continue
        if match is not None:
            known.append((name, match))
    return sorted(known, key=lambda pair: -pair[1].score)


def _follow(
    items: list[Item],
    taken: set[str],
    slots: Mapping[str, Slot],
    followers: Sequence[Follower],
    root: str,
    run: str,
    notes: list[Text],
) -> None:
    """Append what the items name, resolved where it can be, as missing where it cannot; and what followers note."""
    known = {(item.slot, os.path.realpath(item.path)) for item in items}
    fresh = list(items)
    for _ in range(ROUNDS):
        named: list[Item] = []
        for item in fresh:
            full = {one.slot for one in (*items, *named) if not one.missing}
            asked = [one for one in followers if not one.fills or one.fills not in full | taken]
            for reference in _references(item, asked):
                if isinstance(reference, Text):
                    notes.append(reference)
                    continue
                if reference.slot in taken or reference.slot not in slots:
                    continue
                path, there = resolve(reference.path, (reference.near, root))
                if not _is_utf8(path):
                    path, there = sanitise(path), False
                mark = (reference.slot, os.path.realpath(path))
                if mark not in known:
                    known.add(mark)
                    named.append(Item(reference.slot, path, reference.why, "named", not there, run))
        if not named:
            return
        items.extend(named)
        fresh = [item for item in named if not item.missing]


def _references(item: Item, followers: Iterable[Follower]) -> Iterator[Reference | Text]:
    for follower in followers:
        if follower.slot == item.slot and not item.missing:
            try:
                yield from follower.follow(item)
            except (OSError, ValueError, RecursionError):
                continue


def resolve(path: str, near: Iterable[str]) -> tuple[str, bool]:
    """Return where `path` is and whether it is there: as written, else relative to each folder of `near`."""
    if os.path.exists(path):
        return path, True
    for folder in near:
        if folder and not os.path.isabs(path):
            candidate = os.path.join(folder, path)
            if os.path.exists(candidate):
                return candidate, True
    return path, False


def _settled(items: list[Item], slots: Mapping[str, Slot], notes: list[Text]) -> Iterator[Item]:
    """Yield the items in order.

    Of a slot that holds one, the item that another names goes first, and equals are told.
    """
    for name, slot in slots.items():
        mine = [item for item in items if item.slot == name]
        present = [item for item in mine if not item.missing]
        if not slot.many and len(present) > 1:
            present.sort(key=lambda item: ("given", "named", "found").index(item.origin))
            if present[0].origin == present[1].origin:
                paths = ", ".join(sanitise(item.path) for item in present[:4])
                notes.append(
                    Text(
                        f"several candidates for {name}: {paths}; the first is used, choose with {slot.flag}",
                        f"{name} 有多个候选：{paths}；使用第一个，可用 {slot.flag} 指定",
                    )
                )
        yield from present
        yield from (item for item in mine if item.missing)

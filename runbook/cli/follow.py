"""Goes on watching a run after its triage: what grew is asked again, and what that changed is told in a line.

Used by `triage --follow`. Bounded in what it costs: a look takes some `stat` calls in a worker; a round of probes is
followed by a pause REST times as long as it took; nothing is kept but the last picture.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from runbook import watch
from runbook.cli import desks
from runbook.errors import RunbookError
from runbook.finding import Finding
from runbook.glyphs import STANDINGS
from runbook.session.desk import Desk
from runbook.triage import Standing
from runbook.watch import Change, Kind, Mark, Picture

POLL = 2.0
"""Seconds between two looks."""
REST = 4.0
"""Times as long as the last round took, until the next begins: at most a fifth of the time is spent on probes."""
LOOK_DEADLINE = 30.0
"""Seconds after which a look at the files is given up: the disk hangs, and the next one may not."""
NEW_EVIDENCE = 15
"""Looks between two searches for new evidence deep in RUN; what is new in RUN itself is seen at once."""
QUIET = 10.0
"""Seconds without growth after which a run that said that it ended is believed."""
TOGETHER = 3
"""Checks that say the same for the same reason from which on they are told in one line."""
NAMED = 3
"""Checks that such a line names."""
FIRST_LOOK = 3.0
"""Seconds that the first look may take, the start of its process included."""


def first_look(desk: Desk) -> list[Finding]:
    """Return what the early probes see at once; those that are not done within FIRST_LOOK are left out."""
    early = [name for name, probe in desk.catalog.probes.items() if probe.early]
    early = [
        name for name in early if all(desk.state.evidence("").has(need) for need in desk.catalog.probes[name].needs)
    ]
    said: list[Finding] = []
    over = threading.Event()

    def done(finding: Finding) -> None:
        said.append(finding)
        if len(said) == len(early):
            over.set()

    jobs = [desk.glance(name, done) for name in early]
    if jobs:
        over.wait(FIRST_LOOK)
    for job in jobs:
        job.cancel()
    return [finding for finding in said if finding.verdict.decides]


def look(desk: Desk, root: str) -> dict[str, Mark] | None:
    """Return the marks of all evidence and of RUN itself, None when the disk does not answer."""
    paths = tuple(dict.fromkeys(item.path for item in desk.state.items if not item.run and _is_path(desk, item.slot)))
    found = desk.fetch(watch.marks, (paths, root), LOOK_DEADLINE)
    return found if isinstance(found, dict) else None


def follow(
    desk: Desk,
    root: str,
    pairs: tuple[tuple[str, str], ...],
    probes: list[str],
    seen: dict[str, Mark],
    tell: Callable[[tuple[Change, ...]], None],
    *,
    until_end: bool,
) -> None:
    """Watch until Ctrl-C, or with `until_end` until the run has ended and nothing grows.

    probes: what triage asks. seen: what `look` gave before they were asked, so that nothing is missed. tell: hears what
    each round changed. Raises KeyboardInterrupt, and SessionError.
    """
    before = _picture(desk)
    grew, looks, pause = time.monotonic(), 0, POLL
    while True:
        time.sleep(pause)
        looks += 1
        now = look(desk, root)
        if now is None:
            continue
        if root and (looks % NEW_EVIDENCE == 0 or now.get(root) != seen.get(root)):
            with contextlib.suppress(RunbookError):  # what was found before is still there to be watched
                desks.look_again(desk, root, pairs)
            now = look(desk, root) or now
        slots = watch.changed_slots(desk.state.items, seen, now)
        seen, pause = now, POLL
        if slots:
            grew = began = time.monotonic()
            desks.ask_all(desk, _due(desk, slots, probes))
            pause = max(POLL, REST * (time.monotonic() - began))
            after = _picture(desk)
            if changed := watch.changes(before, after):
                tell(changed)
            before = after
        elif until_end and _over(desk) and time.monotonic() - grew >= QUIET:
            return


def lines(changes: Sequence[Change], clock: str, language: str) -> Iterator[str]:
    """Yield the words for changes: a line each, but one for all checks that now say the same for the same reason.

    That is what they do when a file is gone which all of them read.
    """
    alike: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        if (key := _alike(change)) is not None:
            alike.setdefault(key, []).append(change)
    for change in changes:
        key = _alike(change)
        group = alike[key] if key is not None else [change]
        if len(group) < TOGETHER:
            yield line(change, clock, language)
        elif change is group[0]:
            yield _together(group, clock, language)


def _alike(change: Change) -> tuple[str, str] | None:
    """Return what makes two answers the same, None for any other change."""
    return (change.now, change.why.en) if change.kind is Kind.ANSWER and change.why is not None else None


def _together(group: Sequence[Change], clock: str, language: str) -> str:
    """Return the words for checks that now say the same."""
    zh, first = language == "zh", group[0]
    names = ", ".join(change.subject for change in group[:NAMED]) + (", …" if len(group) > NAMED else "")
    words = (
        f"{clock} {len(group)} 项检查（{names}）现在的结论" if zh else f"{clock} {len(group)} checks ({names}) now say"
    )
    why = first.why.say(language) if first.why is not None else ""
    return f"{words} {first.now}{'：' if zh else ': '}{why}"


def line(change: Change, clock: str, language: str) -> str:
    """Return the words for one change."""
    zh = language == "zh"
    if change.kind is Kind.STANDING:
        now = _standing(change.now, language)
        words = f"{clock} {'原因' if zh else 'cause'} {change.subject} {'现为' if zh else 'now'} {now}"
    elif change.kind is Kind.RANKING:
        words = f"{clock} {'排序现为' if zh else 'ranking now'} {change.now}"
    else:
        words = f"{clock} {change.subject} {'现在的结论' if zh else 'now says'} {change.now}"
    if change.was:
        was = _standing(change.was, language) if change.kind is Kind.STANDING else change.was
        words += f"（之前：{was}）" if zh else f" (was {was})"
    if change.why is not None:
        words += f"{'：' if zh else ': '}{change.why.say(language)}"
    if change.citation is not None and change.citation.line is not None:
        words += f"  {os.path.basename(change.citation.path)}:{change.citation.line}"
    return words


def _standing(value: str, language: str) -> str:
    return STANDINGS[Standing(value)].words.say(language)


def _is_path(desk: Desk, slot: str) -> bool:
    return slot in desk.catalog.slots and desk.catalog.slots[slot].holds == "path"


def _due(desk: Desk, slots: set[str], probes: list[str]) -> list[str]:
    """Return the probes that look at one of the slots, and those that were not asked yet."""
    known = desk.state.findings_of()
    return [
        name
        for name in probes
        if name not in known or slots & {slot for need in desk.catalog.probes[name].needs for slot in need.split("|")}
    ]


def _picture(desk: Desk) -> Picture:
    return Picture(desk.state.findings_of(), desk.report())


def _over(desk: Desk) -> bool:
    """Whether a probe says that the run has ended."""
    findings = desk.state.findings_of()
    return any(
        finding.answer in desk.catalog.probes[name].over
        for name, finding in findings.items()
        if name in desk.catalog.probes
    )

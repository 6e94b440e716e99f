"""What the ledger says about a confirmed cause, in words. Pure: the clock and the zone are given.

Invariant: everything that comes out of the ledger is sanitised here, for anybody who may write the folder may write it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from runbook.ledger.fingerprint import Fingerprint
from runbook.ledger.store import Confirmed, Entry, Mended
from runbook.text import Text, counted, sanitise

DAYS = (
    Text("Monday", "周一"),
    Text("Tuesday", "周二"),
    Text("Wednesday", "周三"),
    Text("Thursday", "周四"),
    Text("Friday", "周五"),
    Text("Saturday", "周六"),
    Text("Sunday", "周日"),
)


@dataclass(frozen=True)
class Sighting:
    """What sessions over other runs know of a confirmed cause.

    times: runs in which it was confirmed with the same fingerprint. others: those with other lines only.
    first, last: seconds since the epoch of the earliest and the latest of the former. session, root: of the latest.
    fixed: what a person said fixed it, in session fixed_in; "" when nobody did.
    """

    times: int
    others: int = 0
    first: float = 0.0
    last: float = 0.0
    session: str = ""
    root: str = ""
    fixed: str = ""
    fixed_in: str = ""


def sighting(entries: Sequence[Entry], made: Fingerprint, session: str, run: str = "") -> Sighting | None:
    """Return what the ledger knows of a fingerprint, None when nothing.

    session: the one at hand; it and the others over the same run are one incident, and are left out. run: identity of
    its run, "" where it is not known. An entry that names no run counts as a run of its own.
    """
    every = [one for one in entries if isinstance(one, Confirmed) and one.cause == made.cause]
    here = {one.run for one in every if one.session == session and one.run} | ({run} if run else set())
    every = [one for one in every if one.session != session and one.run not in here]
    mine = {one.session: one for one in every if one.print == made.id}
    alike = sorted({_run(one): one for one in sorted(mine.values(), key=_time)}.values(), key=_time)
    elsewhere = {_run(one) for one in every} - {_run(one) for one in every if one.print == made.id}
    if not alike:
        return Sighting(0, len(elsewhere)) if elsewhere else None
    fixes = [
        one
        for one in entries
        if isinstance(one, Mended) and one.session in mine and one.cause in ("", made.cause) and one.words.strip()
    ]
    fix = max(fixes, key=lambda one: one.time, default=Mended(0.0, "", "", ""))
    last = alike[-1]
    return Sighting(
        len(alike),
        len(elsewhere),
        min(one.time for one in mine.values()),
        last.time,
        sanitise(last.session, 80),
        sanitise(last.root, 80),
        sanitise(fix.words, 300),
        sanitise(fix.session, 80),
    )


def _run(one: Confirmed) -> tuple[str, str]:
    return ("run", one.run) if one.run else ("session", one.session)


def _time(one: Confirmed) -> float:
    return one.time


def told(
    seen: Sighting, now: float, language: str, *, zone: dt.tzinfo | None = None, weekdays: bool = True
) -> tuple[str, ...]:
    """Return a sighting in at most two lines.

    now: seconds since the epoch. zone: whose days are meant, None for this machine's. weekdays: name the days of the
    last week; without it every day is a date, for what is read much later.
    """
    lines = []
    if seen.times:
        lines.append(_seen(seen, _day(seen.first, now, zone, weekdays=weekdays)).say(language))
    if seen.others:
        times = "once" if seen.others == 1 else f"{seen.others} times"
        words = Text(f"the same cause with other lines: {times}", f"同一原因但日志行不同：{seen.others} 次")
        lines.append(words.say(language))
    return tuple(lines)


def _seen(seen: Sighting, day: Text) -> Text:
    where = f"{seen.session} ({seen.root})" if seen.root else seen.session
    today = day.en == "today"
    if seen.times == 1:
        en = f"seen once before, {'today' if today else f'on {day.en}'}"
        zh = f"此前见过 1 次（{day.zh}）"
    else:
        en = f"seen {counted(seen.times, 'time')} {'today' if today else f'since {day.en}'}"
        zh = f"{'今天' if today else f'自{day.zh}以来'}见过 {seen.times} 次"
    if not seen.fixed:
        last = "" if seen.times == 1 else "last "
        return Text(f"{en}; {last}in session {where}", f"{zh}；{'' if seen.times == 1 else '最近一次：'}会话 {where}")
    fixed = seen.fixed.rstrip(".。 ")
    return Text(
        f"{en}; fixed last time by: {fixed} (session {seen.fixed_in})",
        f"{zh}；上次的修复：{fixed}（会话 {seen.fixed_in}）",
    )


def _day(time: float, now: float, zone: dt.tzinfo | None, *, weekdays: bool) -> Text:
    """Return the day of `time`: today, a weekday where that is unambiguous, else a date."""
    then, today = (dt.datetime.fromtimestamp(t, dt.timezone.utc).astimezone(zone).date() for t in (time, now))
    ago = (today - then).days
    if weekdays and ago == 0:
        return Text("today", "今天")
    if weekdays and 0 < ago < 7:
        return DAYS[then.weekday()]
    return Text(then.isoformat(), then.isoformat())

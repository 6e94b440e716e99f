"""Tests of runbook.ledger.telling: how often, since when, and what fixed it, in words."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.ledger.fingerprint import Fingerprint
from runbook.ledger.store import LATEST, Confirmed, Entry, Mended
from runbook.ledger.telling import Sighting, sighting, told
from tests.helpers import hostile_text, is_safe

PRINT = Fingerprint("aa", "boom", "p", "boom at #")
UTC = dt.timezone.utc


def at(day: int, hour: int = 12) -> float:
    """Return a time in November 2026, whose first day is a Sunday, as seconds since the epoch."""
    return dt.datetime(2026, 11, day, hour, tzinfo=UTC).timestamp()


NOW = at(27)
"""A Friday."""


def seen(session: str, time: float, print: str = "aa", cause: str = "boom") -> Confirmed:
    """Return an entry."""
    return Confirmed(time, session, f"run-{session}", print, cause, "f", "n", "p", "boom at #")


ENTRIES: list[Entry] = [
    seen("a", at(24)),
    seen("b", at(25)),
    seen("b", at(25), print="bb"),
    seen("c", at(26), print="bb"),
    seen("d", at(26), print="cc", cause="other"),
    Mended(at(26), "a", "boom", "reseated the cable."),
    Mended(at(27), "d", "", "of another cause"),
    Mended(at(27), "b", "other", "of another cause in b"),
]


def test_other_sessions_are_counted() -> None:
    """The session at hand does not count; the same cause with other lines counts apart, once a session."""
    assert sighting(ENTRIES, PRINT, "a") == Sighting(1, 1, at(25), at(25), "b", "run-b")
    known = sighting(ENTRIES, PRINT, "")
    assert known == Sighting(2, 1, at(24), at(25), "b", "run-b", "reseated the cable.", "a")
    assert sighting(ENTRIES, PRINT, "c") == Sighting(2, 0, at(24), at(25), "b", "run-b", "reseated the cable.", "a")


def test_nothing_known_is_nothing_said() -> None:
    """A cause that no other session confirmed has no sighting."""
    assert sighting([], PRINT, "") is None
    assert sighting([seen("a", at(1))], PRINT, "a") is None
    assert sighting([seen("a", at(1), cause="other", print="zz")], PRINT, "") is None
    assert sighting([Mended(at(1), "a", "boom", "x")], PRINT, "") is None


@pytest.mark.parametrize(
    ("known", "en", "zh"),
    [
        (
            Sighting(3, 0, at(24), at(26), "s-9", "run-4", "replaced the cable.", "s-7"),
            ("seen 3 times since Tuesday; fixed last time by: replaced the cable (session s-7)",),
            ("自周二以来见过 3 次；上次的修复：replaced the cable（会话 s-7）",),
        ),
        (
            Sighting(1, 2, at(27, 9), at(27, 9), "s-9", "run-4"),
            ("seen once before, today; in session s-9 (run-4)", "the same cause with other lines: 2 times"),
            ("此前见过 1 次（今天）；会话 s-9 (run-4)", "同一原因但日志行不同：2 次"),
        ),
        (
            Sighting(2, 0, at(20, 13), at(26), "s-9"),
            ("seen 2 times since 2026-11-20; last in session s-9",),
            ("自2026-11-20以来见过 2 次；最近一次：会话 s-9",),
        ),
        (Sighting(0, 1), ("the same cause with other lines: once",), ("同一原因但日志行不同：1 次",)),
    ],
)
def test_the_words(known: Sighting, en: tuple[str, ...], zh: tuple[str, ...]) -> None:
    """Weekdays for less than a week, dates before that (a Friday is no "Friday" a week later), in both languages."""
    assert told(known, NOW, "en", zone=UTC) == en
    assert told(known, NOW, "zh", zone=UTC) == zh


def test_what_is_read_much_later_has_dates() -> None:
    """A ticket names no weekday; a clock that is behind the entry makes a date as well."""
    known = Sighting(2, 0, at(27), at(27), "s")
    assert told(known, NOW, "en", zone=UTC, weekdays=False) == ("seen 2 times since 2026-11-27; last in session s",)
    assert told(known, at(25), "en", zone=UTC) == ("seen 2 times since 2026-11-27; last in session s",)


def test_days_are_those_of_the_reader() -> None:
    """What is today at one place is yesterday at another."""
    late = Sighting(1, 0, at(26, 23), at(26, 23), "s")
    east = dt.timezone(dt.timedelta(hours=8))
    assert told(late, NOW, "en", zone=UTC)[0].startswith("seen once before, on Thursday")
    assert told(late, NOW, "en", zone=east)[0].startswith("seen once before, today")


times = st.floats(0, LATEST - 86400, allow_nan=False)


@given(hostile_text, hostile_text, hostile_text, times, times)
def test_hostile_entries_are_safe_to_draw(session: str, root: str, words: str, time: float, now: float) -> None:
    """Whoever may write the ledger cannot reach the terminal through it, nor break it with a time."""
    entries: list[Entry] = [
        Confirmed(time, session, root, "aa", "boom", "f", "n", "p", words),
        Mended(time, session, "", words),
    ]
    known = sighting(entries, PRINT, "mine")
    assert known is not None
    for language in ("en", "zh"):
        assert all(is_safe(line) and "\n" not in line for line in told(known, now, language, zone=UTC))

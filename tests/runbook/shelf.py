"""A domain-free browser for the tests of the engine and of the fronts: shelves, the books on one, and the text of one.

Its pages are made up, so that what is drawn can be told beforehand; the log only has to be there.
"""

from __future__ import annotations

import time

from runbook.browse import Ask, Column, Depth, Jump, Level, Line, Page, Passage, Reading, Sheet, Track, browser, no_such
from runbook.evidence import Evidence
from runbook.text import Text

SHELVES = 12
SENTENCE = "the quick brown fox jumps over the lazy dog and then it rests below an old oak tree"
WORDS = SENTENCE.split()
PART = 60
"""Words of one window."""

LEVELS = (Level(0.2, "warn", Text("differs", "有差异")), Level(1.0, "bad", Text("disagrees", "分歧")))


def both(en: str, zh: str = "") -> Text:
    """Return words in both languages."""
    return Text(en, zh or en)


def value_of(place: int) -> float | None:
    """Return the value of the word at a place: every 23rd is far off, every 7th a little, every 11th has none."""
    if place % 11 == 10:
        return None
    return -2.5 if place % 23 == 22 else 0.4 if place % 7 == 6 else 0.01


def shelves(ask: Ask) -> Sheet:
    """Return twelve shelves; the later half comes when the page is asked again."""
    known = SHELVES if ask.again else SHELVES // 2
    lines = tuple(
        Line(
            str(i),
            (i, f"row {i}", 3.5 if i < known else None, i * i / 100 if i < known else None),
            "bad" if i == 9 and i < known else "",
        )
        for i in range(SHELVES)
    )
    columns = (
        Column("shelf", both("shelf", "书架"), number=True),
        Column("place", both("place", "位置")),
        Column("weight", both("weight", "重量"), number=True, unit="kg", digits=1, plotted=True),
        Column("dust", both("dust", "灰尘"), number=True, percent=True, plotted=True),
    )
    return Sheet(both("Shelves", "书架"), columns, lines, over="shelf", done=known / SHELVES)


def books(shelf: str, ask: Ask) -> Sheet:
    """Return the books of a shelf; the word "secret" stands in the text of the third one only."""
    titles = ("Bread", "Alps [red]", "Chess", "Deep \x1b[2Jsea")
    lines = tuple(
        Line(str(i), (i, title, pages, None if i == 3 else i - 1.5), "warn" if i == 2 else "")
        for i, (title, pages) in enumerate(zip(titles, (120, 80, 200, 95), strict=True))
        if not ask.find or (ask.find == "secret" and i == 2)
    )
    columns = (
        Column("book", both("book", "书"), number=True),
        Column("title", both("title", "书名")),
        Column("pages", both("pages", "页数"), number=True),
        Column("mark", both("mark", "评分"), number=True),
    )
    return Sheet(both(f"Books of shelf {shelf}", f"书架 {shelf} 的书"), columns, lines, order="-pages", finds=True)


def text(book: str, ask: Ask) -> Reading:
    """Return a text of 150 words in windows of 60."""
    count = 150
    begin, end = ask.part * PART, min(count, (ask.part + 1) * PART)
    pieces = [f"{' ' if i % PART else ''}{WORDS[i % len(WORDS)]}" for i in range(count)]
    values = [value_of(i) for i in range(count)]
    jumps = tuple(
        Jump(i // PART, 1 if i < PART else 0, i % PART, i, value, pieces[i])
        for i, value in enumerate(values)
        if value is not None and abs(value) >= 1
    )
    body = Passage(
        both("Text", "正文"),
        tuple(pieces[begin:end]),
        begin,
        tuple(values[begin:end]),
        (Track(both("left", "左"), tuple(float(i) for i in range(begin, end)), 1),),
        tuple(i - begin for i in range(begin, end) if values[i] is None),
        both("word", "词"),
    )
    preface = Passage(both("Preface", "前言"), ("To ", "the ", "reader.\n", "Be\x00ware."))
    passages = (preface, body) if ask.part == 0 else (body,)
    facts = ((both("author", "作者"), "A. [b]Nonym[/b]"), (both("place", "地点"), both("attic", "阁楼")))
    notes = (both("the binding is loose", "装订松动"),)
    return Reading(
        both(f"Book {book}", f"书 {book}"), passages, both("mine - theirs", "我 - 他"), "mm", LEVELS, jumps, 0,
        ask.part, -(-count // PART), facts, notes,
    )  # fmt: skip


@browser(
    "shelf",
    needs="log|scale",
    en="Library",
    zh="书库",
    depths=(Depth("shelf", both("shelf {id}", "书架 {id}")), Depth("book", both("book {id}", "书 {id}"))),
)
def shelf(evidence: Evidence, ask: Ask) -> Page:
    """Open the shelves, one of them, or a book."""
    if not ask.place:
        return shelves(ask)
    if ask.place[0] == "11":
        time.sleep(60)
    if not ask.place[0].isdigit() or int(ask.place[0]) >= SHELVES:
        raise no_such("shelf", ask.place[0], f"0 to {SHELVES - 1}")
    return books(ask.place[0], ask) if len(ask.place) == 1 else text(ask.place[1], ask)

"""What will leave, line by line, and what a person drops of it.

A person drops texts, not lines of a layout: the same text is gone from every part and every format. Everything here
is a pure function of a redacted transcript. Invariants: a text that is dropped is in no string of the transcript that
comes out; the numbers of the lines depend on nothing that was dropped, so that they stay while a person drops.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from runbook.picture import Cells
from runbook.text import CUT, Text
from runbook.ticket import transcript as tr
from runbook.ticket.span import PSEUDONYM
from runbook.ticket.units import FIXED, SECTIONS, Unit, row_text, units
from runbook.ticket.words import say

INSIDE_LEAST = 12
"""Bytes from which a dropped text is sought inside other texts too: two English words, four Chinese characters. A
shorter one ("yes", "8192") would be found in words that have nothing to do with it; it goes where it is a line, a cell
or a piece of a line that the tool put together."""

_SEAM = re.compile(r"( / | → |: |; |, |：|；|，|、)")
"""Where the tool puts pieces together in one line: notes and answers in the timeline, titles in a list."""

_FIELDS: dict[str, Text] = {
    "answer": Text("answer", "答案"),
    "answers": Text("answer", "答案"),
    "asked": Text("flow that was asked", "已询问的流程"),
    "change": Text("change", "改动"),
    "clear": Text("found in order", "确认正常"),
    "columns": Text("column names", "列名"),
    "command": Text("command", "命令"),
    "consequences": Text("consequence", "后果"),
    "curves": Text("curve", "曲线"),
    "edits": Text("edit", "修改"),
    "excerpt": Text("excerpt", "摘录"),
    "fix": Text("fix", "修复"),
    "guide": Text("guide", "指南"),
    "lacks": Text("what the run lacks", "该运行缺少的改动"),
    "left": Text("to be done by hand", "需手动完成"),
    "legend": Text("legend", "图例"),
    "limits": Text("limit", "上限"),
    "lines": Text("line", "行"),
    "link": Text("link", "链接"),
    "marks": Text("mark", "标记"),
    "name": Text("name", "名称"),
    "node": Text("node", "节点"),
    "notes": Text("note", "备注"),
    "overrules": Text("what it overrules", "被否决的答案"),
    "path": Text("path", "路径"),
    "question": Text("question", "问题"),
    "root": Text("run", "运行"),
    "row": Text("row", "行"),
    "say": Text("what to do", "操作"),
    "seen": Text("seen before", "曾经出现"),
    "settle_with": Text("what would settle it", "如何确定"),
    "shown": Text("measured", "测量值"),
    "slots": Text("wanted evidence", "所需证据"),
    "source": Text("source of the threshold", "阈值来源"),
    "summary": Text("finding", "发现"),
    "symptoms": Text("symptom", "症状"),
    "threshold": Text("threshold", "阈值"),
    "title": Text("title", "标题"),
    "told": Text("kept in the session", "会话中保存"),
    "unit": Text("unit", "单位"),
    "value": Text("value", "值"),
    "verify": Text("verify with", "验证"),
    "version": Text("version", "版本"),
    "what": Text("what happened", "事件"),
    "where": Text("where it stands", "目前状态"),
    "why": Text("reason", "原因"),
    "words": Text("what to do", "操作"),
    "x": Text("axis", "坐标轴"),
    "by": Text("closed by", "依据"),
}
"""Field to what a person calls it; a field that is not here goes by its own name."""


class Mark(msgspec.Struct, frozen=True):
    """A pseudonym in a line: text[start:end], and the kind of what it hides."""

    start: int
    end: int
    kind: str


class Line(msgspec.Struct, frozen=True):
    """A text that will leave, once however often it stands in the ticket.

    number: from 1. section: key of the heading below which it stands first. place: where it stands first, "" where the
    heading says enough; about: what it is there, in words. places: every place, each once. origin: whose words, see
    `units`. count: how often it stands in the ticket.
    """

    number: int
    section: str
    place: str
    about: str
    places: tuple[str, ...]
    text: str
    origin: str
    marks: tuple[Mark, ...] = ()
    count: int = 1


def preview(transcript: tr.Transcript) -> tuple[Line, ...]:
    """Return every text of a redacted transcript in the order of the ticket, equal ones as one line."""
    return listed(units(transcript), transcript.language)


def listed(texts: Iterable[Unit], language: str) -> tuple[Line, ...]:
    """Return redacted texts in their order, equal ones as one line."""
    found: dict[str, list[Unit]] = {}
    for unit in texts:
        found.setdefault(unit.text, []).append(unit)
    return tuple(
        Line(
            number,
            same[0].section,
            same[0].place,
            _FIELDS[what].say(language) if (what := same[0].what) in _FIELDS else what,
            tuple(dict.fromkeys(unit.place for unit in same if unit.place)),
            text,
            same[0].origin,
            marks(text),
            len(same),
        )
        for number, (text, same) in enumerate(found.items(), 1)
    )


def marks(text: str) -> tuple[Mark, ...]:
    """Return where pseudonyms stand in a text."""
    if "-" not in text:
        return ()
    return tuple(Mark(m.start(), m.end(), m[0].rpartition("-")[0]) for m in PSEUDONYM.finditer(text))


class Dropping:
    """Takes dropped texts out of strings.

    A line that is a dropped text, or the cut beginning of one, goes whole; inside a longer line a dropped text goes
    that is `long_enough`. Blanks count as one.
    """

    def __init__(self, dropped: Collection[str], language: str) -> None:
        """Drop these texts of redacted strings; a fixed phrase in `language` takes their place."""
        self.phrase = say("left_out_by_sender", language)
        self._whole = {folded for text in dropped if (folded := _folded(text))}
        self._inside = [_Needle.of(text) for text in sorted(self._whole, key=len, reverse=True) if long_enough(text)]
        self._known: dict[str, str] = {}
        self.hit: set[str] = set()

    def line(self, line: str) -> str:
        """Return a line without what was dropped."""
        if line not in self._known:
            self._known[line] = self._without(line)
        return self._known[line]

    def text(self, text: str) -> str:
        """Return a text of several lines without what was dropped."""
        if "\n" not in text:
            return self.line(text)
        return "\n".join(self.line(line) for line in text.split("\n"))

    def takes(self, text: str) -> bool:
        """Return whether a text goes as a whole."""
        return _folded(text) in self._whole

    def row(self, cells: tuple[str, ...]) -> tuple[str, ...]:
        """Return the cells of a row; one that was dropped as a whole keeps its number of cells."""
        if len(cells) > 1 and self.takes(row_text(cells)):
            self.hit.add(_folded(row_text(cells)))
            return (self.phrase, *("" for _ in cells[1:]))
        return tuple(self.text(cell) for cell in cells)

    def _without(self, line: str) -> str:
        folded = _folded(line)
        if folded in self._whole:
            self.hit.add(folded)
            return self.phrase
        for needle in self._inside:
            if needle.stem in folded:
                self.hit.add(needle.text)
                # of a text that was cut nobody knows the end, so all of the line goes
                line = self.phrase if needle.cut else needle.pattern.sub(lambda _: self.phrase, line)
            elif folded.endswith(CUT) and long_enough(folded) and needle.text.startswith(folded[: -len(CUT)]):
                self.hit.add(needle.text)
                return self.phrase
        return "".join(map(self._piece, _SEAM.split(line)))

    def _piece(self, piece: str) -> str:
        folded = _folded(piece)
        if folded not in self._whole:
            return piece
        self.hit.add(folded)
        return self.phrase


class _Needle(NamedTuple):
    """A dropped text. stem: what is sought of it, all of it unless it was cut. pattern: matches it with any blanks."""

    text: str
    stem: str
    cut: bool
    pattern: re.Pattern[str]

    @staticmethod
    def of(text: str) -> _Needle:
        """Return the needle for a folded text."""
        cut = text.endswith(CUT)
        stem = text[: -len(CUT)].rstrip() if cut else text
        return _Needle(text, stem, cut, re.compile(r"\s+".join(map(re.escape, stem.split()))))


def long_enough(text: str) -> bool:
    """Return whether a text is sought inside others."""
    return len(_folded(text).removesuffix(CUT).encode("utf-8", "replace")) >= INSIDE_LEAST


def holds(line: str, text: str) -> bool:
    """Return whether a line holds a whole other text: as a piece, or a long one anywhere."""
    whole, part = _folded(line), _folded(text)
    if not part or part == whole or part not in whole:
        return False
    return long_enough(part) or part in map(_folded, _SEAM.split(line))


def without(transcript: tr.Transcript, dropped: Collection[str]) -> tr.Transcript:
    """Return a redacted transcript without the dropped texts, and a line in its redaction report that says so."""
    if not dropped:
        return transcript
    dropping = Dropping(dropped, transcript.language)
    changed: dict[str, Any] = {}
    inside: dict[str, int] = {}
    for section, fields in SECTIONS:
        for name in fields:
            old = getattr(transcript, name)
            changed[name] = new = _mapped(old, dropping)
            if new != old:
                inside[section] = inside.get(section, 0) + _places(old, new)
    if not inside:
        return transcript
    language = transcript.language
    told = tr.Hidden(
        say("hidden.dropped", language),
        len(dropping.hit),
        sum(inside.values()),
        tuple(say(section, language) for section in inside),
    )
    return msgspec.structs.replace(transcript, **changed, redaction=(*transcript.redaction, told))


def remaining(text: str, dropped: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, dropped text) for each dropped text that is still in a finished export.

    Markup is undone as far as it may stand inside a text: escapes, entities, invisible characters, line breaks.
    """
    sought = {one: folded for one in dropped if long_enough(one) and (folded := _unmarked(one.removesuffix(CUT)))}
    if not sought:
        return
    lines = [(number, plain) for number, line in enumerate(text.splitlines(), 1) if (plain := _unmarked(line))]
    whole = " ".join(plain for _, plain in lines)
    starts = list(accumulate((len(plain) + 1 for _, plain in lines), initial=0))
    for wanted, folded in sought.items():
        at = whole.find(folded)
        if at >= 0:
            yield lines[bisect_right(starts, at) - 1][0], wanted


def _mapped(value: Any, dropping: Dropping) -> Any:
    """Return part of a transcript without what was dropped, in every string but words of closed sets."""
    if isinstance(value, str):
        return dropping.text(value)
    if isinstance(value, tr.Table):
        rows = tuple(dropping.row(row) for row in value.rows)
        return tr.Table(dropping.text(value.title), dropping.row(value.columns), rows)
    if isinstance(value, Cells):
        legend = tuple((code, dropping.text(words), role) for code, words, role in value.legend)
        labels, columns = tuple(map(dropping.text, value.rows)), tuple(map(dropping.text, value.columns))
        return Cells(dropping.text(value.title), labels, columns, value.cells, legend)
    if isinstance(value, msgspec.Struct):
        new = {
            field: _mapped(old, dropping)
            for field in value.__struct_fields__
            if (type(value), field) not in FIXED and (old := getattr(value, field)) is not None
        }
        if isinstance(value, tr.Number) and new["shown"] != value.shown:
            new["value"] = None
        if isinstance(value, tr.Link | tr.Said) and dropping.takes(f"{value.question} → {value.answer}"):
            new["question"] = new["answer"] = dropping.phrase  # the timeline has both as one text
        return msgspec.structs.replace(value, **new)
    if isinstance(value, tuple):
        return tuple(_mapped(one, dropping) for one in value)
    return value


def _places(old: Any, new: Any) -> int:
    """Return how many strings of `old`, or rows of its tables, read differently in `new`."""
    if old == new:
        return 0
    if isinstance(old, str):
        return 1
    if isinstance(old, tr.Table):
        parts = [(old.title, new.title), (old.columns, new.columns), *zip(old.rows, new.rows, strict=True)]
        return sum(1 for before, after in parts if before != after)
    if isinstance(old, msgspec.Struct):
        return sum(_places(getattr(old, field), getattr(new, field)) for field in old.__struct_fields__)
    if isinstance(old, tuple):
        return sum(_places(*pair) for pair in zip(old, new, strict=True))
    return 0


def _folded(text: str) -> str:
    return " ".join(text.split())


_MARKS = re.compile("[\\\\\u200b\u00ad\u2060\ufeff]")


def _unmarked(text: str) -> str:
    return _folded(_MARKS.sub("", html.unescape(text)))

"""Hides what must not leave, under pseudonyms that are the same throughout an export.

It works on the strings of a transcript before they are laid out, so that tables and quotes stay whole. Invariants:
nothing found is left in any string; a value has one pseudonym wherever it stands; redacting again changes nothing;
the key (who is user-1) is returned beside the text, never in it, and secrets are not even in the key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from runbook.ticket import credentials, names, near
from runbook.ticket import transcript as transcript_module
from runbook.ticket.addresses import addresses
from runbook.ticket.commands import commands
from runbook.ticket.contacts import contacts
from runbook.ticket.sought import standing, variants
from runbook.ticket.span import ADDRESS, CHOSEN, HOST, KINDS, MAIL, PSEUDONYM, SECRET, USER, Finder, Span
from runbook.ticket.transcript import Hidden, Transcript
from runbook.ticket.wordlists import GENERIC, NO_USERS
from runbook.ticket.words import WORDS, say

FINDERS: tuple[Finder, ...] = (
    credentials.find, commands, names.mails, contacts, addresses, names.hosts, names.users,
)  # fmt: skip

_ESCAPE_END = re.compile(r"%(?:2[Ff]|3[AaDd]|[24]0)$")

_PASSES = 6
"""A replacement may bring two pieces together that mean something; so it is repeated until nothing is found."""

_AS_IT_IS = frozenset({"schema", "language", "session", "walked", "began", "changed", "redaction"})
"""Fields of the transcript that no evidence and no person wrote; everything else is redacted."""

_PARTS = {
    "title": "problem",
    "root": "problem",
    "symptoms": "problem",
    "notes": "problem",
    "causes": "standing",
    "clear": "standing",
    "asked": "standing",
    "problems": "evidence",
    "checks": "checked",
    "experiments": "experiments",
    "matrices": "experiments",
    "runs": "experiments",
}
"""Field of the transcript to the part of the ticket in which it is read, where that has another name."""


@dataclass(frozen=True)
class Identity:
    """What is private before any text is read: login names, names of machines, words that a person chose to hide."""

    people: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()


@dataclass
class Key:
    """The key to the pseudonyms: (kind, value) to pseudonym. words: the values that are hidden wherever they stand."""

    names: dict[tuple[str, str], str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    last: Counter[str] = field(default_factory=Counter)

    def of(self, kind: str, value: str) -> str:
        """Return the pseudonym of a value, a new one when it has none."""
        entry = (kind, canonical(kind, value))
        if entry not in self.names:
            self.last[kind] += 1
            self.names[entry] = f"{kind}-{self.last[kind]}"
        return self.names[entry]

    def to_keep(self) -> dict[str, dict[str, str]]:
        """Return what the session keeps, by kind: never a secret."""
        kept: dict[str, dict[str, str]] = {}
        for (kind, value), pseudonym in self.names.items():
            if kind != SECRET:
                kept.setdefault(kind, {})[value] = pseudonym
        return kept

    @staticmethod
    def kept(content: Mapping[str, Mapping[str, str]]) -> Key:
        """Return the key of an earlier export of the same session."""
        key = Key()
        for kind, values in content.items():
            for value, pseudonym in values.items():
                key.names[kind, value] = pseudonym
                key.reserve(pseudonym)
        return key

    def reserve(self, pseudonym: str) -> None:
        """Give no new value the number of a pseudonym that stands in a text already."""
        kind, _, number = pseudonym.rpartition("-")
        self.last[kind] = max(self.last[kind], int(number))


@dataclass(frozen=True)
class Redacted:
    """Texts without what was hidden.

    hidden_in: original text to the kinds that were hidden in it. used: kind to its pseudonyms.
    """

    texts: tuple[str, ...]
    key: Key
    hidden_in: dict[str, set[str]]
    used: dict[str, set[str]]


def redact_transcript(transcript: Transcript, identity: Identity, key: Key | None = None) -> tuple[Transcript, Key]:
    """Return the transcript with everything private hidden and its redaction report filled, and the key."""
    plain = msgspec.to_builtins(transcript)
    fields: list[str] = []
    texts: list[str] = []
    private = [name for name in plain if name not in _AS_IT_IS]
    for name in private:
        for text in _strings(plain[name]):
            fields.append(name)
            texts.append(text)
    result = redact(texts, identity, key, together([plain[name] for name in private]))
    new = iter(result.texts)
    for name in private:
        plain[name] = _replaced(plain[name], new)
    plain["redaction"] = _report(result, texts, fields, transcript.language)
    return msgspec.convert(plain, type(transcript)), result.key


def redact(
    texts: Sequence[str],
    identity: Identity = Identity(),
    key: Key | None = None,
    beside: Mapping[str, Sequence[Span]] | None = None,
) -> Redacted:
    """Return the texts with everything private hidden; see the module's invariants.

    beside: text to places in it that are private because of the texts around it.
    """
    key = key or Key()
    hidden_in: dict[str, set[str]] = {}
    used: dict[str, set[str]] = {}
    current = {text: text for text in texts}
    for text in current:
        for pseudonym in PSEUDONYM.findall(text):
            key.reserve(pseudonym)
    _learn_identity(identity, key)
    found: dict[str, list[Span]] = {}
    for _ in range(_PASSES):
        for text in current.values():
            if text not in found:
                found[text] = list(_found(text, (beside or {}).get(text, ())))
                _learn(text, found[text], key)
        changed = False
        known = standing(list(dict.fromkeys(current.values())), key.words)
        for original, text in current.items():
            merged = _merge([*found[text], *_free(text, known.get(text, ()))])
            if merged:
                changed = True
                current[original] = _hide(text, merged, key, used)
                hidden_in.setdefault(original, set()).update(span.kind for span in merged)
        if not changed:
            break
    return Redacted(tuple(current[text] for text in texts), key, hidden_in, used)


def canonical(kind: str, value: str) -> str:
    """Return the form under which a value is known: a machine is known by its first label, whatever domain follows."""
    if kind in (MAIL, ADDRESS, CHOSEN):
        return value.lower()
    if kind == HOST:
        short = value.lower().partition(".")[0]
        return short if names.is_host(short) and names.is_odd(short) else value.lower()
    return value


@cache
def common_words() -> frozenset[str]:
    """Return the words that are never sought as names: generic ones, and those the ticket is written with."""
    own = " ".join(words.en for words in WORDS.values()).lower()
    fields = (name for struct in _structures() for name in struct.__struct_fields__)
    return GENERIC | frozenset(re.findall(r"[a-z]+", own)) | frozenset(fields)


def _structures() -> tuple[type[msgspec.Struct], ...]:
    every = vars(transcript_module).values()
    return tuple(one for one in every if isinstance(one, type) and issubclass(one, msgspec.Struct))


def _learn_identity(identity: Identity, key: Key) -> None:
    for person in identity.people:
        if person not in NO_USERS and len(person) >= 2 and person.lower() not in common_words():
            key.words.setdefault(person, USER)
    for machine in identity.machines:
        for name in (machine, machine.partition(".")[0]):
            if names.is_host(name) and name.lower() not in common_words() and len(name) >= 3:
                key.words.setdefault(name, HOST)
    for word in identity.chosen:
        if word.strip():
            key.words.setdefault(word.strip(), CHOSEN)


def _found(text: str, beside: Sequence[Span]) -> Iterator[Span]:
    """Yield what the finders see, except what the redaction itself wrote."""
    for spans in (beside, *(finder(text) for finder in FINDERS)):
        yield from _free(text, spans)


def _free(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield what is left of places once pseudonyms are taken out of them."""
    ours: list[tuple[int, int]] | None = None
    for span in spans:
        if ours is None:
            ours = [match.span() for match in PSEUDONYM.finditer(text)] if "-" in text else []
        outside = _outside(text, span, ours)
        if outside is not None:
            yield outside


def _outside(text: str, span: Span, ours: Sequence[tuple[int, int]]) -> Span | None:
    """Return the part of a span that is no pseudonym; one that holds a pseudonym and other words stays whole."""
    held = False
    for start, end in ours:
        if span.start < end and start < span.end:
            if start <= span.start and span.end <= end:
                return None
            if span.start < start and span.end < end:
                span = span._replace(end=start, everywhere=False)
            elif start < span.start:
                span = span._replace(start=end, everywhere=False)
            else:
                held = True
    if span.start >= span.end:
        return None
    rest = PSEUDONYM.sub("", text[span.start : span.end]) if held else "x"
    return span if any(character.isalnum() for character in rest) else None


def _learn(text: str, spans: Iterable[Span], key: Key) -> None:
    for span in spans:
        value = text[span.start : span.end]
        if span.everywhere and value.lower() not in common_words() and not PSEUDONYM.search(value):
            for written in (value, *variants(value)):
                key.words.setdefault(written, span.kind)


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, those that overlap joined into one, of the first of their kinds in KINDS."""
    merged: list[Span] = []
    for span in sorted(span for span in spans if span.start < span.end):
        if merged and span.start < merged[-1].end:
            before = merged[-1]
            kind = min(before.kind, span.kind, key=KINDS.index)
            merged[-1] = Span(before.start, max(before.end, span.end), kind)
        else:
            merged.append(span)
    return merged


def _hide(text: str, merged: Iterable[Span], key: Key, used: dict[str, set[str]]) -> str:
    """Return the text with pseudonyms in place of the spans; "_" keeps one apart from a letter that it would touch."""
    hidden = ""
    position = 0
    pieces: list[str] = []
    for span in merged:
        pseudonym = key.of(span.kind, text[span.start : span.end])
        used.setdefault(span.kind, set()).add(pseudonym)
        between = text[position : span.start]
        before = (between or hidden)[-1:]
        pieces += (between, "_" if _touches(before) and not _ESCAPE_END.search(between) else "", pseudonym)
        if _touches(text[span.end : span.end + 1]):
            pieces.append("_")
        position, hidden = span.end, pieces[-1]
    return "".join((*pieces, text[position:]))


def _touches(character: str) -> bool:
    return character.isascii() and character.isalnum()


def together(parts: Sequence[Any]) -> dict[str, list[Span]]:
    """Return text to places in it that are private because of the strings beside it: in a list, in a table.

    parts: plain data, as `msgspec.to_builtins` gives it.
    """
    found: dict[str, list[Span]] = {}
    for strings, spans in _beside(parts):
        for number, span in spans:
            found.setdefault(strings[number], []).append(span)
    return found


def _beside(plain: Any) -> Iterator[tuple[Sequence[str], Iterator[tuple[int, Span]]]]:
    """Yield every list of strings in plain data with what is private in it, rows of tables under their columns, too."""
    if isinstance(plain, dict):
        columns: Sequence[str] = plain.get("columns") or ()
        for row in plain.get("rows", ()) if columns else ():
            yield row, near.of_columns(columns, row)
        for value in plain.values():
            yield from _beside(value)
    elif isinstance(plain, list | tuple):
        if len(plain) > 1 and all(isinstance(one, str) for one in plain):
            yield plain, near.between(plain)
        for value in plain:
            yield from _beside(value)


def _strings(plain: Any) -> Iterator[str]:
    """Yield every string in plain data, in order; the keys of mappings are names of fields and stay."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict):
        for value in plain.values():
            yield from _strings(value)
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from _strings(value)


def _replaced(plain: Any, new: Iterator[str]) -> Any:
    """Return plain data with its strings replaced, in the order of `_strings`."""
    if isinstance(plain, str):
        return next(new)
    if isinstance(plain, dict):
        return {name: _replaced(value, new) for name, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_replaced(value, new) for value in plain]
    return plain


def _report(result: Redacted, texts: Sequence[str], fields: Sequence[str], language: str) -> list[dict[str, Any]]:
    lines = []
    for kind in KINDS:
        telling = {text for text, kinds in result.hidden_in.items() if kind in kinds}
        if telling:
            inside = {field for field, text in zip(fields, texts, strict=True) if text in telling}
            parts = dict.fromkeys(_part(name, language) for name in fields if name in inside)
            hidden = Hidden(say(f"hidden.{kind}", language), len(result.used[kind]), len(telling), tuple(parts))
            lines.append(msgspec.to_builtins(hidden))
    return lines


def _part(name: str, language: str) -> str:
    """Return the heading of the part in which a field is read; its name where the ticket has no words for it."""
    key = _PARTS.get(name, name)
    return say(key, language) if key in WORDS else name

"""Sends a ticket: a plan that touches nothing, then an entry of the outbox, then the posts, one step after the other.

`plan` and `describe` are what a dry run needs; `post` sends a plan, `resume` what waits in the outbox. `post` and
`resume` wait for the network, so a user interface calls them on a worker thread; they touch nothing but the outbox and
call `report` on that thread. Invariants: what is posted is what the plan shows; an entry is on the disk before the
first connection; a step that may have been done is looked for before it is done again, and when it cannot be told
whether it was, nothing is posted; a session gets a second ticket at one place only when that is asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from runbook.errors import SessionError, UsageError
from runbook.text import Text, sanitise
from runbook.ticket.export import write_private
from runbook.ticket.outgoing import Attachment
from runbook.ticket.transcript import Hidden
from runbook.trackers import layout
from runbook.trackers.address import Address
from runbook.trackers.model import Attaches, Kind, Posted, Tracker
from runbook.trackers.outbox import (
    Content,
    Entry,
    Held,
    Step,
    digest_of,
    entries,
    hold,
    new_entry,
    outbox_dir,
    put,
    read,
)
from runbook.trackers.posted import check_first, keep
from runbook.trackers.ready import Ready
from runbook.trackers.registry import place_of
from runbook.trackers.tokens import Veil, secrets_for
from runbook.trackers.trouble import TrackerError, guarded

ATTEMPTS = 4
"""How often a step is tried within one call; the pauses between are 1, 2 and 4 seconds unless the server says more."""

LONGEST_WAIT = 30.0
"""Seconds that one call waits at a server's wish; for longer, the entry stays in the outbox."""

SKEW = 24 * 3600.0
"""Seconds by which clocks may differ: so much before the entry was made, posts are looked for."""

_URL_LIMIT = 1000

T = TypeVar("T")

Report = Callable[[Text], None]
Wait = Callable[[float], None]


@dataclass(frozen=True)
class Plan:
    """What would be sent, and where.

    kept: files that the tracker does not take, which stay in the session's folder under the names in the body. over:
    digest of what waits in the outbox under the same id and is replaced, "" for a new entry.
    """

    kind: Kind
    address: Address
    entry: Entry
    kept: tuple[Attachment, ...]
    hidden: tuple[Hidden, ...]
    over: str = ""


def plan(ready: Ready, kind: Kind, address: Address, *, now: float, again: bool = False) -> Plan:
    """Return what sending a ticket to an address means. Touches neither disk nor network.

    kind, address: as `registry.place_of` gives them. now: seconds since the epoch. again: another ticket is wanted of
    a session that was posted there. Raises UsageError when the tracker cannot take something that was asked for.
    """
    if ready.labels and (address.item or not kind.labels):
        what = "a comment has no labels" if address.item else f"a ticket in {kind.title} gets no labels this way"
        raise UsageError(f"{address}: {what}", "leave out --label")
    outgoing = ready.outgoing
    format, room = outgoing.format, kind.limit - layout.ROOM if kind.limit else 0
    comments: list[str] = []
    files: list[Attachment] = []
    kept: list[Attachment] = []
    for file in outgoing.attachments:
        if kind.attaches is not Attaches.NEVER:
            files.append(file)
            continue
        texts = layout.as_comments(file, room, format, ready.language)
        if texts is None:
            kept.append(file)
        else:
            comments += texts
    text = outgoing.text
    if kept:
        names = ", ".join(f"{file.name} ({layout.size_of(file.content)})" for file in kept)
        words = layout.KEPT.say(ready.language)
        text += "\n" + words.format(tracker=kind.title, names=names, session=ready.session) + "\n"
    linked = sum(len(file.name) + layout.ROOM for file in files) if kind.attaches is Attaches.FIRST else 0
    whole = len(layout.marked(text, layout.new_mark(), format)) + linked <= kind.limit
    first, *rest = [text] if whole else layout.pieces(text, max(room - linked, layout.ROOM) if room else 0, format)
    if rest:
        first, *rest = layout.numbered(ready.session, [first, *rest], ready.language)
    attach = tuple(Step("attach", file=number) for number in range(len(files)))
    posts = (
        Step("comment" if address.item else "create", first, layout.new_mark()),
        *(Step("comment", one, layout.new_mark()) for one in (*rest, *comments)),
    )
    content = Content(
        to=str(address),
        title="" if address.item else layout.one_line(outgoing.title, kind.title_limit),
        format=format,
        session=ready.session,
        labels=ready.labels,
        steps=(*attach, *posts) if kind.attaches is Attaches.FIRST else (*posts, *attach),
        files=tuple(files),
    )
    entry = msgspec.structs.replace(new_entry(content, now), again=again)
    return Plan(kind, address, entry, tuple(kept), ready.hidden)


def settled(plan: Plan, session: str | os.PathLike[str], *, outbox: Path | None = None) -> Plan:
    """Return the plan as it fits what the session and the outbox hold already. Reads them, and changes nothing.

    What waits in the outbox for the same place, and of which nothing is posted as far as is known, is replaced: the
    plan gets its id, and its mark, by which a post whose answer was lost is found. Raises UsageError when the session
    has a ticket there and no other one is wanted.
    """
    box, new = outbox or outbox_dir(), plan.entry
    check_first(new, session, box)
    for old in entries(box):
        if not isinstance(old, Entry) or old.url or old.state == "posted":
            continue
        if (old.content.to, old.content.session) != (new.content.to, new.content.session):
            continue
        number = _first_post(new)
        mark = old.content.steps[_first_post(old)].mark
        steps = list(new.content.steps)
        steps[number] = msgspec.structs.replace(steps[number], mark=mark)
        content = msgspec.structs.replace(new.content, steps=tuple(steps))
        entry = Entry(old.id, old.made, content, digest_of(content), tries=old.tries, again=new.again)
        return replace(plan, entry=entry, over=old.digest)
    return plan


def post(
    plan: Plan,
    session: str | os.PathLike[str],
    *,
    environment: Mapping[str, str] = os.environ,
    outbox: Path | None = None,
    report: Report | None = None,
    wait: Wait = time.sleep,
) -> Entry:
    """Put a plan into the outbox, send it, and return the entry, whose `url` is where it stands.

    session: folder in which files are kept that the tracker does not take. environment: where tokens are looked for
    before the keyring. report: told what is being done. wait: called with seconds to pause; it may raise to give up.
    Raises UsageError, and nothing new is in the outbox, when a token or a library is missing or the session has a
    ticket there; TrackerError when it was not sent (whole): the entry stays in the outbox, and `again` says whether the
    same may be tried later.
    """
    box, new = outbox or outbox_dir(), plan.entry
    check_first(new, session, box)
    way = _open(plan.kind, plan.address, environment)
    for file in plan.kept:
        path = os.path.join(session, f"{plan.entry.id}-{os.path.basename(file.name)}")
        write_private(path, file.content, overwrite=bool(plan.over))
    folder = os.path.abspath(session)
    begun = msgspec.structs.replace(new, tries=new.tries + 1, item=plan.address.item, folder=folder)
    with hold(box, new.id) if plan.over else put(box, begun) as held:
        if plan.over:
            if held.entry.digest != plan.over or held.entry.url:
                raise UsageError(f"{new.id}: the entry was changed meanwhile", "look again: slime-runbook outbox list")
            held.save(begun)
        return _send(held, way, first=new.tries == 0, report=report, wait=wait)


def resume(
    id: str,
    *,
    environment: Mapping[str, str] = os.environ,
    outbox: Path | None = None,
    take_over: bool = False,
    report: Report | None = None,
    wait: Wait = time.sleep,
) -> Entry:
    """Send an entry of the outbox from where it stopped, and return it; one that was posted is returned as it is.

    Raises as `post`, and OutboxError when the entry is damaged or somebody else is sending it.
    """
    folder = outbox or outbox_dir()
    kind, address = place_of(read(folder, id).content.to)
    with hold(folder, id, take_over=take_over) as held:
        if held.entry.state == "posted":
            return held.entry
        if held.entry.content.to != str(address):
            raise UsageError(f"{held.entry.content.to}: the entry was changed meanwhile", "look at it again")
        if not held.entry.url:
            check_first(held.entry, held.entry.folder, folder, f"take it out: slime-runbook outbox drop {id}")
        way = _open(kind, address, environment)
        first = held.entry.tries == 0
        held.save(msgspec.structs.replace(held.entry, tries=held.entry.tries + 1, item=held.entry.item or address.item))
        return _send(held, way, first=first, report=report, wait=wait)


@dataclass(frozen=True)
class _Way:
    """An open way to a tracker. veil: covers the secrets that it was opened with. names: of their variables."""

    kind: Kind
    where: str
    tracker: Tracker
    veil: Veil
    names: str

    def call(self, what: Callable[[], T]) -> T:
        """Return what a call returns; whatever a third party's tracker lets through becomes a TrackerError."""
        return guarded(what, self.where, self.veil, lambda _: None, self.names)


def _open(kind: Kind, address: Address, environment: Mapping[str, str]) -> _Way:
    """Return the way to a tracker; touches no network. Raises UsageError when a token or a library is missing."""
    needs = kind.needs(address)
    secrets = secrets_for(needs, address.host, environment)
    veil, names = Veil(secrets.values()), " and ".join(credential.names[0] for credential in needs)
    tracker = guarded(lambda: kind.connect(address, secrets), str(address), veil, lambda _: None, names)
    return _Way(kind, str(address), tracker, veil, names)


def _send(held: Held, way: _Way, *, first: bool, report: Report | None, wait: Wait) -> Entry:
    """Do every step that is not done yet. first: no step of the entry was ever begun."""
    say = report or (lambda _: None)
    start, total = len(held.entry.done), len(held.entry.content.steps)
    try:
        for number in range(start, total):
            say(_words(held.entry, number))
            maybe_done = not first and number in (start, _first_post(held.entry))
            _done(held, _step(held.entry, way, look=maybe_done, say=say, wait=wait))
            _note(held.entry, say)
    except TrackerError as error:
        state = "waiting" if error.again else "refused"
        held.save(msgspec.structs.replace(held.entry, state=state, trouble=error.message))
        raise
    held.save(msgspec.structs.replace(held.entry, state="posted", trouble=""))
    _note(held.entry, say)
    return held.entry


def _note(entry: Entry, say: Report) -> None:
    """Note in the session where its ticket is; that it cannot be noted does not undo the post."""
    if entry.url and entry.folder:
        try:
            keep(entry.folder, entry)
        except SessionError as error:
            words = f"it is posted, but the session does not say so: {error.message}"
            say(Text(words, f"已提交，但会话中没有记录：{error.message}"))


def _done(held: Held, result: Posted | str) -> None:
    """Record what a step came to: a post, or the link to a file."""
    entry = held.entry
    if isinstance(result, str):
        held.save(msgspec.structs.replace(entry, done=(*entry.done, result)))
        return
    url = sanitise(result.url, _URL_LIMIT)
    held.save(
        msgspec.structs.replace(
            entry, done=(*entry.done, url), item=entry.item or sanitise(result.item, 100), url=entry.url or url
        )
    )


def _step(entry: Entry, way: _Way, *, look: bool, say: Report, wait: Wait) -> Posted | str:
    """Do the next step, trying again what may be tried again; look for it first once it may have been done."""
    for attempt in range(ATTEMPTS):
        try:
            if look:
                if way.kind.lag:
                    wait(way.kind.lag)
                found = way.call(lambda: _found(entry, way.kind, way.tracker))
                if found is not None:
                    say(Text("it had been posted already", "此前已提交"))
                    return found
            return way.call(lambda: _do(entry, way.kind, way.tracker))
        except TrackerError as error:
            look = True
            pause = float(2**attempt) if error.after is None else error.after
            if not error.soon or attempt == ATTEMPTS - 1 or pause > LONGEST_WAIT:
                raise
            say(Text(f"{error.message}; again in {pause:.0f} s", f"{error.message}；{pause:.0f} 秒后重试"))
            wait(pause)
    raise AssertionError("unreachable")


def _do(entry: Entry, kind: Kind, tracker: Tracker) -> Posted | str:
    step = entry.content.steps[len(entry.done)]
    if step.action == "attach":
        item = "" if kind.attaches is Attaches.FIRST else entry.item
        return tracker.attach(item, entry.content.files[step.file])
    body = text_of(entry, len(entry.done))
    if step.action == "create":
        return _sound(tracker.create(entry.content.title, body, entry.content.labels, step.mark), tracker)
    return _sound(tracker.comment(entry.item, body, step.mark), tracker)


def _found(entry: Entry, kind: Kind, tracker: Tracker) -> Posted | str | None:
    """Return what the next step came to if it was done; an upload to a place is not looked for, nothing links to it."""
    step, since = entry.content.steps[len(entry.done)], entry.made - SKEW
    if step.action == "attach":
        file = entry.content.files[step.file]
        return file.name if kind.attaches is Attaches.TO_ITEM and tracker.holds(entry.item, file, since) else None
    found = tracker.find("" if step.action == "create" else entry.item, step.mark, since)
    return None if found is None else _sound(found, tracker)


def _sound(posted: Posted, tracker: Tracker) -> Posted:
    """Return a post with an address that is one: what a server says may be anything."""
    good = urlsplit(posted.url).scheme in ("http", "https") and posted.url.isprintable() and "@" not in posted.url
    return posted if good else Posted(posted.item, tracker.url_of(posted.item))


def text_of(entry: Entry, number: int) -> str:
    """Return the text that a step posts, with links to the files that were uploaded for it and with its mark."""
    step = entry.content.steps[number]
    text = step.text
    before = [
        link
        for one, link in zip(entry.content.steps[:number], entry.done, strict=False)
        if one.action == "attach" and number == _first_post(entry)
    ]
    if before:
        text = f"{text.rstrip()}\n\n" + "\n".join(f"- {link}" for link in before)
    return layout.marked(text, step.mark, entry.content.format)


def _words(entry: Entry, number: int) -> Text:
    """Return what a step does, in words."""
    step, total = entry.content.steps[number], len(entry.content.steps)
    if step.action == "attach":
        name = entry.content.files[step.file].name
        return Text(f"{number + 1}/{total} sending the file {name}", f"{number + 1}/{total} 发送文件 {name}")
    what = Text("ticket", "工单") if step.action == "create" else Text("comment", "评论")
    return Text(f"{number + 1}/{total} posting the {what.en}", f"{number + 1}/{total} 提交{what.zh}")


def _first_post(entry: Entry) -> int:
    return next(number for number, step in enumerate(entry.content.steps) if step.action != "attach")


def labels_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return labels without repetitions, in their order."""
    return tuple(dict.fromkeys(words))

"""Tests of plans and of sending: everything once, in order, whatever breaks."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import UsageError
from runbook.text import Text
from runbook.ticket.outgoing import WHOLE_NAME, Attachment, Outgoing
from runbook.ticket.renderers import SENDER_ROOM, renderer
from runbook.trackers import registry, send
from runbook.trackers.address import Address
from runbook.trackers.model import Attaches, Kind
from runbook.trackers.outbox import Entry, hold, read
from runbook.trackers.posted import keep, postings
from runbook.trackers.ready import Ready
from runbook.trackers.tokens import Credential
from runbook.trackers.trouble import TrackerError
from tests.runbook.trackers.board import (
    AFTER,
    BEFORE,
    KILLED_AFTER,
    KILLED_BEFORE,
    LATER,
    OK,
    SITE,
    Board,
    Killed,
    kind_of,
)

PLACE = Address("board", SITE, "x")
FILES = (Attachment("a.txt", "text/plain", b"aaa"), Attachment("b.txt", "text/plain", b"bbb"))


def ready(*files: Attachment, body: str = "Body.\n", labels: tuple[str, ...] = (), format: str = "text") -> Ready:
    """Return a small ticket."""
    return Ready(Outgoing("A title", format, ".txt", body.encode(), files), (), labels, "s1", "en")


def planned(kind: Kind, *files: Attachment, item: str = "", body: str = "Body.\n") -> send.Plan:
    """Return a plan for a board."""
    return send.plan(ready(*files, body=body), kind, dataclass_place(item), now=1_700_000_000.0)


def dataclass_place(item: str) -> Address:
    """Return the board's address, with a ticket to comment on."""
    return Address(PLACE.kind, PLACE.site, PLACE.place, item)


def post(plan: send.Plan, box: Path, pauses: list[float] | None = None) -> Entry:
    """Post without pauses."""
    return send.post(plan, box, environment={}, outbox=box, wait=(pauses if pauses is not None else []).append)


def again(plan: send.Plan, box: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Send the entry of a plan from the outbox."""
    monkeypatch.setattr(send, "place_of", lambda _: (plan.kind, plan.address))
    return send.resume(plan.entry.id, environment={}, outbox=box, wait=lambda _: None)


@pytest.mark.parametrize("attaches", list(Attaches))
@pytest.mark.parametrize("item", ["", "7"], ids=["ticket", "comment"])
@given(script=st.lists(st.sampled_from([OK, BEFORE, AFTER, KILLED_BEFORE, KILLED_AFTER, LATER]), max_size=12))
def test_everything_is_posted_once(
    tmp_path_factory: pytest.TempPathFactory, attaches: Attaches, item: str, script: list[str]
) -> None:
    """Whatever call breaks, before or after its work, whenever the sender dies: each text and file is there once."""
    box = tmp_path_factory.mktemp("box")
    board = Board(script)
    plan = planned(kind_of(board, attaches), *FILES, item=item)
    with pytest.MonkeyPatch.context() as patch:
        for turn in range(len(script) + 2):
            try:
                entry = post(plan, box) if turn == 0 else again(plan, box, patch)
                break
            except (TrackerError, Killed):
                continue
        else:
            pytest.fail("it was never posted")
    assert (entry.state, entry.trouble) == ("posted", "")
    assert board.posts[0][0] == item
    bodies = [body.partition("\n\nslime")[0] for _, body in board.posts]
    files = [(place, file.name) for place, file in board.files]
    target = item or "1"
    if attaches is Attaches.NEVER:
        assert (bodies, files) == (["Body.", "a.txt\n\naaa", "b.txt\n\nbbb"], [])
        assert {place for place, _ in board.posts[1:]} == {target}
    elif attaches is Attaches.TO_ITEM:
        assert (bodies, files) == (["Body."], [(target, "a.txt"), (target, "b.txt")])
    else:
        assert bodies == ["Body.\n\n- [a.txt]\n- [b.txt]"]
        assert [name for _, name in dict.fromkeys(files)] == ["a.txt", "b.txt"]
    assert board.titles == ([] if item else ["A title"])


def test_the_entry_is_there_before_anything_is_sent(tmp_path: Path) -> None:
    """When the first call is made, the whole entry is on the disk, counted as begun, with its file's bytes."""
    board = Board([KILLED_BEFORE])
    plan = planned(kind_of(board), *FILES)
    with pytest.raises(Killed):
        post(plan, tmp_path)
    entry = read(tmp_path, plan.entry.id)
    assert (entry.content, entry.tries, entry.done) == (plan.entry.content, 1, ())


def test_pauses_grow_and_end(tmp_path: Path) -> None:
    """A call is tried four times with pauses of 1, 2 and 4 seconds; then the entry waits, with the reason."""
    plan = planned(kind_of(Board([BEFORE] * 9)))
    pauses: list[float] = []
    with pytest.raises(TrackerError):
        post(plan, tmp_path, pauses)
    assert pauses == [1.0, 2.0, 4.0]
    entry = read(tmp_path, plan.entry.id)
    assert (entry.state, entry.trouble) == ("waiting", "board: broken")


def test_a_server_that_asks_for_a_long_pause_is_left_alone(tmp_path: Path) -> None:
    """More than half a minute is not waited; a short wish is."""
    for after, expected in ((31.0, []), (30.0, [30.0])):
        board = Board()
        failed = iter([TrackerError("busy", again=True, soon=True, after=after)])
        real = board.create

        def create(*words: object, failed: object = failed, real: object = real, **named: object) -> object:
            for error in failed:  # type: ignore[attr-defined]
                raise error
            assert callable(real)
            return real(*words, **named)

        board.create = create  # type: ignore[method-assign, assignment]
        pauses: list[float] = []
        if expected:
            assert post(planned(kind_of(board)), tmp_path, pauses).state == "posted"
        else:
            with pytest.raises(TrackerError):
                post(planned(kind_of(board)), tmp_path, pauses)
        assert pauses == expected


def test_a_look_that_fails_posts_nothing(tmp_path: Path) -> None:
    """When it cannot be told whether something was posted, it is not posted again."""
    board = Board([AFTER])

    def find(item: str, mark: str, since: float) -> None:
        raise TrackerError("cannot tell", "look yourself")

    board.find = find  # type: ignore[method-assign]
    plan = planned(kind_of(board))
    with pytest.raises(TrackerError, match="cannot tell"):
        post(plan, tmp_path)
    assert len(board.posts) == 1
    assert read(tmp_path, plan.entry.id).state == "refused"


def test_an_index_is_given_time(tmp_path: Path) -> None:
    """A tracker whose lists lag is asked only after that time."""
    kind = dataclasses.replace(kind_of(Board([AFTER])), lag=3.0)
    pauses: list[float] = []
    assert post(planned(kind), tmp_path, pauses).state == "posted"
    assert pauses == [1.0, 3.0]


def test_what_was_posted_is_not_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that was posted is returned as it is, and nothing is opened."""
    board = Board()
    plan = planned(kind_of(board))
    entry = post(plan, tmp_path)
    assert again(plan, tmp_path, monkeypatch) == entry
    assert len(board.posts) == 1


def test_an_entry_that_is_held_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody sends an entry nobody else does."""
    board = Board([LATER])
    plan = planned(kind_of(board))
    with pytest.raises(TrackerError):
        post(plan, tmp_path)
    from runbook.trackers.outbox import OutboxError

    with hold(tmp_path, plan.entry.id), pytest.raises(OutboxError):
        again(plan, tmp_path, monkeypatch)
    assert board.posts == []


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://u:p@evil/1", "https://x/\x1b[2J", "", "ftp://x"])
def test_an_address_that_is_none_is_not_shown(tmp_path: Path, url: str) -> None:
    """What a server gives as the ticket's page is taken only when it is a web address without a login."""
    board = Board()
    board.url = url
    assert post(planned(kind_of(board)), tmp_path).url == f"{SITE}/1"


def test_what_a_person_reads_is_told_on_the_way(tmp_path: Path) -> None:
    """Every step is told before it is done, in both languages."""
    heard: list[Text] = []
    plan = planned(kind_of(Board()), FILES[0])
    send.post(plan, tmp_path, environment={}, outbox=tmp_path, report=heard.append)
    assert [words.en for words in heard] == ["1/2 posting the ticket", "2/2 sending the file a.txt"]
    assert all(words.zh and words.zh != words.en for words in heard)


def test_a_body_over_the_limit_goes_on_in_comments(tmp_path: Path) -> None:
    """What does not fit becomes further comments that say which part they are; nothing is lost."""
    board = Board()
    body = "".join(f"line {number}\n" for number in range(400))
    post(planned(kind_of(board, limit=2000), body=body), tmp_path)
    assert len(board.posts) > 1
    assert all(len(text) <= 2000 for _, text in board.posts)
    assert [
        line for _, text in board.posts for line in text.splitlines() if line.startswith("line ")
    ] == body.splitlines()
    assert board.posts[1][1].startswith(f"s1, part 2 of {len(board.posts)}")


def test_a_body_that_fits_with_its_mark_is_one_post() -> None:
    """A ticket that was laid out for the tracker's limit is not split for the sake of some spare room."""
    body = "x" * (2000 - 60)
    assert len(planned(kind_of(Board(), limit=2000), body=body).entry.content.steps) == 1


def test_labels_are_for_new_tickets() -> None:
    """A comment has no labels, and a tracker without them says so instead of losing them."""
    for kind, item in ((kind_of(Board()), "7"), (kind_of(Board(), labels=False), "")):
        with pytest.raises(UsageError, match="label"):
            send.plan(ready(labels=("bug",)), kind, dataclass_place(item), now=0.0)
    plan = send.plan(ready(labels=("bug",)), kind_of(Board()), PLACE, now=0.0)
    assert plan.entry.content.labels == ("bug",)


def test_a_missing_token_leaves_nothing_behind(tmp_path: Path) -> None:
    """Without a token nothing is put into the outbox: there is nothing to send later."""
    kind, address = registry.place_of("github:o/r")
    plan = send.plan(ready(format="markdown"), kind, address, now=0.0)
    with pytest.raises(UsageError, match="GITHUB_TOKEN"):
        send.post(plan, tmp_path, environment={}, outbox=tmp_path / "box")
    assert not (tmp_path / "box").exists()


@pytest.mark.parametrize(
    ("words", "variables", "library"),
    [
        ("github:o/r", ["GITHUB_TOKEN"], "github"),
        ("gitlab:o/r", ["GITLAB_TOKEN"], "gitlab"),
        ("jira+https://jira.invalid/OPS", ["JIRA_TOKEN"], "jira"),
        ("roundup+https://roundup.invalid/t", ["ROUNDUP_LOGIN", "ROUNDUP_PASSWORD"], "requests"),
    ],
)
def test_a_missing_library_is_told_before_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, variables: list[str], library: str
) -> None:
    """Without its client library nothing is put into the outbox, and the extra to install is named."""
    monkeypatch.setitem(__import__("sys").modules, library, None)
    kind, address = registry.place_of(words)
    plan = send.plan(ready(format=kind.formats[0]), kind, address, now=0.0)
    with pytest.raises(UsageError) as caught:
        send.post(plan, tmp_path, environment=dict.fromkeys(variables, "x" * 9), outbox=tmp_path / "box")
    assert "slime-runbook[trackers]" in caught.value.hint
    assert not (tmp_path / "box").exists()


def test_what_a_tracker_of_others_raises_is_covered(tmp_path: Path) -> None:
    """An error that a tracker lets through becomes one of ours, without its cause and without the token in it."""
    token = "planted-token-5"
    board = Board()

    def create(*_: object) -> None:
        raise LookupError(f"header {token}")

    board.create = create  # type: ignore[method-assign, assignment]
    kind = dataclasses.replace(kind_of(board), needs=lambda _: (Credential(("X_TOKEN",), "a token"),))
    plan = planned(kind)
    with pytest.raises(TrackerError, match=r"LookupError: header \*\*\*") as caught:
        send.post(plan, tmp_path, environment={"X_TOKEN": token}, outbox=tmp_path)
    assert caught.value.__context__ is None
    assert read(tmp_path, plan.entry.id).state == "waiting"


@pytest.mark.parametrize("attaches", list(Attaches))
@pytest.mark.parametrize("item", ["", "7"], ids=["ticket", "comment"])
@given(script=st.lists(st.sampled_from([OK, BEFORE, AFTER, KILLED_BEFORE, KILLED_AFTER, LATER]), max_size=8))
def test_sent_anew_is_posted_once(
    tmp_path_factory: pytest.TempPathFactory, attaches: Attaches, item: str, script: list[str]
) -> None:
    """Whoever sends again, instead of going on with what waits, gets one ticket, and its address is noted."""
    box = tmp_path_factory.mktemp("box")
    board = Board(script)
    kind = kind_of(board, attaches)
    for turn in range(len(script) + 2):
        plan = planned(kind, *FILES, item=item, body=f"Body {turn}.\n")
        try:
            post(send.settled(plan, box, outbox=box), box)
            break
        except UsageError:
            assert not item
            break
        except (TrackerError, Killed):
            if item and any(posting.url for posting in postings(box)):
                break
    first = [body for _, body in board.posts if body.startswith("Body")]
    assert len(first) == 1
    assert len({one.url for one in postings(box)}) == 1


def test_a_waiting_entry_is_replaced(tmp_path: Path) -> None:
    """A new send takes over what waits: its id and its mark stay, the text is the new one; its digest holds."""
    board = Board([LATER])
    old = planned(kind_of(board))
    with pytest.raises(TrackerError):
        post(old, tmp_path)
    new = send.settled(planned(kind_of(board), body="Better.\n"), tmp_path, outbox=tmp_path)
    assert new.entry.id == old.entry.id
    assert new.entry.content.steps[0].mark == old.entry.content.steps[0].mark
    assert post(new, tmp_path).state == "posted"
    ((_, body),) = board.posts
    assert body.startswith("Better.")
    assert read(tmp_path, old.entry.id).content == new.entry.content


def test_an_entry_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """Two who take over the same entry: the second one posts nothing."""
    board = Board([LATER, LATER])
    with pytest.raises(TrackerError):
        post(planned(kind_of(board)), tmp_path)
    one, other = (
        send.settled(planned(kind_of(board), body=body), tmp_path, outbox=tmp_path) for body in ("One.\n", "Other.\n")
    )
    with pytest.raises(TrackerError):
        post(one, tmp_path)
    with pytest.raises(UsageError, match="meanwhile"):
        post(other, tmp_path)
    assert board.posts == []


def test_an_old_entry_is_not_sent_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits of a session that was posted there by somebody else is refused, and named to be dropped."""
    board = Board([LATER])
    plan = planned(kind_of(board))
    with pytest.raises(TrackerError):
        post(plan, tmp_path)
    keep(tmp_path, msgspec.structs.replace(plan.entry, url="https://board.example/9", item="9"))
    with pytest.raises(UsageError) as caught:
        again(plan, tmp_path, monkeypatch)
    assert "https://board.example/9" in caught.value.message
    assert f"drop {plan.entry.id}" in caught.value.hint
    assert board.posts == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_session_that_cannot_be_written_is_posted_all_the_same(tmp_path: Path) -> None:
    """The post stands, and a warning says that the session does not tell of it."""
    folder = tmp_path / "session"
    folder.mkdir(0o500)
    said: list[str] = []
    plan = planned(kind_of(Board()))
    entry = send.post(plan, folder, environment={}, outbox=tmp_path / "box", report=lambda words: said.append(words.en))
    assert entry.state == "posted"
    assert any("does not say so" in words for words in said)


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira"])
def test_a_full_ticket_is_one_post(kind: str) -> None:
    """A body as long as its layout lets it become fits into one post with its mark, its file and what names it."""
    tracker, address = registry.place_of({"jira": "jira+https://h.example/OPS"}.get(kind, f"{kind}:o/r"))
    limit = renderer(tracker.formats[0]).limit
    assert limit is not None
    assert limit <= tracker.limit
    whole = Attachment(WHOLE_NAME, "text/plain", b"\x00")
    full = ready(whole, body="x" * (limit - SENDER_ROOM), format=tracker.formats[0])
    steps = send.plan(full, tracker, address, now=0.0).entry.content.steps
    assert [step.action for step in steps if step.action != "attach"] == ["create"]

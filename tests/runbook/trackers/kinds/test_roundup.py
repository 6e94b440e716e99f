"""Roundup, end to end: a real tracker, installed and served for these tests, behind a relay that can lose answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runbook.errors import UsageError
from runbook.ticket.outgoing import Attachment
from runbook.trackers.outbox import read
from runbook.trackers.registry import place_of
from runbook.trackers.send import Plan, post, resume
from runbook.trackers.trouble import TrackerError
from tests.helpers import HOSTILE
from tests.runbook.trackers.kinds import common
from tests.runbook.trackers.kinds.common import NOTES, PAGE
from tests.runbook.trackers.site import PASSWORD, Site, roundup_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve one tracker for all tests of this file; each counts what it adds."""
    with roundup_site(tmp_path_factory.mktemp("roundup")) as found:
        yield found


@pytest.fixture(autouse=True)
def _clean_line(site: Site) -> None:
    site.relay.lose.clear()
    site.relay.hold = ""


def planned(site: Site, *files: Attachment, item: str = "", body: str = "It hangs.\n") -> Plan:
    """Return the plan of a small ticket."""
    return common.planned(site.address, *files, item=item, body=body)


def send(site: Site, one: Plan, folder: Path) -> str:
    """Send a plan without waiting between attempts, and return where it stands."""
    return common.send(one, folder, site.environment).url


def number(url: str) -> str:
    """Return the number at the end of an address."""
    return url.rpartition("issue")[2]


def grew(site: Site, before: tuple[int, int, int]) -> tuple[int, ...]:
    """Return how many issues, messages and files were added."""
    return tuple(now - then for now, then in zip(site.counts(), before, strict=True))


def test_a_ticket_with_files_is_created(site: Site, tmp_path: Path) -> None:
    """Title, body, mark and the very bytes of the files stand in the tracker; the entry says where."""
    before = site.counts()
    one = planned(site, PAGE, NOTES)
    url = send(site, one, tmp_path)
    assert url == f"{site.url}/issue{number(url)}"
    issue = site.issue(number(url))
    assert issue["title"] == "A hang in rank 3"
    assert [site.text(message["id"]) for message in issue["messages"]] == [
        f"It hangs.\n\nslime-runbook {one.entry.content.steps[0].mark}"
    ]
    files = {site.ask(f"file/{file['id']}")["attributes"]["name"]: site.content(file["id"]) for file in issue["files"]}
    assert files == {"ticket.html": PAGE.content, "notes.txt": NOTES.content}
    assert grew(site, before) == (1, 1, 2)
    entry = read(tmp_path, one.entry.id)
    assert (entry.state, entry.url, entry.attached) == ("posted", url, ("ticket.html", "notes.txt"))


def test_a_comment_is_added_to_a_ticket(site: Site, tmp_path: Path) -> None:
    """A comment adds one message and its file to the ticket that is there, and no ticket."""
    item = number(send(site, planned(site), tmp_path))
    before = site.counts()
    url = send(site, planned(site, NOTES, item=item, body="Also on rank 5.\n"), tmp_path)
    issue = site.issue(item)
    texts = [site.text(message["id"]) for message in issue["messages"]]
    assert [text.partition("\n")[0] for text in texts] == ["It hangs.", "Also on rank 5."]
    assert url == f"{site.url}/msg{issue['messages'][-1]['id']}"
    assert len(issue["files"]) == 1
    assert grew(site, before) == (0, 1, 1)


@pytest.mark.parametrize(
    ("comment", "lost"),
    [(False, "POST msg"), (False, "POST issue"), (False, "POST file"), (False, "PATCH issue"),
     (True, "POST msg"), (True, "PATCH issue"), (True, "POST file")],
)  # fmt: skip
def test_a_lost_answer_posts_nothing_twice(site: Site, tmp_path: Path, comment: bool, lost: str) -> None:
    """The request arrived and its answer did not: what was made is found and used, at whatever step that happens."""
    item = number(send(site, planned(site), tmp_path)) if comment else ""
    before = site.counts()
    site.relay.lose.append(lost.replace(" ", " /tracker/rest/data/"))
    url = send(site, planned(site, PAGE, item=item, body="Once.\n"), tmp_path)
    assert not site.relay.lose
    assert grew(site, before) == (0 if comment else 1, 1, 1)
    issue = site.issue(item or number(url))
    assert sum("Once." in site.text(message["id"]) for message in issue["messages"]) == 1
    assert [site.content(file["id"]) for file in issue["files"]] == [PAGE.content]


def test_a_line_that_stays_bad_leaves_the_rest_for_later(site: Site, tmp_path: Path) -> None:
    """When every attempt loses its answer the entry waits; later it goes on, and still nothing is there twice."""
    before = site.counts()
    site.relay.lose += ["POST /tracker/rest/data/issue"] + ["GET /tracker/rest/data/msg"] * 3
    one = planned(site, PAGE)
    with pytest.raises(TrackerError) as caught:
        send(site, one, tmp_path)
    assert caught.value.again
    assert read(tmp_path, one.entry.id).state == "waiting"
    done = resume(one.entry.id, environment=site.environment, outbox=tmp_path, wait=lambda _: None)
    assert (done.state, done.tries) == ("posted", 2)
    assert grew(site, before) == (1, 1, 1)


def test_without_a_route_the_ticket_waits(site: Site, tmp_path: Path) -> None:
    """A closed port: nobody waits for it, the entry stays, and is sent once the server is there, once."""
    before = site.counts()
    one = planned(site)
    pauses: list[float] = []
    site.relay.stop()
    try:
        with pytest.raises(TrackerError, match="route"):
            post(one, tmp_path, environment=site.environment, outbox=tmp_path, wait=pauses.append)
    finally:
        site.relay.start()
    assert not pauses
    assert read(tmp_path, one.entry.id).state == "waiting"
    assert resume(one.entry.id, environment=site.environment, outbox=tmp_path, wait=lambda _: None).url
    assert grew(site, before) == (1, 1, 0)
    seen = list(site.relay.seen)
    assert resume(one.entry.id, environment=site.environment, outbox=tmp_path).state == "posted"
    assert site.relay.seen == seen


@pytest.mark.parametrize(
    ("environment", "status", "hint"),
    [
        ({"ROUNDUP_PASSWORD": "wrong-planted-pw"}, "401", "ROUNDUP_PASSWORD"),
        ({"ROUNDUP_LOGIN": "nobody"}, "401", "LOGIN"),
    ],
)
def test_a_refused_login_is_told(
    site: Site, tmp_path: Path, environment: dict[str, str], status: str, hint: str
) -> None:
    """A wrong login names the variables, keeps the entry, and shows no secret."""
    one = planned(site)
    with pytest.raises(TrackerError) as caught:
        post(one, tmp_path, environment={**site.environment, **environment}, outbox=tmp_path)
    assert status in caught.value.message
    assert hint in caught.value.hint
    assert not caught.value.again
    assert read(tmp_path, one.entry.id).state == "refused"


def test_a_ticket_that_is_not_there_is_told(site: Site, tmp_path: Path) -> None:
    """A comment on a ticket that does not exist makes nothing, not even a loose message."""
    before = site.counts()
    with pytest.raises(TrackerError, match="404"):
        send(site, planned(site, item="99999"), tmp_path)
    assert grew(site, before) == (0, 0, 0)


def test_hostile_text_arrives_as_it_is(site: Site, tmp_path: Path) -> None:
    """Whatever stands in a body, the mark is found and the text is whole."""
    body = "x " + " y ".join(piece for piece in HOSTILE if piece not in ("\r", "\x00")) + " end\n"
    url = send(site, planned(site, body=body), tmp_path)
    text = site.text(site.issue(number(url))["messages"][0]["id"])
    assert text.startswith(body.rstrip())


def test_the_password_is_nowhere(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No file, log line or output holds the password after a post, a lost answer and a refusal."""
    caplog.set_level(0)
    site.relay.lose.append("POST /tracker/rest/data/issue")
    send(site, planned(site, PAGE), tmp_path)
    with pytest.raises(TrackerError) as caught:
        send(site, planned(site, item="99999"), tmp_path)
    told = capfd.readouterr()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"It hangs." in kept
    for text in (caplog.text, told.out, told.err, repr(caught.value), str(caught.value.__dict__), repr(kept)):
        assert PASSWORD not in text
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("words", ["roundup:tracker", "roundup+https://host/t:place", "roundup+https://host/t#abc"])
def test_an_address_that_is_none_is_told(words: str) -> None:
    """Roundup needs a site, has no places, and numbers its tickets."""
    with pytest.raises(UsageError):
        place_of(words)

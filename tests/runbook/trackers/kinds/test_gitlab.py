"""GitLab: the real python-gitlab against a small local server that speaks the documented shapes of API version 4.

GitLab itself is not asked: that it still speaks like this is not shown here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runbook.errors import UsageError
from runbook.trackers.outbox import read
from runbook.trackers.registry import place_of
from runbook.trackers.send import post, resume
from runbook.trackers.trouble import TrackerError
from tests.runbook.trackers.kinds.common import NOTES, PAGE, TOKEN, kept, planned, send
from tests.runbook.trackers.small_server import LOST, Asked, Small, Told, small_server

ENVIRONMENT = {"GITLAB_TOKEN": TOKEN}
PROJECT = "/api/v4/projects/42"


class Project:
    """Issues, notes and uploads of group/sub/project."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.uploads: list[bytes] = []

    def issue(self, **fields: Any) -> dict[str, Any]:
        """Add an issue."""
        iid = len(self.issues) + 1
        page = f"https://gitlab.example/group/sub/project/-/issues/{iid}"
        self.issues.append({"iid": iid, "id": 70 + iid, "web_url": page, "created_at": now(), **fields})
        return self.issues[-1]

    def __call__(self, asked: Asked) -> Told:  # noqa: PLR0911 - one case a request
        """Answer a request as the API documents it."""
        if asked.headers.get("private-token") != TOKEN:
            return Told(401, {"message": "401 Unauthorized"})
        if (asked.method, asked.path) == ("GET", "/api/v4/projects/group/sub/project"):
            return Told(200, {"id": 42})
        assert asked.path.startswith(PROJECT)
        match [asked.method, *asked.path.removeprefix(PROJECT).strip("/").split("/")]:
            case ["POST", "issues"]:
                return Told(201, self.issue(**asked.json))
            case ["POST", "uploads"]:
                self.uploads.append(asked.body)
                link = f"/uploads/{len(self.uploads)}/file"
                return Told(201, {"alt": "file", "url": link, "markdown": f"[file]({link})"})
            case ["POST", "issues", iid, "notes"]:
                self.notes.append({"id": 500 + len(self.notes), "iid": iid, "created_at": now(), **asked.json})
                return Told(201, self.notes[-1])
            case ["GET", "issues"] | ["GET", "issues", _, "notes"]:
                assert (asked.query["order_by"], asked.query["sort"]) == ("created_at", "desc")
                every = self.issues if asked.path.endswith("issues") else self.notes
                return page_of(every[::-1], asked)
        return Told(404, {"message": "404 Project Not Found"})


def page_of(every: list[dict[str, Any]], asked: Asked) -> Told:
    """Return one page of two items, with the headers that name the next one."""
    page = int(asked.query.get("page", 1))
    more = len(every) > page * 2
    url = f"http://{asked.headers['host']}{asked.path}"
    query = f"order_by=created_at&sort=desc&page={page + 1}"
    link = {"Link": f'<{url}?{query}>; rel="next"', "X-Next-Page": str(page + 1)} if more else {}
    return Told(200, every[page * 2 - 2 : page * 2], {**link, "X-Page": str(page), "X-Per-Page": "2"})


def now() -> str:
    """Return the time as GitLab writes it."""
    return dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


@pytest.fixture
def project() -> Project:
    """Return an empty project."""
    return Project()


@pytest.fixture
def server(project: Project) -> Iterator[Small]:
    """Serve it."""
    with small_server(project) as found:
        yield found


def address(server: Small) -> str:
    """Return the address of the project."""
    return f"gitlab+{server.url}:group/sub/project"


def test_an_issue_links_to_its_uploads(server: Small, project: Project, tmp_path: Path) -> None:
    """Files are uploaded first; the body of the issue ends in links to them and its mark; labels go along."""
    one = planned(address(server), PAGE, NOTES, labels=("bug", "ops"))
    entry = send(one, tmp_path, ENVIRONMENT)
    assert entry.url == "https://gitlab.example/group/sub/project/-/issues/1"
    issue = project.issues[0]
    assert (issue["title"], issue["labels"]) == ("A hang in rank 3", "bug,ops")
    mark = one.entry.content.steps[-1].mark
    assert issue["description"] == (
        f"It hangs.\n\n- [file](/uploads/1/file)\n- [file](/uploads/2/file)\n\n<!-- slime-runbook {mark} -->\n"
    )
    assert PAGE.content in project.uploads[0]
    assert NOTES.content in project.uploads[1]
    assert b'filename="ticket.html"' in project.uploads[0]


def test_a_note_is_added(server: Small, project: Project, tmp_path: Path) -> None:
    """`#N` adds a note to that issue and opens none."""
    project.issue(description="old")
    entry = send(planned(address(server), item="1"), tmp_path, ENVIRONMENT)
    assert entry.url == f"{server.url}/group/sub/project/-/issues/1#note_500"
    assert (len(project.issues), len(project.notes)) == (1, 1)
    assert project.notes[0]["body"].startswith("It hangs.")


@pytest.mark.parametrize("item", ["", "1"], ids=["issue", "note"])
def test_a_lost_answer_posts_nothing_twice(server: Small, project: Project, tmp_path: Path, item: str) -> None:
    """What was posted is found, also on a later page, when its answer was lost."""
    project.issue(description="old")
    server.fail["POST", "/notes" if item else "/issues"] = [LOST]
    server.fail["GET", "/notes" if item else "/issues"] = [Told(500, {"message": "busy"})]

    def others(_: float) -> None:
        """Meanwhile, others write as well."""
        for _ in range(2):
            project.issue(description="another")
            project.notes.append({"id": 900, "iid": "1", "created_at": now(), "body": "another"})

    one = planned(address(server), item=item)
    entry = post(one, tmp_path, environment=ENVIRONMENT, outbox=tmp_path, wait=others)
    texts = [note["body"] for note in project.notes] if item else [issue["description"] for issue in project.issues]
    assert sum(text.startswith("It hangs.") for text in texts) == 1
    assert entry.url.endswith("/1#note_500" if item else "/issues/2")


def test_what_is_older_ends_the_search(server: Small, project: Project, tmp_path: Path) -> None:
    """Looking for a lost post ends at an issue that is older than the entry could be."""
    for _ in range(9):
        project.issue(description="old", created_at="2020-01-01T00:00:00.000Z")
    server.fail["POST", "/issues"] = [Told(502, {"message": "bad gateway"})]
    assert send(planned(address(server)), tmp_path, ENVIRONMENT).url.endswith("/issues/10")
    assert server.requests("GET") == ["/api/v4/projects/group/sub/project", f"{PROJECT}/issues"]


def test_the_server_says_how_long_to_wait(server: Small, tmp_path: Path) -> None:
    """Retry-After is heeded by us alone: the library does not wait on its own."""
    server.fail["POST", "/issues"] = [Told(429, {"message": "slow"}, {"Retry-After": "9"})]
    pauses: list[float] = []
    assert send(planned(address(server)), tmp_path, ENVIRONMENT, pauses).state == "posted"
    assert pauses == [9.0]


def test_a_file_that_was_uploaded_is_not_uploaded_again(server: Small, project: Project, tmp_path: Path) -> None:
    """When the issue is refused its uploads are recorded, and a later send goes on with the issue."""
    server.fail["POST", "/issues"] = [Told(403, {"message": "403 Forbidden"})]
    one = planned(address(server), NOTES)
    with pytest.raises(TrackerError, match="Forbidden"):
        send(one, tmp_path, ENVIRONMENT)
    assert read(tmp_path, one.entry.id).attached == ("notes.txt",)
    assert resume(one.entry.id, environment=ENVIRONMENT, outbox=tmp_path, wait=lambda _: None).state == "posted"
    assert len(project.uploads) == 1
    assert "- [file](/uploads/1/file)" in project.issues[0]["description"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_takes_no_token_along(server: Small, tmp_path: Path, status: int) -> None:
    """A server that sends the request on is an error, and the other server hears nothing; PRIVATE-TOKEN stays here."""
    with small_server(lambda _: Told(200, [])) as other:
        server.fail["POST", "/issues"] = [Told(status, None, {"Location": f"{other.url}/x"})]
        server.fail["GET", "/issues"] = [Told(status, None, {"Location": f"{other.url}/x"})]
        with pytest.raises(TrackerError, match="another address") as caught:
            send(planned(address(server)), tmp_path, ENVIRONMENT)
        assert not caught.value.again
        assert other.asked == []


def test_an_answer_that_is_none_is_told(server: Small, tmp_path: Path) -> None:
    """An answer without an issue in it is an error of the tracker, not of ours, and nothing is called posted."""
    server.fail["POST", "/issues"] = [Told(201, {"surprise": 1})]
    one = planned(address(server))
    with pytest.raises(TrackerError, match="cannot be read"):
        send(one, tmp_path, ENVIRONMENT)
    assert read(tmp_path, one.entry.id).state == "waiting"


def test_the_token_is_nowhere(
    server: Small, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No file, log line, output or error holds the token, even when the server repeats it in its answer."""
    caplog.set_level(0)
    send(planned(address(server), NOTES), tmp_path / "a", ENVIRONMENT)
    server.fail["POST", "/issues"] = [Told(400, {"message": {"token": [TOKEN, f"x{TOKEN}x"]}})]
    with pytest.raises(TrackerError) as caught:
        send(planned(address(server)), tmp_path / "b", ENVIRONMENT)
    told = capfd.readouterr()
    for text in (caplog.text, told.out, told.err, caught.value.message, repr(caught.value), repr(kept(tmp_path))):
        assert TOKEN not in text
    assert "x***x" in caught.value.message
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("words", ["gitlab:project", "gitlab:a/b#x", "gitlab:a//b", "gitlab:a/../b"])
def test_an_address_that_is_none_is_told(words: str) -> None:
    """A project is GROUP/PROJECT, with groups in groups, an issue a number."""
    with pytest.raises(UsageError):
        place_of(words)

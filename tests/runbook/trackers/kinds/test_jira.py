"""Jira: the real `jira` library against a small local server that speaks the documented shapes of API version 2.

Jira itself is not asked, neither Server nor Cloud: that they still speak like this is not shown here. For Cloud, whose
host nobody else can have, only the choice of the login is tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runbook.errors import UsageError
from runbook.trackers.kinds.jira import is_cloud
from runbook.trackers.outbox import read
from runbook.trackers.registry import place_of
from runbook.trackers.trouble import TrackerError
from tests.runbook.trackers.kinds.common import NOTES, PAGE, TOKEN, kept, planned, send
from tests.runbook.trackers.small_server import LOST, Asked, Small, Told, small_server

ENVIRONMENT = {"JIRA_TOKEN": TOKEN}
API = "/rest/api/2"


class Project:
    """Issues, comments and attachments of the project OPS. types: its issue types, with whether they are subtasks."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.types = {"Sub-task": True, "Task": False, "Bug": False}

    def issue(self, **fields: Any) -> dict[str, Any]:
        """Add an issue."""
        self.issues.append({"id": str(len(self.issues) + 100), "key": f"OPS-{len(self.issues) + 1}", "fields": fields})
        return self.issues[-1]

    def __call__(self, asked: Asked) -> Told:  # noqa: PLR0911 - one case a request
        """Answer a request as the API documents it."""
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return Told(401, {"errorMessages": ["You are not authenticated"]})
        match [asked.method, *asked.path.removeprefix(API).strip("/").split("/")]:
            case ["GET", "project", "OPS"]:
                types = [{"name": name, "subtask": subtask} for name, subtask in self.types.items()]
                return Told(200, {"id": "1", "key": "OPS", "issueTypes": types})
            case ["POST", "issue"]:
                made = self.issue(**asked.json["fields"])
                return Told(201, {"id": made["id"], "key": made["key"], "self": "x"})
            case ["GET", "field"]:
                return Told(200, [])
            case ["GET", "search"]:
                return self.search(asked)
            case ["GET", "issue", "OPS-1"]:
                files = [{"filename": one["filename"], "size": one["size"], "id": "1"} for one in self.files]
                return Told(200, {"id": "100", "key": "OPS-1", "self": "x", "fields": {"attachment": files}})
            case [method, "issue", key, what] if key == "OPS-1":
                return self.on_issue(method, what, asked)
        return Told(404, {"errorMessages": ["Issue Does Not Exist"], "errors": {}})

    def search(self, asked: Asked) -> Told:
        """Return the issues of the project."""
        assert re.fullmatch(r'project = "OPS" AND created >= "-14\d\dm" ORDER BY created DESC', asked.query["jql"])
        found = [{**one, "self": "x"} for one in self.issues[::-1]]
        return Told(200, {"startAt": 0, "maxResults": 50, "total": len(found), "issues": found})

    def on_issue(self, method: str, what: str, asked: Asked) -> Told:
        """Answer what is asked of OPS-1."""
        if (method, what) == ("POST", "comment"):
            self.comments.append({"id": str(len(self.comments) + 1), "self": "x", "body": asked.json["body"]})
            return Told(201, self.comments[-1])
        if (method, what) == ("GET", "comment"):
            start = int(asked.query["startAt"])
            return Told(200, {"comments": self.comments[::-1][start : start + 2], "total": len(self.comments)})
        assert (method, what, asked.headers["x-atlassian-token"]) == ("POST", "attachments", "no-check")
        name = re.search(rb'filename="([^"]+)"', asked.body)
        assert name is not None
        content = asked.body.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n--", 1)[0]
        self.files.append({"id": "1", "self": "x", "filename": name[1].decode(), "size": len(content)})
        return Told(200, [self.files[-1]])


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
    return f"jira+{server.url}/OPS"


def test_an_issue_is_opened_with_its_files(server: Small, project: Project, tmp_path: Path) -> None:
    """Summary, description with its mark in the last line, type, labels and attachments arrive."""
    one = planned(address(server), PAGE, NOTES, labels=("bug",))
    entry = send(one, tmp_path, ENVIRONMENT)
    assert entry.url == f"{server.url}/browse/OPS-1"
    fields = project.issues[0]["fields"]
    assert fields["description"] == f"It hangs.\n\nslime-runbook {one.entry.content.steps[0].mark}\n"
    assert (fields["summary"], fields["labels"]) == ("A hang in rank 3", ["bug"])
    assert (fields["project"], fields["issuetype"]) == ({"key": "OPS"}, {"name": "Bug"})
    assert [(one["filename"], one["size"]) for one in project.files] == [
        ("ticket.html", len(PAGE.content)),
        ("notes.txt", len(NOTES.content)),
    ]


def test_the_type_is_one_that_the_project_has(server: Small, project: Project, tmp_path: Path) -> None:
    """Where there are no bugs, the first type is taken that is no subtask."""
    project.types = {"Sub-task": True, "Incident": False, "Task": False}
    send(planned(address(server)), tmp_path, ENVIRONMENT)
    assert project.issues[0]["fields"]["issuetype"] == {"name": "Incident"}


@pytest.mark.parametrize("form", ["{}/OPS-1", "{}:OPS#1", "{}:OPS#OPS-1", "{}/OPS#1", "{}/browse/OPS-1"])
def test_a_comment_is_added(server: Small, project: Project, tmp_path: Path, form: str) -> None:
    """A comment goes to the issue however it is named, and opens none."""
    project.issue(description="old")
    entry = send(planned(form.format(f"jira+{server.url}")), tmp_path, ENVIRONMENT)
    assert entry.url == f"{server.url}/browse/OPS-1?focusedCommentId=1"
    assert (len(project.issues), len(project.comments)) == (1, 1)


@pytest.mark.parametrize(
    ("item", "end"), [("", "/issue"), ("1", "/comment"), ("", "/attachments")], ids=["issue", "comment", "file"]
)
def test_a_lost_answer_posts_nothing_twice(
    server: Small, project: Project, tmp_path: Path, item: str, end: str
) -> None:
    """What was posted is found when its answer was lost, after the index had time, a file by name and size."""
    if item:
        project.issue(description="old")
    project.comments += [{"id": str(800 + n), "self": "x", "body": "other"} for n in range(5)]
    server.fail["POST", end] = [LOST]
    pauses: list[float] = []
    send(planned(address(server), NOTES, item=item), tmp_path, ENVIRONMENT, pauses)
    counts = (len(project.issues), len(project.comments), len(project.files))
    assert counts == (1, 6 if item else 5, 1)
    assert pauses == [1.0, 5.0]


@pytest.mark.parametrize(("status", "hint"), [(401, "JIRA_TOKEN"), (403, "rights"), (404, "address"), (400, "take")])
def test_a_refusal_is_not_repeated(server: Small, tmp_path: Path, status: int, hint: str) -> None:
    """What Jira will not take is told with its words, once, without the library trying again."""
    server.fail["POST", "/issue"] = [Told(status, {"errorMessages": [], "errors": {"summary": f"No {TOKEN}!"}})] * 9
    one = planned(address(server))
    with pytest.raises(TrackerError, match=r"No \*\*\*!") as caught:
        send(one, tmp_path, ENVIRONMENT)
    assert hint in caught.value.hint
    assert server.requests("POST") == [f"{API}/issue"]
    assert read(tmp_path, one.entry.id).state == "refused"


def test_the_server_says_how_long_to_wait(server: Small, tmp_path: Path) -> None:
    """Retry-After is heeded by us alone."""
    server.fail["POST", "/issue"] = [Told(429, {}, {"Retry-After": "11"})]
    pauses: list[float] = []
    assert send(planned(address(server)), tmp_path, ENVIRONMENT, pauses).state == "posted"
    assert pauses[0] == 11.0


@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_takes_no_token_along(server: Small, tmp_path: Path, status: int) -> None:
    """A server that sends the request on is an error, and the other server hears nothing."""
    with small_server(lambda _: Told(200, {})) as other:
        server.fail["GET", "/OPS"] = [Told(status, None, {"Location": f"{other.url}/x"})]
        with pytest.raises(TrackerError, match="another address"):
            send(planned(address(server)), tmp_path, ENVIRONMENT)
        assert other.asked == []


def test_the_token_is_nowhere(
    server: Small, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """No file, log line, output or error holds the token."""
    caplog.set_level(0)
    send(planned(address(server), NOTES), tmp_path / "a", ENVIRONMENT)
    server.fail["POST", "/issue"] = [Told(500, {"errorMessages": [TOKEN]})] * 9
    with pytest.raises(TrackerError) as caught:
        send(planned(address(server)), tmp_path / "b", ENVIRONMENT)
    told = capfd.readouterr()
    for text in (caplog.text, told.out, told.err, caught.value.message, repr(caught.value), repr(kept(tmp_path))):
        assert TOKEN not in text
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize(
    "words",
    [
        "jira:OPS",
        "jira+https://host",
        "jira+https://host/ops",
        "jira+https://host/OPS-1#2",
        "jira+https://host:OPS#QA-2",
    ],
)
def test_an_address_that_is_none_is_told(words: str) -> None:
    """Jira needs a site and a key, and one issue of that project."""
    with pytest.raises(UsageError):
        place_of(words)


def test_cloud_wants_the_mail_address() -> None:
    """On Atlassian's hosts the token goes with a mail address, elsewhere alone; no other host passes for theirs."""
    for words, names in [
        ("jira+https://us.atlassian.net/OPS", ["JIRA_TOKEN", "JIRA_EMAIL"]),
        ("jira+https://jira.example.com/OPS", ["JIRA_TOKEN"]),
        ("jira+https://evilatlassian.net/OPS", ["JIRA_TOKEN"]),
    ]:
        kind, where = place_of(words)
        assert [credential.names[0] for credential in kind.needs(where)] == names
        assert is_cloud(where) == (len(names) == 2)

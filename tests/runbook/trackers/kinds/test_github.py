"""GitHub: the real PyGithub against a small local server that speaks the documented shapes of the REST API.

GitHub itself is not asked: that it still speaks like this is not shown here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runbook.errors import UsageError
from runbook.ticket.outgoing import Attachment
from runbook.trackers.outbox import read
from runbook.trackers.registry import place_of
from runbook.trackers.send import post, resume
from runbook.trackers.trouble import TrackerError
from tests.runbook.trackers.kinds.common import NOTES, PAGE, TOKEN, kept, planned, send
from tests.runbook.trackers.small_server import LOST, Asked, Small, Told, small_server

ENVIRONMENT = {"GH_TOKEN": TOKEN}


class Repository:
    """Issues and comments of owner/repo."""

    def __init__(self) -> None:
        self.issues: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []

    def issue(self, title: str, body: str, labels: list[str]) -> dict[str, Any]:
        """Add an issue."""
        number = len(self.issues) + 1
        now = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        page = f"https://github.example/owner/repo/issues/{number}"
        made = {"number": number, "id": 1000 + number, "title": title, "body": body, "html_url": page}
        self.issues.append({**made, "labels": [{"name": one} for one in labels], "created_at": now, "updated_at": now})
        return self.issues[-1]

    def __call__(self, asked: Asked) -> Told:  # noqa: PLR0911 - one case a request
        """Answer a request as the REST API documents it."""
        if asked.headers.get("authorization") != f"token {TOKEN}":
            return Told(401, {"message": f"Bad credentials {asked.headers.get('authorization')}"})
        match [asked.method, *asked.path.strip("/").split("/")]:
            case ["POST", "repos", "owner", "repo", "issues"]:
                wanted = asked.json
                return Told(201, self.issue(wanted["title"], wanted["body"], wanted["labels"]))
            case ["GET", "repos", "owner", "repo", "issues"]:
                assert (asked.query["sort"], asked.query["direction"], asked.query["state"]) == (
                    "created",
                    "desc",
                    "all",
                )
                page, host = int(asked.query.get("page", 1)), asked.headers["host"]
                query = f"state=all&sort=created&direction=desc&page={page + 1}"
                link = (
                    {"Link": f'<http://{host}{asked.path}?{query}>; rel="next"'} if len(self.issues) > 2 * page else {}
                )
                return Told(200, self.issues[::-1][2 * page - 2 : 2 * page], link)
            case ["GET", "repos", "owner", "repo", "issues", number] if number.isdigit() and int(number) <= len(
                self.issues
            ):
                return Told(200, self.issues[int(number) - 1])
            case ["POST", "repos", "owner", "repo", "issues", number, "comments"]:
                one = {"id": len(self.comments) + 1, "body": asked.json["body"], "issue": number}
                self.comments.append(
                    {**one, "html_url": f"https://github.example/owner/repo/issues/{number}#c{one['id']}"}
                )
                return Told(201, self.comments[-1])
            case ["GET", "repos", "owner", "repo", "issues", number, "comments"]:
                assert "since" in asked.query
                return Told(200, [one for one in self.comments if one["issue"] == number])
        return Told(404, {"message": "Not Found"})


@pytest.fixture
def repository() -> Repository:
    """Return an empty repository."""
    return Repository()


@pytest.fixture
def server(repository: Repository) -> Iterator[Small]:
    """Serve it."""
    with small_server(repository) as found:
        yield found


def address(server: Small) -> str:
    """Return the address of the repository."""
    return f"github+{server.url}:owner/repo"


def test_an_issue_is_opened(server: Small, repository: Repository, tmp_path: Path) -> None:
    """Title, body with its mark in a comment of HTML, and labels arrive; the answer's page is where it stands."""
    one = planned(address(server), labels=("bug", "3 a.m."))
    entry = send(one, tmp_path, ENVIRONMENT)
    assert entry.url == "https://github.example/owner/repo/issues/1"
    issue = repository.issues[0]
    assert issue["title"] == "A hang in rank 3"
    assert issue["body"] == f"It hangs.\n\n<!-- slime-runbook {one.entry.content.steps[0].mark} -->\n"
    assert [label["name"] for label in issue["labels"]] == ["bug", "3 a.m."]
    assert server.requests("POST") == ["/repos/owner/repo/issues"]


def test_files_become_comments_and_large_ones_stay(server: Small, repository: Repository, tmp_path: Path) -> None:
    """A text goes along as a fenced comment; what is no text is named in the body and kept beside the session."""
    send(planned(address(server), NOTES, PAGE), tmp_path, ENVIRONMENT)
    assert "ticket.html (1.1 kB)" in repository.issues[0]["body"]
    assert [one["body"].partition("\n\n<!--")[0] for one in repository.comments] == [
        "notes.txt\n\n```\n中文 notes\n```"
    ]
    assert [path.read_bytes() for path in tmp_path.glob("*-ticket.html")] == [PAGE.content]


def test_a_long_text_is_split_under_the_limit(server: Small, repository: Repository, tmp_path: Path) -> None:
    """A file of 150,000 characters becomes three comments, each under GitHub's limit, and none of it is missing."""
    text = "".join(f"line {number} 中\n" for number in range(10_000))
    send(planned(address(server), Attachment("all.md", "text/markdown", text.encode())), tmp_path, ENVIRONMENT)
    bodies = [one["body"] for one in repository.comments]
    assert len(bodies) == -(-len(text) // 65_000)
    assert all(len(body) <= 65_536 for body in bodies)
    lines = [line for body in bodies for line in body.splitlines() if line.startswith("line ")]
    assert lines == text.splitlines()


def test_a_comment_is_added(server: Small, repository: Repository, tmp_path: Path) -> None:
    """`#N` adds a comment to that issue and opens none."""
    repository.issue("old", "old", [])
    entry = send(planned(f"{address(server)}#1"), tmp_path, ENVIRONMENT)
    assert entry.url == "https://github.example/owner/repo/issues/1#c1"
    assert (len(repository.issues), len(repository.comments)) == (1, 1)


@pytest.mark.parametrize(
    "path", ["/issues", "/comments"],
)  # fmt: skip
def test_a_lost_answer_posts_nothing_twice(server: Small, repository: Repository, tmp_path: Path, path: str) -> None:
    """An issue or comment whose answer was lost is found among the newest and not posted again."""
    server.fail["POST", path] = [LOST]

    def others(_: float) -> None:
        """Meanwhile, others write as well."""
        for _ in range(3):
            repository.issue("another", "another", [])

    one = planned(address(server), NOTES)
    entry = post(one, tmp_path, environment=ENVIRONMENT, outbox=tmp_path, wait=others)
    assert entry.url == "https://github.example/owner/repo/issues/1"
    assert [issue["title"] for issue in repository.issues] == ["A hang in rank 3", *["another"] * 3]
    assert len(repository.comments) == 1


def test_an_old_repository_is_not_read_whole(server: Small, repository: Repository, tmp_path: Path) -> None:
    """Looking for a lost post ends at issues that are older than the entry could be, and then it is posted."""
    for number in range(3):
        repository.issue(f"old {number}", "old", [])["created_at"] = "2020-01-01T00:00:00Z"
    server.fail["POST", "/issues"] = [Told(502, {"message": "Bad Gateway"})]
    entry = send(planned(address(server)), tmp_path, ENVIRONMENT)
    assert entry.url.endswith("/4")
    assert len(repository.issues) == 4
    assert server.requests("GET") == ["/repos/owner/repo/issues"]


@pytest.mark.parametrize(
    ("told", "pause"),
    [
        (Told(429, {"message": "slow down"}, {"Retry-After": "7"}), 7.0),
        (Told(403, {"message": "secondary rate limit"}, {"Retry-After": "3"}), 3.0),
        (Told(503, {"message": "busy"}), 1.0),
    ],
    ids=["429", "403", "503"],
)
def test_the_server_says_how_long_to_wait(server: Small, tmp_path: Path, told: Told, pause: float) -> None:
    """Retry-After is heeded for 429 and for a 403 that has it; without it a second is waited."""
    server.fail["POST", "/issues"] = [told]
    pauses: list[float] = []
    assert send(planned(address(server)), tmp_path, ENVIRONMENT, pauses).state == "posted"
    assert pauses == [pause]


def test_too_long_a_wait_is_left_to_the_outbox(server: Small, tmp_path: Path) -> None:
    """An exhausted hourly limit is not waited for: the entry stays, and later goes."""
    server.fail["POST", "/issues"] = [Told(403, {"message": "rate limit"}, {"X-RateLimit-Remaining": "0"})]
    one, pauses = planned(address(server)), list[float]()
    with pytest.raises(TrackerError, match="rate limit") as caught:
        send(one, tmp_path, ENVIRONMENT, pauses)
    assert (caught.value.again, pauses) == (True, [])
    assert read(tmp_path, one.entry.id).state == "waiting"
    assert resume(one.entry.id, environment=ENVIRONMENT, outbox=tmp_path).state == "posted"


@pytest.mark.parametrize(("status", "hint"), [(401, "GITHUB_TOKEN"), (404, "address"), (410, "address"), (422, "take")])
def test_a_refusal_is_not_repeated(server: Small, tmp_path: Path, status: int, hint: str) -> None:
    """What the server will not take is told with its words, once; the entry is marked as refused."""
    server.fail["POST", "/issues"] = [Told(status, {"message": "Not\x1b[2J this"})] * 9
    one = planned(address(server))
    with pytest.raises(TrackerError, match="Not this") as caught:
        send(one, tmp_path, ENVIRONMENT)
    assert hint in caught.value.hint
    assert server.requests("POST") == ["/repos/owner/repo/issues"]
    assert read(tmp_path, one.entry.id).state == "refused"


def test_a_redirect_takes_no_token_along(server: Small, tmp_path: Path) -> None:
    """A server that sends the request on to another host is an error, and the other host hears nothing."""
    with small_server(lambda _: Told(200, [])) as other:
        where = {"Location": f"{other.url.replace('127.0.0.1', 'localhost')}/repos/owner/repo/issues"}
        for status in (301, 302, 307, 308):
            server.fail["POST", "/issues"] = [Told(status, {}, where)]
            server.fail["POST", "/comments"] = [Told(status, {}, where)]
            for words in (address(server), f"{address(server)}#1"):
                with pytest.raises(TrackerError):
                    send(planned(words), tmp_path, ENVIRONMENT)
        assert other.asked == []


def test_the_token_is_nowhere(
    server: Small, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """No file, log line, output or error holds the token, even when the server repeats it; .netrc is not read."""
    caplog.set_level(0)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login x password y\n")
    monkeypatch.setenv("NETRC", str(netrc))
    send(planned(address(server), NOTES), tmp_path / "a", ENVIRONMENT)
    server.fail["POST", "/issues"] = [Told(422, {"message": f"you said token {TOKEN}", "errors": [TOKEN]})]
    with pytest.raises(TrackerError) as caught:
        send(planned(address(server)), tmp_path / "b", ENVIRONMENT)
    told = capfd.readouterr()
    for text in (caplog.text, told.out, told.err, caught.value.message, repr(caught.value), repr(kept(tmp_path))):
        assert TOKEN not in text
    assert "you said" in caught.value.message
    assert b"It hangs." in kept(tmp_path)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)


@pytest.mark.parametrize("words", ["github:owner", "github:a/b/c", "github:a/b#x", "github:/", "github:../b"])
def test_an_address_that_is_none_is_told(words: str) -> None:
    """A repository is OWNER/REPO, an issue a number; the error shows how it is written."""
    with pytest.raises(UsageError) as caught:
        place_of(words)
    assert "github:OWNER/REPO" in caught.value.hint or "#12" in caught.value.hint


def test_the_public_site_is_the_default() -> None:
    """Without a site an issue of github.com is meant; on a server of one's own the page is beside the API."""
    from runbook.trackers.kinds.github import TRACKER
    from runbook.trackers.tokens import Secret

    for words, url in [
        ("github:o/r", "https://github.com/o/r/issues/5"),
        ("github+https://ghe.example.com/api/v3:o/r", "https://ghe.example.com/o/r/issues/5"),
    ]:
        kind, where = place_of(words)
        assert kind is TRACKER
        assert kind.connect(where, {"GITHUB_TOKEN": Secret("x")}).url_of("5") == url

"""GitHub and GitHub Enterprise, through PyGithub.

Its API takes no files, so what goes along becomes further comments. A post is looked for in the newest issues, or in
the comments since then: not by search, whose index lags.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from runbook.ticket.outgoing import Attachment
from runbook.trackers.address import Address, check_number, check_place
from runbook.trackers.model import Attaches, Kind, Posted
from runbook.trackers.tokens import Credential, Secret, Veil
from runbook.trackers.trouble import TIMEOUT, Answer, TrackerError, guarded, missing

if TYPE_CHECKING:
    from github.Issue import Issue

T = TypeVar("T")

TOKEN = "GITHUB_TOKEN"
"""First name of the variable."""

_PUBLIC = "https://api.github.com"
_LOOKED_AT = 1000
"""Issues and comments that are looked at before it cannot be told whether one was posted."""


class GitHub:
    """A repository."""

    def __init__(self, address: Address, secrets: Mapping[str, Secret]) -> None:
        try:
            from github import Auth, Github
        except ImportError:
            raise missing("PyGithub") from None
        self._address = address
        self._veil = Veil(secrets.values())

        def opened() -> Any:
            client = Github(
                auth=Auth.Token(secrets[TOKEN].reveal()),
                base_url=address.site or _PUBLIC,
                timeout=int(TIMEOUT[1]),
                retry=None,
                seconds_between_requests=None,
                seconds_between_writes=None,
                user_agent="slime-runbook",
                lazy=True,
            )
            return client.get_repo(address.place)

        self._repository = self._guarded(opened)

    def create(self, title: str, body: str, labels: Sequence[str], mark: str) -> Posted:
        """Open an issue."""
        return self._guarded(
            lambda: _posted(self._repository.create_issue(title=title, body=body, labels=list(labels)))
        )

    def comment(self, item: str, body: str, mark: str) -> Posted:
        """Add a comment."""
        return self._guarded(lambda: _commented(item, self._issue(item).create_comment(body)))

    def attach(self, item: str, file: Attachment) -> NoReturn:
        """Raise: the API takes no files."""
        raise TrackerError(f"{self._address}: GitHub takes no files through its API", "send it as a comment")

    def find(self, item: str, mark: str, since: float) -> Posted | None:
        """Look through the newest issues, or the comments since then."""
        moment = dt.datetime.fromtimestamp(since, dt.timezone.utc)

        def look() -> Posted | None:
            if item:
                for comment in self._enough(self._issue(item).get_comments(since=moment)):
                    if mark in (comment.body or ""):
                        return _commented(item, comment)
                return None
            newest = self._repository.get_issues(state="all", sort="created", direction="desc")
            for issue in self._enough(newest):
                if issue.created_at < moment:
                    return None
                if mark in (issue.body or ""):
                    return _posted(issue)
            return None

        return self._guarded(look)

    def holds(self, item: str, file: Attachment, since: float) -> bool:
        """Return False: an issue has no files."""
        return False

    def url_of(self, item: str) -> str:
        """Return the address of an issue."""
        if not self._address.site:
            return f"https://github.com/{self._address.place}/issues/{item}"
        return f"{self._address.site.removesuffix('/api/v3')}/{self._address.place}/issues/{item}"

    def _issue(self, item: str) -> Issue:
        issue: Issue = self._repository.get_issue(int(item))
        return issue

    def _enough(self, found: Any) -> Any:
        yield from islice(found, _LOOKED_AT)
        if next(islice(found, _LOOKED_AT, None), None) is not None:
            words = f"{self._address}: too much was posted since then to tell whether this was"
            raise TrackerError(words, "look there yourself; drop the entry if it is there")

    def _guarded(self, call: Callable[[], T]) -> T:
        return guarded(call, str(self._address), self._veil, _answer, TOKEN)


def _posted(issue: Any) -> Posted:
    """Return an issue as posted; the library takes any answer below 400 for a success, so it must be one."""
    if issue.number is None:
        raise ValueError("it holds no issue; the repository may have another name now")
    return Posted(str(issue.number), str(issue.html_url))


def _commented(item: str, comment: Any) -> Posted:
    if comment.html_url is None:
        raise ValueError("it holds no comment; the repository may have another name now")
    return Posted(item, str(comment.html_url))


def _answer(error: Exception) -> Answer | None:
    from github import GithubException

    if not isinstance(error, GithubException) or error.status < 300:
        return None
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    after = str(headers.get("retry-after", ""))
    if not after and str(headers.get("x-ratelimit-remaining", "")) == "0":
        after = "3600"
    return Answer(error.status, str(error.message or ""), after)


def _settle(address: Address) -> Address:
    check_place(address, "github:OWNER/REPO", 2, 2)
    check_number(address)
    return address


def _needs(address: Address) -> tuple[Credential, ...]:
    return (Credential((TOKEN, "GH_TOKEN"), "a token that may write issues"),)


TRACKER = Kind(
    name="github",
    title="GitHub",
    example="github:owner/repo",
    formats=("markdown",),
    attaches=Attaches.NEVER,
    limit=65_536,
    title_limit=256,
    labels=True,
    package="PyGithub",
    settle=_settle,
    needs=_needs,
    connect=GitHub,
)

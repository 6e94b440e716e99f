"""GitLab, through python-gitlab: files are uploaded to the project first, and the body links to them.

An upload whose answer was lost is made again: what nothing links to, nobody sees. The library's own waiting for rate
limits is switched off, for it has no bound.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from runbook.ticket.outgoing import Attachment
from runbook.trackers.address import Address, check_number, check_place
from runbook.trackers.model import Attaches, Kind, Posted
from runbook.trackers.tokens import Credential, Secret, Veil
from runbook.trackers.trouble import TIMEOUT, Answer, TrackerError, guarded, missing
from runbook.trackers.web import new_session

T = TypeVar("T")

TOKEN = "GITLAB_TOKEN"
"""Name of the variable."""

_PUBLIC = "https://gitlab.com"
_LOOKED_AT = 1000
_PLAIN: dict[str, Any] = {"obey_rate_limit": False, "retry_transient_errors": False}


class GitLab:
    """A project."""

    def __init__(self, address: Address, secrets: Mapping[str, Secret]) -> None:
        try:
            import gitlab
        except ImportError:
            raise missing("python-gitlab") from None
        self._address = address
        self._site = address.site or _PUBLIC
        self._veil = Veil(secrets.values())
        self._heard: dict[str, str] = {}

        self._client: Any = gitlab.Gitlab(
            self._site,
            private_token=secrets[TOKEN].reveal(),
            timeout=TIMEOUT[1],
            session=new_session(self._heard),
            user_agent="slime-runbook",
            keep_base_url=True,  # what a page says of the next one is not followed to another host
        )
        self._found: Any = None

    @property
    def _project(self) -> Any:
        """The project by its number, asked for once: the library writes a name into some paths encoded twice."""
        if self._found is None:
            self._found = self._client.projects.get(self._address.place, **_PLAIN)
        return self._found

    def create(self, title: str, body: str, labels: Sequence[str], mark: str) -> Posted:
        """Open an issue."""
        content = {"title": title, "description": body, **({"labels": ",".join(labels)} if labels else {})}
        return self._guarded(lambda: _posted(self._project.issues.create(content, **_PLAIN)))

    def comment(self, item: str, body: str, mark: str) -> Posted:
        """Add a note."""
        return self._guarded(lambda: self._noted(item, self._notes(item).create({"body": body}, **_PLAIN)))

    def attach(self, item: str, file: Attachment) -> str:
        """Upload a file to the project; return the Markdown that links to it."""
        return self._guarded(lambda: str(self._project.upload(file.name, filedata=file.content, **_PLAIN)["markdown"]))

    def find(self, item: str, mark: str, since: float) -> Posted | None:
        """Look through the newest issues, or the newest notes of one."""
        moment = dt.datetime.fromtimestamp(since, dt.timezone.utc)

        def look() -> Posted | None:
            order: dict[str, Any] = {
                "order_by": "created_at",
                "sort": "desc",
                "iterator": True,
                "per_page": 100,
                **_PLAIN,
            }
            if item:
                for note in self._since(self._notes(item).list(**order), moment):
                    if mark in (note.body or ""):
                        return self._noted(item, note)
                return None
            for issue in self._since(self._project.issues.list(scope="all", **order), moment):
                if mark in (issue.description or ""):
                    return _posted(issue)
            return None

        return self._guarded(look)

    def holds(self, item: str, file: Attachment, since: float) -> bool:
        """Return False: uploads cannot be listed by everybody, and one too many is not seen."""
        return False

    def url_of(self, item: str) -> str:
        """Return the address of an issue."""
        return f"{self._site}/{self._address.place}/-/issues/{item}"

    def _noted(self, item: str, note: Any) -> Posted:
        return Posted(item, f"{self.url_of(item)}#note_{int(note.id)}")

    def _notes(self, item: str) -> Any:
        return self._project.issues.get(int(item), lazy=True).notes

    def _since(self, found: Iterable[Any], moment: dt.datetime) -> Iterator[Any]:
        for number, one in enumerate(found):
            if dt.datetime.fromisoformat(str(one.created_at).replace("Z", "+00:00")) < moment:
                return
            if number >= _LOOKED_AT:
                words = f"{self._address}: too much was posted since then to tell whether this was"
                raise TrackerError(words, "look there yourself; drop the entry if it is there")
            yield one

    def _guarded(self, call: Callable[[], T]) -> T:
        return guarded(call, str(self._address), self._veil, self._answer, TOKEN)

    def _answer(self, error: Exception) -> Answer | None:
        from gitlab.exceptions import GitlabError

        if not isinstance(error, GitlabError) or not error.response_code:
            return None
        return Answer(error.response_code, str(error.error_message), self._heard.get("after", ""))


def _posted(issue: Any) -> Posted:
    return Posted(str(int(issue.iid)), str(issue.web_url))


def _settle(address: Address) -> Address:
    check_place(address, "gitlab:GROUP/PROJECT", 2, 20)
    check_number(address)
    return address


def _needs(address: Address) -> tuple[Credential, ...]:
    return (Credential((TOKEN,), "a token with the scope api"),)


TRACKER = Kind(
    name="gitlab",
    title="GitLab",
    example="gitlab:group/project",
    formats=("gitlab",),  # only this layout keeps GitLab from obeying what stands in evidence
    attaches=Attaches.FIRST,
    limit=1_000_000,
    title_limit=255,
    labels=True,
    package="python-gitlab",
    settle=_settle,
    needs=_needs,
    connect=GitLab,
)

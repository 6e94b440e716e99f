"""Jira Cloud, Server and Data Center, through the `jira` library and version 2 of the API.

Version 2 takes wiki markup everywhere, so that one layout fits all. Cloud is told by its host, *.atlassian.net, and
wants the mail address beside the token. A post is looked for by project and time; that goes through Jira's index,
which needs a moment before it knows what was just written (`lag`).
"""

from __future__ import annotations

import io
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from runbook.errors import UsageError
from runbook.ticket.outgoing import Attachment
from runbook.trackers.address import Address, check_place, need_site
from runbook.trackers.model import Attaches, Kind, Posted
from runbook.trackers.tokens import Credential, Secret, Veil
from runbook.trackers.trouble import TIMEOUT, Answer, TrackerError, guarded, missing

T = TypeVar("T")

TOKEN = "JIRA_TOKEN"
"""Name of the variable with the token."""
EMAIL = "JIRA_EMAIL"
"""Name of the variable with the mail address, for Cloud."""

_FORM = "jira+https://HOST/PROJECT, or jira+https://HOST/PROJECT-12 to comment"
_PROJECT = re.compile(r"[A-Z][A-Z0-9_]{1,254}", re.ASCII)
_KEY = re.compile(r"([A-Z][A-Z0-9_]{1,254})-(\d+)", re.ASCII)
_CLOUD = ".atlassian.net"
_LOOKED_AT = 5000
_PAGE = 100
_PREFERRED = "Bug"


class Jira:
    """A project."""

    def __init__(self, address: Address, secrets: Mapping[str, Secret]) -> None:
        try:
            import jira
        except ImportError:
            raise missing("jira") from None
        self._address = address
        self._veil = Veil(secrets.values())
        self._named = f"{EMAIL} and {TOKEN}" if is_cloud(address) else TOKEN
        token = secrets[TOKEN].reveal()
        login: dict[str, Any] = (
            {"basic_auth": (secrets[EMAIL].reveal(), token)} if is_cloud(address) else {"token_auth": token}
        )

        def opened() -> Any:
            client = jira.JIRA(
                address.site,
                options={"rest_api_version": "2", "check_update": False},
                timeout=TIMEOUT,
                max_retries=0,
                get_server_info=False,
                logging=False,
                **login,
            )
            session = client._session  # noqa: SLF001 - the library has no other way to forbid redirects
            session.max_redirects = 0
            client.deploymentType = "Cloud" if is_cloud(address) else "Server"  # which search there is
            return client

        self._client = self._guarded(opened)

    def create(self, title: str, body: str, labels: Sequence[str], mark: str) -> Posted:
        """Open an issue: a bug, or of the first type that the project has."""

        def made() -> str:
            fields = {
                "project": {"key": self._address.place},
                "issuetype": {"name": self._type()},
                "summary": title,
                "description": body,
                **({"labels": list(labels)} if labels else {}),
            }
            return str(self._client.create_issue(fields=fields, prefetch=False).key)

        key = self._guarded(made)
        return Posted(key, self.url_of(key))

    def comment(self, item: str, body: str, mark: str) -> Posted:
        """Add a comment."""
        return self._guarded(lambda: self._commented(item, self._client.add_comment(item, body)))

    def attach(self, item: str, file: Attachment) -> str:
        """Add a file to an issue."""
        self._guarded(lambda: self._client.add_attachment(item, io.BytesIO(file.content), filename=file.name))
        return f"[^{file.name}]"

    def find(self, item: str, mark: str, since: float) -> Posted | None:
        """Look through the issues of the project since then, or the newest comments of an issue."""

        def look() -> Posted | None:
            if item:
                found = next((one for one in self._comments(item) if mark in _text(one.body)), None)
                return self._commented(item, found) if found is not None else None
            minutes = max(1, math.ceil((time.time() - since) / 60))
            query = f'project = "{self._address.place}" AND created >= "-{minutes}m" ORDER BY created DESC'
            for issue in self._client.search_issues(query, maxResults=0, fields=["description"]):  # 0: all of them
                if mark in _text(issue.fields.description):
                    return Posted(str(issue.key), self.url_of(str(issue.key)))
            return None

        return self._guarded(look)

    def holds(self, item: str, file: Attachment, since: float) -> bool:
        """Return whether an issue has a file of that name and size."""
        wanted = (file.name, len(file.content))

        def look() -> bool:
            there = self._client.issue(item, fields="attachment").fields.attachment
            return any((one.filename, int(one.size)) == wanted for one in there)

        return self._guarded(look)

    def url_of(self, item: str) -> str:
        """Return the address of an issue."""
        return f"{self._address.site}/browse/{item}"

    def _comments(self, item: str) -> Iterator[Any]:
        """Yield the comments of an issue, page by page, whether or not the server heeds the order and the pages."""
        seen: set[str] = set()
        while True:
            page = self._client.comments(item, start_at=len(seen), max_results=_PAGE, order_by="-created")
            new = [one for one in page if one.id not in seen]
            if not new:
                return
            yield from new
            seen.update(one.id for one in new)
            if len(seen) > _LOOKED_AT:
                words = f"{self._address}: there are too many comments to tell whether this was posted"
                raise TrackerError(words, "look there yourself; drop the entry if it is there")

    def _type(self) -> str:
        types = [one for one in self._client.project(self._address.place).issueTypes if not one.subtask]
        names = [str(one.name) for one in types]
        return _PREFERRED if _PREFERRED in names or not names else names[0]

    def _commented(self, item: str, comment: Any) -> Posted:
        return Posted(item, f"{self.url_of(item)}?focusedCommentId={comment.id}")

    def _guarded(self, call: Callable[[], T]) -> T:
        return guarded(call, str(self._address), self._veil, _answer, self._named)


def is_cloud(address: Address) -> bool:
    """Return whether the server is Atlassian's."""
    return address.host.endswith(_CLOUD)


def _text(content: object) -> str:
    """Return a body as text in which a mark is found: version 3 of the API, which Cloud's search has, gives a tree."""
    return content if isinstance(content, str) else json.dumps(getattr(content, "__dict__", content), default=vars)


def _answer(error: Exception) -> Answer | None:
    from jira import JIRAError

    if not isinstance(error, JIRAError) or not error.status_code:
        return None
    headers = getattr(error.response, "headers", {})
    return Answer(int(error.status_code), str(error.text or ""), str(headers.get("Retry-After", "")))


def _settle(address: Address) -> Address:
    need_site(address, _FORM)
    site, place = address.site, address.place
    if not place:
        site, _, place = site.rpartition("/")
        site = site.removesuffix("/browse")
    key = _KEY.fullmatch(place)
    item = address.item
    if key is not None:
        if item and item not in (place, key[2]):
            raise UsageError(f"{address}: two tickets to comment on: {place} and {item}", "name one of them")
        place, item = key[1], place
    found = Address(address.kind, site, place, f"{place}-{item}" if item.isdigit() else item)
    check_place(found, _FORM, 1, 1)
    if not _PROJECT.fullmatch(place) or "//" not in site or site.endswith("/"):
        raise UsageError(f"{address}: the project is {place!r}, which is no key such as OPS", f"write it as {_FORM}")
    if found.item and not (_KEY.fullmatch(found.item) and found.item.startswith(f"{place}-")):
        raise UsageError(f"{address}: the ticket is {found.item!r}, which is none of {place}", f"write it as {_FORM}")
    return found


def _needs(address: Address) -> tuple[Credential, ...]:
    if is_cloud(address):
        return (
            Credential((TOKEN,), "an API token"),
            Credential((EMAIL,), "the mail address that the token belongs to"),
        )
    return (Credential((TOKEN,), "a personal access token"),)


TRACKER = Kind(
    name="jira",
    title="Jira",
    example="jira+https://host/PROJECT",
    formats=("jira",),  # what is sent is read as wiki markup, whatever it was meant as
    attaches=Attaches.TO_ITEM,
    limit=32_767,
    title_limit=255,
    labels=True,
    package="jira",
    settle=_settle,
    needs=_needs,
    connect=Jira,
    lag=5.0,
)

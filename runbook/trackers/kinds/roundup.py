"""Roundup, through its REST interface (Roundup 2).

A ticket is an issue whose first message is the body; files are linked to the issue. A message or file that was made but
whose answer was lost, so that no issue has it yet, is found again and used.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from runbook.errors import UsageError
from runbook.ticket.outgoing import Attachment
from runbook.trackers.address import Address, check_number, need_site
from runbook.trackers.model import Attaches, Kind, Posted
from runbook.trackers.tokens import Credential, Secret, Veil
from runbook.trackers.trouble import TIMEOUT, Answer, TrackerError, guarded, missing
from runbook.trackers.web import new_session

T = TypeVar("T")

LOGIN, PASSWORD = "ROUNDUP_LOGIN", "ROUNDUP_PASSWORD"
"""Names of the variables."""

_FORM = "roundup+https://HOST/TRACKER, or roundup+https://HOST/TRACKER#12 to comment"
_LOOKED_AT = 200


class Roundup:
    """A tracker."""

    def __init__(self, address: Address, secrets: Mapping[str, Secret]) -> None:
        heard: dict[str, str] = {}
        try:
            session = new_session(heard)
        except ImportError:
            raise missing("requests") from None
        self._address, self._heard, self._session = address, heard, session
        self._veil = Veil(secrets.values())
        parts = urlsplit(address.site)
        session.auth = (secrets[LOGIN].reveal(), secrets[PASSWORD].reveal())
        session.headers.update(
            {
                "X-Requested-With": "rest",
                "Origin": f"{parts.scheme}://{parts.netloc}",
                "Referer": f"{address.site}/",
                "Accept": "application/json",
                "User-Agent": "slime-runbook",
            }
        )
        self._login = secrets[LOGIN].reveal()
        self._me = ""
        self._loose: dict[str, str] = {}
        self._loose_files: dict[str, str] = {}

    def create(self, title: str, body: str, labels: Sequence[str], mark: str) -> Posted:
        """Open an issue."""
        message = self._message(body, mark)
        item = self._made("issue", json={"title": title, "messages": [message]})
        return Posted(item, self.url_of(item))

    def comment(self, item: str, body: str, mark: str) -> Posted:
        """Add a message to an issue."""
        self._need(item)
        message = self._message(body, mark)
        self._link(item, "messages", message)
        return Posted(item, self._message_url(message))

    def attach(self, item: str, file: Attachment) -> str:
        """Add a file to an issue."""
        number = self._loose_files.get(_digest(file))
        if number is None:
            content = {
                "name": (None, file.name),
                "type": (None, file.media),
                "content": (file.name, file.content, file.media),
            }
            number = self._made("file", files=content)
        self._link(item, "files", number)
        return f"{self._address.site}/file{number}/"

    def find(self, item: str, mark: str, since: float) -> Posted | None:
        """Look through our own messages since then, and which issue has the one with the mark."""
        for message in self._since("msg", since, author=self._my_id()):
            if mark in self._ask("GET", f"msg/{message}/content", lambda data: str(data["data"])):
                issues = self._ids("issue", messages=message)
                if item in issues or (issues and not item):
                    return Posted(item or issues[0], self._message_url(message) if item else self.url_of(issues[0]))
                self._loose[mark] = message
                return None
        return None

    def holds(self, item: str, file: Attachment, since: float) -> bool:
        """Return whether an issue has the file; one that no issue has is kept in mind for `attach`."""
        linked = self._ask("GET", f"issue/{item}", lambda data: {str(one["id"]) for one in data["attributes"]["files"]})
        for number in self._since("file", since, name=file.name, creator=self._my_id()):
            content = self._raw("GET", f"file/{number}/binary_content", headers={"Accept": "*/*"}).content
            if content == file.content:
                if number in linked:
                    return True
                if not self._ids("issue", files=number):
                    self._loose_files[_digest(file)] = number
        return False

    def url_of(self, item: str) -> str:
        """Return the address of an issue."""
        return f"{self._address.site}/issue{item}"

    def _message_url(self, message: str) -> str:
        return f"{self._address.site}/msg{message}"

    def _message(self, body: str, mark: str) -> str:
        """Return the number of the message with the body, a new one unless it was made before."""
        if mark in self._loose:
            return self._loose[mark]
        now = dt.datetime.now(dt.timezone.utc).strftime("%Y-%m-%d.%H:%M:%S")
        content = {"content": body, "type": "text/plain", "author": self._my_id(), "date": now}
        return self._made("msg", json=content)

    def _my_id(self) -> str:
        """Return the number of the user who logs in."""
        if not self._me:

            def mine(data: Any) -> list[str]:
                return [str(user["id"]) for user in data["collection"] if user.get("username") == self._login]

            found = self._ask("GET", "user", mine, params={"username": self._login, "@fields": "username"})
            if not found:
                raise TrackerError(f"{self._address}: it does not show who logs in", f"check {LOGIN}")
            self._me = found[0]
        return self._me

    def _need(self, item: str) -> None:
        """Raise TrackerError when there is no such issue, before a message is made for it."""
        self._ask("GET", f"issue/{item}", str, params={"@fields": "title"})

    def _link(self, item: str, field: str, number: str) -> None:
        etag = self._raw("GET", f"issue/{item}").headers.get("ETag", "")
        self._ask("PATCH", f"issue/{item}", str, json={"@op": "add", field: [number]}, headers={"If-Match": etag})

    def _since(self, what: str, since: float, **wanted: str) -> list[str]:
        """Return the numbers of our own things that are new since then, the newest first."""
        moment = dt.datetime.fromtimestamp(since, dt.timezone.utc).strftime("%Y-%m-%d.%H:%M:%S")
        found = self._ids(what, **{"@sort": "-id", "@page_size": str(_LOOKED_AT), "creation": f"{moment};", **wanted})
        if len(found) >= _LOOKED_AT:
            words = f"{self._address}: too much was posted since then to tell whether this was"
            raise TrackerError(words, "look there yourself; drop the entry if it is there")
        return found

    def _ids(self, what: str, **params: str) -> list[str]:
        """Return the numbers of all things that are as asked for."""
        return self._ask("GET", what, lambda data: [str(one["id"]) for one in data["collection"]], params=params)

    def _made(self, what: str, **options: Any) -> str:
        """Make something and return its number."""
        return self._ask("POST", what, lambda data: str(int(data["id"])), **options)

    def _ask(self, method: str, what: str, take: Callable[[Any], T], **options: Any) -> T:
        """Return what is taken from the data of an answer."""
        return self._guarded(lambda: take(self._request(method, what, **options).json()["data"]))

    def _raw(self, method: str, what: str, **options: Any) -> Any:
        """Return an answer as it came."""
        return self._guarded(lambda: self._request(method, what, **options))

    def _request(self, method: str, what: str, **options: Any) -> Any:
        response = self._session.request(method, f"{self._address.site}/rest/data/{what}", timeout=TIMEOUT, **options)
        if not response.ok:
            raise _RefusedError(response)
        return response

    def _guarded(self, call: Callable[[], T]) -> T:
        return guarded(call, str(self._address), self._veil, self._answer, f"{LOGIN} and {PASSWORD}")

    def _answer(self, error: Exception) -> Answer | None:
        if not isinstance(error, _RefusedError):
            return None
        response = error.response
        try:
            said = str(response.json()["error"]["msg"])
        except (ValueError, KeyError, TypeError):
            said = str(response.reason)
        return Answer(response.status_code, said, self._heard.get("after", ""))


class _RefusedError(Exception):
    """An answer that is no success."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.response = response


def _digest(file: Attachment) -> str:
    return hashlib.sha256(file.content).hexdigest()


def _settle(address: Address) -> Address:
    need_site(address, _FORM)
    if address.place:
        raise UsageError(
            f"{address}: a tracker of Roundup has no place {address.place!r} in it", f"write it as {_FORM}"
        )
    check_number(address)
    return address


def _needs(address: Address) -> tuple[Credential, ...]:
    return (Credential((LOGIN,), "the login name"), Credential((PASSWORD,), "its password"))


TRACKER = Kind(
    name="roundup",
    title="Roundup",
    example="roundup+https://host/tracker",
    formats=("text", "markdown"),
    attaches=Attaches.TO_ITEM,
    limit=0,
    title_limit=0,
    labels=False,
    package="requests",
    settle=_settle,
    needs=_needs,
    connect=Roundup,
)

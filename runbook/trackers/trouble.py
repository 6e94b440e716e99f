"""What can go wrong on the way to a tracker, in our own words.

An error of a client library may quote headers, addresses with logins, or whole requests. So none of them passes:
`guarded` turns each into a TrackerError that was made outside of the handler and so carries neither its cause nor its
frames, with the server's words sanitised, cut and without secrets.
"""

from __future__ import annotations

import email.utils
import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from runbook.errors import RunbookError, UsageError
from runbook.text import sanitise
from runbook.trackers.tokens import Veil

T = TypeVar("T")

TIMEOUT = (10.0, 60.0)
"""Seconds until a connection stands, and between two bytes of an answer."""

_SAID_LIMIT = 300


class TrackerError(RunbookError):
    """Something was not sent, or it is not known whether it was.

    again: the same may be tried later. soon: it may be tried within this call. after: seconds that the server wants to
    be left alone, None when it did not say.
    """

    def __init__(
        self, message: str, hint: str = "", *, again: bool = False, soon: bool = False, after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.again = again
        self.soon = soon
        self.after = after


class Answer(NamedTuple):
    """A server's refusal. status: of HTTP. said: in its words. after: value of Retry-After, "" without one."""

    status: int
    said: str = ""
    after: str = ""


Reader = Callable[[Exception], "Answer | None"]
"""Returns the refusal that an error of a client library stands for, None when it is something else."""


def guarded(call: Callable[[], T], where: str, veil: Veil, read: Reader, credentials: str) -> T:
    """Return what `call` returns; raise TrackerError for whatever it raises.

    where: the tracker in words. credentials: names of the variables that log in. What the client libraries log
    meanwhile is not heard: they quote what a server sent, and with it whatever it echoes.
    """
    heard = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        return call()
    except RunbookError:
        raise
    except Exception as error:
        trouble = _trouble(error, where, veil, read, credentials)
    finally:
        logging.disable(heard)
    raise trouble


def missing(package: str) -> UsageError:
    """Return the error of a client library that is not installed."""
    return UsageError(
        f"nothing is sent: the library {package} is not installed", "pip install 'slime-runbook[trackers]'"
    )


def seconds_of(after: str) -> float | None:
    """Return the seconds that a Retry-After asks for, as a number or a date; None when it cannot be read."""
    try:
        return max(0.0, min(float(after), 86_400.0)) if after.strip().isdigit() else _until(after)
    except (ValueError, TypeError, OverflowError):
        return None


def _until(date: str) -> float | None:
    return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time()) if date.strip() else None


def _trouble(error: Exception, where: str, veil: Veil, read: Reader, credentials: str) -> TrackerError:
    for one in _chain(error):
        answer = read(one)
        if answer is not None:
            return _refused(answer, where, veil, credentials)
    return _broken(error, where, veil)


def _chain(error: BaseException | None) -> Iterator[Exception]:
    for _ in range(8):
        if not isinstance(error, Exception):
            return
        yield error
        error = error.__cause__ or error.__context__


def _refused(answer: Answer, where: str, veil: Veil, credentials: str) -> TrackerError:
    status = answer.status
    cleaned = sanitise(veil.over(answer.said), _SAID_LIMIT).strip()
    words = f"{where} answered {status}{f': {cleaned}' if cleaned else ''}"
    if status == 429 or status >= 500 or (status == 403 and answer.after):
        return TrackerError(words, "try again later", again=True, soon=True, after=seconds_of(answer.after))
    if 300 <= status < 400:
        return TrackerError(words, "the place has moved; give its new address (a token follows no redirect)")
    hints = {
        401: f"the login is not accepted: check {credentials}",
        403: f"the login may not do this: check the rights of {credentials}",
        404: f"there is no such place or ticket, or the login in {credentials} may not see it: check the address",
        410: "the place takes no tickets: check the address",
    }
    return TrackerError(words, hints.get(status, "the tracker does not take it as it is"))


def _broken(error: Exception, where: str, veil: Veil) -> TrackerError:
    """Return the error of a connection that did not come about, or broke, or of an answer that cannot be read."""
    import requests

    chain = list(_chain(error))
    names = {type(one).__name__ for one in chain}
    reasons = {type(getattr(one, "reason", None)).__name__ for one in chain} | {
        type(getattr(arg, "reason", None)).__name__ for one in chain for arg in one.args
    }
    if any(isinstance(one, requests.TooManyRedirects) for one in chain):
        hint = "give the address that the site itself shows (a token follows no redirect)"
        return TrackerError(f"{where} sends its visitors on to another address", hint)
    if "SSLError" in names | reasons or any(isinstance(one, requests.exceptions.SSLError) for one in chain):
        hint = "check the host name; for an authority of your own set REQUESTS_CA_BUNDLE"
        return TrackerError(f"{where}: its certificate cannot be trusted", hint)
    if any(isinstance(one, requests.exceptions.ProxyError) for one in chain):
        return TrackerError(f"{where}: the proxy cannot be used", "check HTTPS_PROXY and NO_PROXY", again=True)
    unreached = {"NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ConnectTimeout"}
    if unreached & (names | reasons):
        return TrackerError(f"{where}: no route to it from here", "send it from where there is one", again=True)
    if any(isinstance(one, requests.RequestException | OSError) for one in chain):
        words = f"{where}: the connection broke, or no answer came in time"
        return TrackerError(words, "try again later", again=True, soon=True)
    said = sanitise(veil.over(f"{type(error).__name__}: {error}"), _SAID_LIMIT)
    return TrackerError(
        f"{where}: its answer cannot be read: {said}", "check that the address is a tracker", again=True
    )

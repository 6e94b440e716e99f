"""Tests of what is said when something goes wrong on the way, and of what is not."""

from __future__ import annotations

import datetime as dt
import email.utils
import logging
import socket
import traceback

import pytest
import requests

from runbook.errors import UsageError
from runbook.trackers.tokens import Secret, Veil
from runbook.trackers.trouble import Answer, TrackerError, guarded, missing, seconds_of
from runbook.trackers.web import new_session

TOKEN = "planted-token-9x"


class _OddError(Exception):
    """An error of a client library. It carries what libraries carry."""


def trouble(error: Exception, answer: Answer | None = None) -> TrackerError:
    """Return what becomes of an error that a call raises."""

    def call() -> None:
        raise error

    with pytest.raises(TrackerError) as caught:
        guarded(call, "tracker", Veil([Secret(TOKEN)]), lambda _: answer, "A_TOKEN")
    return caught.value


def test_an_error_of_a_library_does_not_pass() -> None:
    """The traceback of what comes out holds neither the library's error nor its words, secrets are covered."""
    hidden = f"Authorization: Bearer {TOKEN}"
    error = trouble(_OddError(hidden, {"headers": hidden}))
    shown = "".join(traceback.format_exception(error))
    assert TOKEN not in shown
    assert (error.__cause__, error.__context__) == (None, None)
    assert "_OddError" in error.message


def test_our_own_errors_pass() -> None:
    """An error of ours goes through as it is."""
    own = UsageError("a", "b")

    def call() -> None:
        raise own

    with pytest.raises(UsageError) as caught:
        guarded(call, "tracker", Veil([]), lambda _: None, "A_TOKEN")
    assert caught.value is own


@pytest.mark.parametrize(
    ("answer", "again", "after", "hint"),
    [
        (Answer(401), False, None, "A_TOKEN"),
        (Answer(403), False, None, "rights"),
        (Answer(403, "", "5"), True, 5.0, "later"),
        (Answer(404), False, None, "address"),
        (Answer(302), False, None, "moved"),
        (Answer(413), False, None, "as it is"),
        (Answer(429, "", "17"), True, 17.0, "later"),
        (Answer(500), True, None, "later"),
        (Answer(503, "", "soon"), True, None, "later"),
    ],
)
def test_refusals_are_told_apart(answer: Answer, again: bool, after: float | None, hint: str) -> None:
    """What may be tried again is, as the server asks; what may not says what to change."""
    error = trouble(_OddError(), answer)
    assert (error.again, error.soon, error.after) == (again, again, after)
    assert hint in error.hint


def test_the_words_of_a_server_are_made_safe() -> None:
    """A server's words are cut, cleaned of control characters, and hold no secret."""
    error = trouble(_OddError(), Answer(400, f"\x1b[2J{TOKEN} " + "x" * 5000))
    assert error.message.startswith("tracker answered 400: *** xxx")
    assert len(error.message) < 400
    assert "\x1b" not in error.message


def test_a_closed_port_is_no_route() -> None:
    """Where nothing listens, and where a name is not known, there is no route: try later, but not at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}/", "http://no-such-host.invalid/"):
        session = new_session()
        session.trust_env = False
        with pytest.raises(TrackerError, match="route") as caught:
            guarded(lambda url=url, s=session: s.get(url, timeout=5), "t", Veil([]), lambda _: None, "A")  # type: ignore[misc]
        assert (caught.value.again, caught.value.soon) == (True, False)


@pytest.mark.parametrize(
    "error",
    [
        requests.ReadTimeout("slow"),
        requests.ConnectionError("aborted"),
        requests.exceptions.ChunkedEncodingError(),
        TimeoutError(),
    ],
)
def test_a_broken_connection_may_be_tried_again(error: Exception) -> None:
    """A connection that broke may have done its work: it is tried again, after a look."""
    found = trouble(error)
    assert (found.again, found.soon) == (True, True)


def test_certificates_are_no_matter_of_trying() -> None:
    """A certificate that cannot be trusted is not tried again, and the way to trust it is named."""
    found = trouble(requests.exceptions.SSLError("bad"))
    assert (found.again, "REQUESTS_CA_BUNDLE" in found.hint) == (False, True)


def test_retry_after_is_read_in_both_forms() -> None:
    """Seconds and dates are read; nonsense is none; nobody is made to wait for more than a day."""
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=100)
    assert 90 < (seconds_of(email.utils.format_datetime(soon, usegmt=True)) or 0) <= 100
    assert seconds_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert [seconds_of(words) for words in ("", "soon", "-3", "nan", "7", "9" * 30)] == [None] * 4 + [7.0, 86400.0]


def test_a_missing_library_is_told() -> None:
    """The error names the extra that brings the library."""
    assert "slime-runbook[trackers]" in missing("PyGithub").hint


def test_what_a_library_logs_is_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    """A library that logs a server's words, with the token that the server echoes, is silent; afterwards logs work."""

    def call() -> str:
        logging.error("the server said: %s", "Bearer tok_secret")  # noqa: LOG015 - as the library does it
        return "done"

    assert guarded(call, "there", Veil([]), lambda _: None, "TOKEN") == "done"
    assert "tok_secret" not in caplog.text
    logging.getLogger("after").error("heard again")
    assert "heard again" in caplog.text

"""Tests of the session that trackers share: what it follows, where it goes, what it tells nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from runbook.trackers.web import new_session
from tests.runbook.trackers.small_server import Told, small_server


def test_no_redirect_is_followed() -> None:
    """An answer that sends the visitor on is an error, also to the same host."""
    with small_server(lambda _: Told(302, None, {"Location": "/there"})) as server:
        with pytest.raises(requests.TooManyRedirects):
            new_session().get(f"{server.url}/here", timeout=10)
        assert server.requests("GET") == ["/here"]


def test_netrc_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login that `.netrc` has for the host goes along with nothing."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login x password planted\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with small_server(lambda _: Told(200, {})) as server:
        assert requests.get(server.url, timeout=10).ok
        assert new_session().get(server.url, timeout=10).ok
        plain, ours = server.asked
    assert "authorization" in plain.headers
    assert "authorization" not in ours.headers


def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request goes through the proxy that the environment names."""
    with small_server(lambda _: Told(200, {})) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert new_session().get("http://tracker.invalid/x", timeout=10).ok
        assert [one.headers["host"] for one in proxy.asked] == ["tracker.invalid"]


def test_the_wish_to_wait_is_heard() -> None:
    """The Retry-After of the last answer is kept, and forgotten when the next has none."""
    answers = iter([Told(429, {}, {"Retry-After": "7"}), Told(200, {})])
    heard: dict[str, str] = {}
    with small_server(lambda _: next(answers)) as server:
        session = new_session(heard)
        session.get(server.url, timeout=10)
        assert heard == {"after": "7"}
        session.get(server.url, timeout=10)
        assert heard == {"after": ""}

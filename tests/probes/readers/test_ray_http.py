"""Questions to a dashboard: what is no whole answer is refused with its reason, and nobody else is ever asked."""

from __future__ import annotations

import gzip
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.ray_http import Address, RefusedError, get, read_address
from tests.helpers import is_safe
from tests.probes.dashboard import Dashboard, Handler, send, serving

SECRET = "t0ken-0123456789abcdef"


def refusal(dashboard: Dashboard, path: str = "/x", seconds: float = 5.0, limit: int = 1 << 20) -> RefusedError:
    """Return why a question was refused; the reason and the remedy are in both languages and safe to draw."""
    with pytest.raises(RefusedError) as raised:
        get(read_address(dashboard.url), path, seconds=seconds, limit=limit)
    error = raised.value
    for text in (error.why, error.settle):
        assert text.en
        assert text.zh
        assert is_safe(text.en + text.zh)
    return error


@pytest.mark.parametrize(
    ("words", "url", "job"),
    [
        ("http://head:8265", "http://head:8265", ""),
        ("head:8265", "http://head:8265", ""),
        ("https://ray.example.org/", "https://ray.example.org:443", ""),
        ("http://head:8265/#/jobs/raysubmit_A1", "http://head:8265", "raysubmit_A1"),
        ("http://[fd00::1]:8265", "http://[fd00::1]:8265", ""),
        ("https://proxy/ray/#/cluster", "https://proxy:443/ray", ""),
    ],
)
def test_addresses_as_people_write_them(words: str, url: str, job: str) -> None:
    """A dashboard is named with or without a scheme, by a page of it, or behind a path."""
    address = read_address(words)
    assert (address.url, address.job) == (url, job)


@pytest.mark.parametrize(
    "words", ["ray://head:10001", "head:6379", "http://head:10001", "ftp://head", "http://u:p@head"]
)
def test_other_addresses_say_what_to_give(words: str) -> None:
    """The GCS, the client server and whatever is no dashboard are refused with the address to give, and no password."""
    with pytest.raises(RefusedError) as raised:
        read_address(words)
    assert "http://HOST:8265" in raised.value.settle.en


@given(st.text(max_size=40))
def test_no_address_breaks_the_reader(words: str) -> None:
    """Any text is an address or is refused in safe words."""
    told = ""
    try:
        told = read_address(words).netloc
    except RefusedError as error:
        told = error.why.en + error.why.zh
    assert is_safe(told)


def test_an_answer_comes_whole(dashboard: Dashboard) -> None:
    """The body is what was sent, unpacked where the server packs it though nobody asked."""
    dashboard.answers["/x"] = b'{"a": 1}'
    dashboard.answers["/y"] = lambda handler: send(handler, gzip.compress(b"[1]"), Content_Encoding="gzip")
    address = read_address(dashboard.url)
    assert get(address, "/x?q=1").body == b'{"a": 1}'
    assert get(address, "/y").body == b"[1]"
    assert dashboard.asked == ["/x?q=1", "/y"]


def test_nobody_listens(dashboard: Dashboard) -> None:
    """A port without a listener is refused with the system's word."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dashboard.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert "cannot be reached" in refusal(dashboard).why.en


@pytest.mark.parametrize(("status", "word"), [(401, "token"), (403, "token"), (404, "404"), (500, "500"), (302, "302")])
def test_a_status_is_said(dashboard: Dashboard, status: int, word: str) -> None:
    """Every status but 200 is a refusal that names it, what asks for a token with the variables to set."""
    dashboard.answers["/x"] = lambda handler: send(handler, b"no\x1b[2J", status=status)
    error = refusal(dashboard)
    assert word in error.why.en
    assert error.status == status
    assert ("RAY_AUTH_TOKEN" in error.settle.en) == (status in (401, 403))


def test_a_busy_server_is_given_time(dashboard: Dashboard) -> None:
    """429 and 503 are asked again, twice at most."""
    dashboard.answers["/x"] = lambda handler: send(handler, b"ok", status=503 if len(dashboard.asked) < 3 else 200)
    assert get(read_address(dashboard.url), "/x").body == b"ok"
    assert len(dashboard.asked) == 3
    dashboard.answers["/x"] = lambda handler: send(handler, b"slow down", status=429)
    assert "slow down" in refusal(dashboard).why.en
    assert len(dashboard.asked) == 6


def test_a_redirect_stays_with_the_dashboard(dashboard: Dashboard) -> None:
    """A redirect within the dashboard is followed, one to another host or port is not, and a circle ends."""
    dashboard.answers["/x"] = lambda handler: send(handler, b"", status=307, Location="/y?z=1")
    dashboard.answers["/y"] = b"there"
    assert get(read_address(dashboard.url), "/x").body == b"there"
    with serving() as other:
        dashboard.answers["/x"] = lambda handler: send(handler, b"", status=302, Location=f"{other.url}/y")
        assert "redirects to another place" in refusal(dashboard).why.en
        assert other.asked == []
    dashboard.answers["/x"] = lambda handler: send(handler, b"", status=302, Location="/x")
    assert "circle" in refusal(dashboard).why.en


def test_a_proxy_of_the_environment_is_not_used(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is asked directly, whatever http_proxy says."""
    with serving() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        dashboard.answers["/x"] = b"direct"
        assert get(read_address(dashboard.url), "/x").body == b"direct"
        assert proxy.asked == []


def drip(handler: Handler) -> None:
    """Send an answer of one byte a moment, without an end."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        threading.Event().wait(0.02)


def silent(handler: Handler) -> None:
    """Send nothing until the asker leaves."""
    handler.connection.recv(1)


@pytest.mark.parametrize("slow", [drip, silent])
def test_a_slow_answer_is_given_up(dashboard: Dashboard, slow: object) -> None:
    """An answer that drips, or never begins, ends at the deadline."""
    dashboard.answers["/x"] = slow
    assert "in time" in refusal(dashboard, seconds=0.5).why.en


def test_a_long_answer_is_refused_or_cut(dashboard: Dashboard) -> None:
    """A body beyond the limit is refused, packed or not; where a part is worth having it is cut at the limit."""
    dashboard.answers["/x"] = b"y" * (3 << 20)
    dashboard.answers["/z"] = lambda handler: send(handler, gzip.compress(bytes(64 << 20)), Content_Encoding="gzip")
    assert "longer than 1 MiB" in refusal(dashboard, limit=1 << 20).why.en
    assert "longer than 1 MiB" in refusal(dashboard, "/z", limit=1 << 20).why.en
    answer = get(read_address(dashboard.url), "/x", limit=1000, cut=True)
    assert (answer.body, answer.ended) == (b"y" * 1000, False)


def test_an_answer_that_breaks_off_is_no_answer(dashboard: Dashboard) -> None:
    """Fewer bytes than announced, a chunk without its end and a torn gzip stream are refused."""

    def short(handler: Handler) -> None:
        send(handler, b"[1", Content_Length="100")
        handler.close_connection = True

    def chunk(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"ff\r\n[1")
        handler.close_connection = True

    def torn(handler: Handler) -> None:
        send(handler, gzip.compress(b"[1, 2, 3]")[:-9], Content_Encoding="gzip")

    for number, way in enumerate((short, chunk, torn)):
        dashboard.answers[f"/{number}"] = way
        assert "broke off" in refusal(dashboard, f"/{number}").why.en


def test_what_speaks_no_http_is_said() -> None:
    """A server of another protocol, as the GCS is, is told apart from a dead one."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def greet() -> None:
            line, _ = listener.accept()
            with line:
                line.sendall(b"\x00\x00\x18\x04 not http\r\n\r\n")

        threading.Thread(target=greet, daemon=True).start()
        with pytest.raises(RefusedError) as raised:
            get(Address("http", "127.0.0.1", listener.getsockname()[1]), "/x", seconds=5.0)
    assert "does not speak HTTP" in raised.value.why.en


@pytest.mark.parametrize("way", ["variable", "file"])
def test_the_token_goes_into_one_header(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    """Ray's token is sent where its token mode is on, stands in no message, and goes nowhere else."""
    dashboard.answers["/x"] = lambda handler: send(handler, handler.headers["Authorization"].encode(), status=403)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    if way == "file":
        (tmp_path / "token").write_text(f"{SECRET}\n")
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    else:
        monkeypatch.setenv("RAY_AUTH_TOKEN", SECRET)
    error = refusal(dashboard)
    assert dashboard.headers[-1]["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in f"{error!r} {error.why} {error.settle}"
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    dashboard.answers["/x"] = b"open"
    get(read_address(dashboard.url), "/x")
    assert "Authorization" not in dashboard.headers[-1]


def test_one_question_at_a_time(dashboard: Dashboard) -> None:
    """Many askers at once still keep one connection open, for they take turns."""

    def slow(handler: Handler) -> None:
        threading.Event().wait(0.02)
        send(handler, b"{}")

    dashboard.answers["/x"] = slow
    askers = [threading.Thread(target=get, args=(read_address(dashboard.url), "/x")) for _ in range(6)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(dashboard.asked) == 6
    assert dashboard.most_open == 1

"""Asks a Ray dashboard by plain HTTP, so that no version of Ray has to match and none is imported.

A live cluster is a stranger that trains meanwhile: every question is a GET, one connection is open at a time, also
between processes, questions keep a distance, a busy server is given time, and each answer has a limit in seconds and in
bytes. What is no whole answer raises `RefusedError` with the reason in words; nothing here turns it into an empty one.
Invariants: no other host than the given one is reached, whatever it redirects to and whatever proxy the environment
names; the token goes into the one header of that host and into no message. Sources: Ray 2.60
dashboard/state_api_utils.py (filters, limits), dashboard/modules/job/job_head.py, _private/authentication.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from probes.readers import ray_keep
from probes.readers.ray_keep import Cluster
from runbook.text import Text, sanitise

CONNECT_SECONDS = 5.0
QUIET_SECONDS = 15.0
"""Seconds without a byte after which an answer is given up."""
ANSWER_SECONDS = 20.0
"""Seconds for one whole answer."""
ANSWER_BYTES = 48 << 20
"""Bytes of one answer: 10,000 tasks with their details take about 25 MB."""
RETRIES = (0.5, 2.0)
"""Seconds that a busy server (429, 503) is given before it is asked again."""
REDIRECTS = 2
GCS_PORT = 6379
CLIENT_PORT = 10001
_BUSY = (429, 503)
_GIVE = Text("give the dashboard's address: --ray http://HOST:8265", "请提供 dashboard 的地址：--ray http://HOST:8265")
_LATER = Text("look whether the head node lives, and ask again", "确认 head 节点是否存活，然后重新询问")
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_PATH = re.compile(r"[!-~]{0,200}")
_FIRST = re.compile(rb"\s*<(?:!doctype|html|\?xml)", re.IGNORECASE)


class RefusedError(Exception):
    """A question that got no whole answer.

    why: the reason, a clause without a stop. settle: what would help. status: of HTTP, 0 where there is none.
    """

    def __init__(self, why: Text, settle: Text = _LATER, status: int = 0) -> None:
        super().__init__(why.en)
        self.why, self.settle, self.status = why, settle, status


def _refused(en: str, zh: str, settle: Text = _LATER, status: int = 0) -> RefusedError:
    return RefusedError(Text(sanitise(en, 300), sanitise(zh, 300)), settle, status)


@dataclass(frozen=True)
class Address:
    """A dashboard.

    prefix: path below which it answers, "" or "/x". job: the job that the address names, as the dashboard's own pages
    do (…/#/jobs/ID), "" where it names none.
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""
    job: str = ""

    @property
    def netloc(self) -> str:
        """Return host and port as they stand in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the address without a job."""
        return f"{self.scheme}://{self.netloc}{self.prefix}"

    @property
    def cluster(self) -> Cluster:
        """Return what is kept of this dashboard."""
        return Cluster(self.url)


def read_address(words: str) -> Address:
    """Return the dashboard that is named: `http://head:8265`, `head:8265` or a page of it. Raises RefusedError."""
    shown = sanitise(words, 80)
    if words.startswith("ray://"):
        raise _refused(
            f"{shown} is Ray's client server, which tells no state", f"{shown} 是 Ray client 端口，不提供状态", _GIVE
        )
    try:
        parts = urlsplit(words if "://" in words else f"http://{words}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    plain = _HOST.fullmatch(host) and _PATH.fullmatch(parts.path)
    if parts.scheme not in ("http", "https") or not plain or parts.username or parts.password:
        raise _refused(f"{shown} is no address of a dashboard", f"{shown} 不是 dashboard 地址", _GIVE)
    if port is None:
        port = {"http": 80, "https": 443}[parts.scheme]
    if port in (GCS_PORT, CLIENT_PORT):
        what = "GCS" if port == GCS_PORT else "client server"
        raise _refused(
            f"port {port} is Ray's {what}, which does not speak HTTP",
            f"端口 {port} 是 Ray 的 {what}，不提供 HTTP",
            _GIVE,
        )
    job = re.search(r"(?:^|/)jobs/([\w.-]{1,200})", parts.fragment)
    return Address(parts.scheme, host, port, parts.path.rstrip("/"), job[1] if job else "")


@dataclass(frozen=True)
class Answer:
    """A whole answer. path: as it was asked. body: unpacked. ended: False where `cut` stopped it at its limit."""

    path: str
    body: bytes
    ended: bool = True


def get(
    address: Address, path: str, *, limit: int = ANSWER_BYTES, seconds: float = ANSWER_SECONDS, cut: bool = False
) -> Answer:
    """Ask for `path` (with its query) and return the whole answer; raises RefusedError.

    cut: an answer longer than `limit` bytes is returned cut there, and the connection closed, instead of refused.
    """
    until = time.monotonic() + seconds
    with ray_keep.turn(address.cluster, until):
        for pause in (*RETRIES, None):
            status, answer = _asked(address, path, limit, until, cut=cut)
            if status not in _BUSY or pause is None or time.monotonic() + pause > until:
                break
            time.sleep(pause)
    if status != 200:
        raise _status(address, path, status, answer.body)
    return answer


def _asked(address: Address, path: str, limit: int, until: float, *, cut: bool) -> tuple[int, Answer]:
    """Return status and answer, following a redirect within the same dashboard."""
    target = f"{address.prefix}{path}"
    for _ in range(REDIRECTS + 1):
        with _connected(address, until) as connection, _whole(address, until):
            connection.request("GET", target, headers=_headers())
            with connection.getresponse() as response:
                place = response.getheader("Location") if response.status in (301, 302, 303, 307, 308) else None
                if place is None:
                    body, ended = _body(response, limit, until, cut=cut)
                    return response.status, Answer(path, body, ended)
                target = _within(address, target, place)
    raise _refused(f"{address.netloc} redirects in a circle", f"{address.netloc} 循环重定向", _GIVE)


def _within(address: Address, target: str, place: str) -> str:
    """Return the path of a redirect that stays with the dashboard; raises RefusedError for any other."""
    parts = urlsplit(urljoin(f"{address.scheme}://{address.netloc}{target}", place))
    with contextlib.suppress(ValueError):
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if (parts.scheme, parts.hostname, port) == (address.scheme, address.host, address.port):
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    raise _refused(
        f"{address.netloc} redirects to another place ({place[:80]}), which is not followed",
        f"{address.netloc} 重定向到了别处（{place[:80]}），未跟随",
        Text("give the address that the cluster itself answers at", "请提供集群自身应答的地址"),
    )


@contextlib.contextmanager
def _connected(address: Address, until: float) -> Iterator[http.client.HTTPConnection]:
    """Yield a connection that closes itself when the time is over, however slowly bytes drip."""
    patience = max(min(CONNECT_SECONDS, until - time.monotonic()), 0.1)
    connection = (
        http.client.HTTPSConnection(address.host, address.port, timeout=patience, context=ssl.create_default_context())
        if address.scheme == "https"
        else http.client.HTTPConnection(address.host, address.port, timeout=patience)
    )
    try:
        connection.connect()
    except (OSError, ValueError) as error:
        connection.close()
        reason = getattr(error, "verify_message", "") or getattr(error, "strerror", "") or str(error) or "no answer"
        raise _refused(
            f"{address.netloc} cannot be reached: {reason}", f"无法连接 {address.netloc}：{reason}"
        ) from error
    line = connection.sock
    line.settimeout(min(QUIET_SECONDS, max(until - time.monotonic(), 0.1)))
    watch = threading.Timer(max(until - time.monotonic(), 0.1), _shut, (line,))
    watch.daemon = True
    watch.start()
    try:
        yield connection
    finally:
        watch.cancel()
        connection.close()


def _shut(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _whole(address: Address, until: float) -> Iterator[None]:
    """Turn what ends an answer early into a RefusedError."""
    try:
        yield
    except (TimeoutError, http.client.HTTPException, OSError, zlib.error, EOFError, ValueError) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= until:
            raise _refused(f"{address.netloc} did not answer in time", f"{address.netloc} 未及时应答") from None
        if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
            en, zh = f"{address.netloc} does not speak HTTP", f"{address.netloc} 不是 HTTP 服务"
            raise _refused(en, zh, _GIVE) from None
        what = type(error).__name__
        raise _refused(
            f"the answer of {address.netloc} broke off ({what})", f"{address.netloc} 的应答中断（{what}）"
        ) from None


def _body(response: http.client.HTTPResponse, limit: int, until: float, *, cut: bool) -> tuple[bytes, bool]:
    """Return the unpacked body and whether it came to its end."""
    packing = (response.getheader("Content-Encoding") or "identity").strip().lower()
    if packing not in ("identity", "gzip", "x-gzip", "deflate"):
        raise _refused(f"the answer is packed as {packing}", f"应答采用了 {packing} 压缩")
    unpack = None if packing == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 32)
    pieces: list[bytes] = []
    size = 0
    while True:
        if time.monotonic() >= until:
            raise TimeoutError
        piece = response.read(1 << 16)
        if not piece:
            break
        text = piece if unpack is None else unpack.decompress(piece, limit + 1 - size)
        pieces.append(text)
        size += len(text)
        if size > limit:
            if cut:
                return b"".join(pieces)[:limit], False
            raise _refused(f"the answer is longer than {limit >> 20} MiB", f"应答超过 {limit >> 20} MiB")
    if unpack is not None and not unpack.eof:
        raise EOFError
    if response.length:  # fewer bytes came than the server announced
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces), True


def _status(address: Address, path: str, status: int, body: bytes) -> RefusedError:
    """Return what an answer with another status than 200 means."""
    where = path.partition("?")[0]
    if status in (401, 403):
        return _refused(
            f"{address.netloc} wants a token for {where} ({status})",
            f"{address.netloc} 的 {where} 需要 token（{status}）",
            Text(
                "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH (or RAY_AUTH_TOKEN) as for Ray's own commands",
                "像使用 ray 命令那样设置 RAY_AUTH_MODE=token 与 RAY_AUTH_TOKEN_PATH（或 RAY_AUTH_TOKEN）",
            ),
            status,
        )
    if status == 404:
        return _refused(
            f"{address.netloc} has no {where} (404): no Ray dashboard, or a version without it",
            f"{address.netloc} 没有 {where}（404）：不是 Ray dashboard，或版本不支持",
            _GIVE,
            status,
        )
    said = "" if _FIRST.match(body) else sanitise(body[-400:].strip() or body[:400], 160)
    more, more_zh = (f": {said}", f"：{said}") if said else ("", "")
    return _refused(
        f"{address.netloc} answers {where} with {status}{more}",
        f"{address.netloc} 对 {where} 返回 {status}{more_zh}",
        status=status,
    )


def is_page(body: bytes) -> bool:
    """Return whether a body is a page for people, as a proxy or a login sends in place of an answer."""
    return _FIRST.match(body) is not None


def _headers() -> dict[str, str]:
    headers = {
        "Accept": "application/json, text/plain", "Accept-Encoding": "identity", "User-Agent": "slime-runbook",
        "Connection": "close",
    }  # fmt: skip
    token = _token()
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


def _token() -> str:
    """Return Ray's token where its token authentication is on, as Ray's own programs look for it; else ""."""
    mode, token = os.environ.get("RAY_AUTH_MODE", ""), os.environ.get("RAY_AUTH_TOKEN", "")
    path = os.environ.get("RAY_AUTH_TOKEN_PATH", "")
    if mode not in ("", "token") or not (mode or token or path):
        return ""
    if not token:
        try:
            with open(path or os.path.expanduser("~/.ray/auth_token"), "rb") as file:
                token = file.read(4096).decode("ascii", "replace")
        except OSError:
            return ""
    token = token.strip()
    return token if token.isascii() and token.isprintable() else ""

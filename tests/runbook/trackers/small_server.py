"""A small HTTP server for what cannot run here: it speaks the documented shapes of an API, and can be made to fail.

It is no mock of a client: the real client libraries talk to it over a socket. What it shows is that we call them
rightly and read their answers and errors rightly; that the services still speak like this it cannot show.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit


class Asked(NamedTuple):
    """A request. path: unquoted, without the query."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body's content."""
        return json.loads(self.body)


class Told(NamedTuple):
    """An answer."""

    status: int
    content: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed


LOST = Told(0)
"""Stands for an answer that never comes, though what was asked was done."""

App = Callable[[Asked], Told]


class Small:
    """A server. asked: every request. fail: method and end of a path to the answers that come instead, one by one."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.asked: list[Asked] = []
        self.fail: dict[tuple[str, str], list[Told]] = {}
        self.url = ""
        self.lock = threading.Lock()

    def answer(self, asked: Asked) -> Told:
        """Return what is answered."""
        with self.lock:
            self.asked.append(asked)
            for (method, end), answers in self.fail.items():
                if asked.method == method and asked.path.endswith(end) and answers:
                    instead = answers.pop(0)
                    if instead is LOST:
                        self.app(asked)
                    return instead
            return self.app(asked)

    def requests(self, method: str) -> list[str]:
        """Return the paths that were asked with a method."""
        return [one.path for one in self.asked if one.method == method]


@contextmanager
def small_server(app: App) -> Iterator[Small]:
    """Serve an API on a free loopback port."""
    small = Small(app)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            """Say nothing."""

        def _any(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            told = small.answer(Asked(self.command, unquote(parts.path), query, headers, body))
            if told is LOST:
                self.close_connection = True
                return
            content = b"" if told.content is None else json.dumps(told.content).encode()
            self.send_response(told.status)
            for name, value in {"Content-Type": "application/json", **told.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = _any  # noqa: N815 - names of http.server

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    small.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield small
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()

"""A real Roundup for the tests: installed into a folder by its own tool, served on a free loopback port.

All that is asked of it goes through a relay, which is the only address that it is known by.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from tests.runbook.trackers.relay import Relay, relay

LOGIN, PASSWORD = "admin", "planted-pw-7Q2xRoundup"
"""Of the only user. The password is what no file and no output may hold."""

_SERVER = """
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
from roundup.cgi.wsgi_handler import RequestDispatcher

class Quiet(WSGIRequestHandler):
    def log_message(self, *words):
        pass

inner = RequestDispatcher(sys.argv[1])

def outer(environment, start):
    environment["SCRIPT_NAME"] = "/tracker"
    environment["PATH_INFO"] = environment["PATH_INFO"].removeprefix("/tracker") or "/"
    return inner(environment, start)

server = make_server("127.0.0.1", 0, outer, handler_class=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Site:
    """A Roundup tracker. relay: the way to it. address: as `--to` takes it."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.url = f"http://127.0.0.1:{relay.port}/tracker"
        self.address = f"roundup+{self.url}"
        self.environment = {"ROUNDUP_LOGIN": LOGIN, "ROUNDUP_PASSWORD": PASSWORD}
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = (LOGIN, PASSWORD)
        self._session.headers.update(
            {"X-Requested-With": "rest", "Origin": self.url.removesuffix("/tracker"), "Referer": f"{self.url}/"}
        )

    def ask(self, what: str, **params: str) -> Any:
        """Return the data of something, read past the sender."""
        response = self._session.get(f"{self.url}/rest/data/{what}", params=params, timeout=30)
        response.raise_for_status()
        return response.json()["data"]

    def count(self, what: str) -> int:
        """Return how many there are of something."""
        return len(self.ask(what)["collection"])

    def counts(self) -> tuple[int, int, int]:
        """Return how many issues, messages and files there are."""
        return self.count("issue"), self.count("msg"), self.count("file")

    def issue(self, number: str) -> Any:
        """Return the attributes of an issue."""
        return self.ask(f"issue/{number}")["attributes"]

    def text(self, message: str) -> str:
        """Return the content of a message."""
        return str(self.ask(f"msg/{message}/content")["data"])

    def content(self, file: str) -> bytes:
        """Return the content of a file."""
        response = self._session.get(f"{self.url}/rest/data/file/{file}/binary_content", timeout=30)
        response.raise_for_status()
        return response.content


@contextmanager
def roundup_site(folder: Path) -> Iterator[Site]:
    """Install a tracker into a folder and serve it."""
    with relay() as way:
        site = Site(way)
        home = folder / "tracker"
        _admin(home, "install", "classic", "sqlite")
        config = home / "config.ini"
        text = config.read_text()
        own = {"web": f"{site.url}/", "domain": "localhost", "host": "localhost"}
        for name, value in {**own, "password_pbkdf2_default_rounds": "1000"}.items():  # few: every request checks it
            text = re.sub(rf"(?m)^#?{name} = .*$", f"{name} = {value}", text, count=1)
        config.write_text(text)
        _admin(home, "initialise", PASSWORD)
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, home], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment()
        )
        try:
            assert server.stdout is not None
            way.target = int(server.stdout.readline())
            yield site
        finally:
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()


def _admin(home: Path, *words: str) -> None:
    code = "from roundup.scripts.roundup_admin import run; run()"
    command = [sys.executable, "-c", code, "-i", str(home), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    assert done.returncode == 0, done.stdout + done.stderr


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}

"""A relay in front of a server that loses answers and holds requests back, as a bad line does.

It understands just enough HTTP to know where a request ends; each connection carries one request.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

TIMEOUT = 30.0


class Relay:
    """Passes requests on to another port.

    lose: first words of requests whose answers never come back, each once. hold: first words of a request that is
    never passed on; `held` is set when it has come. seen: first line of every request that was passed on.
    """

    def __init__(self) -> None:
        self.lose: list[str] = []
        self.hold = ""
        self.held = threading.Event()
        self.seen: list[str] = []
        self.port = 0
        self.target = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, args=(self._listener,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more: nobody answers on the port."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(TIMEOUT)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._guarded, args=(client,), daemon=True).start()

    def _guarded(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(TIMEOUT)
            self._one(client)

    def _one(self, client: socket.socket) -> None:
        request = read_request(client)
        if not request:
            return
        line = request.partition(b"\r\n")[0].decode("latin-1")
        if self.hold and line.startswith(self.hold):
            self.held.set()
            client.recv(1)  # until the sender is gone
            return
        with self._lock:
            self.seen.append(line)
            lost = next((words for words in self.lose if line.startswith(words)), "")
            if lost:
                self.lose.remove(lost)
        with socket.create_connection(("127.0.0.1", self.target), TIMEOUT) as server:
            server.sendall(request)
            answer = bytearray()
            while piece := server.recv(65536):
                answer += piece
        if not lost:
            client.sendall(answer)


def read_request(client: socket.socket) -> bytes:
    """Return one request with its body, asking the server to close the connection after its answer."""
    request = bytearray()
    while b"\r\n\r\n" not in request:
        piece = client.recv(65536)
        if not piece:
            return b""
        request += piece
    head, _, body = bytes(request).partition(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    length = int(fields.get(b"content-length", b"0"))
    while len(body) < length:
        body += client.recv(65536)
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join((*lines, b"Connection: close")) + b"\r\n\r\n" + body


@contextmanager
def relay() -> Iterator[Relay]:
    """Run a relay on a free port; its target is set later."""
    found = Relay()
    found.start()
    try:
        yield found
    finally:
        found.stop()

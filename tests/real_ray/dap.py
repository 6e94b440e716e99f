"""A small client of the Debug Adapter Protocol, enough to attach to debugpy, see where it stopped, and let it go on."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

Message = dict[str, Any]


class Client:
    """One connection to a debug adapter."""

    def __init__(self, host: str, port: int, patience: float = 30.0) -> None:
        self.socket = socket.create_connection((host, port), timeout=patience)
        self.stream = self.socket.makefile("rb")
        self.patience = patience
        self.sent = 0
        self.kept: list[Message] = []

    def send(self, command: str, **arguments: object) -> int:
        """Send a request and return its number."""
        self.sent += 1
        body = json.dumps({"seq": self.sent, "type": "request", "command": command, "arguments": arguments}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self.sent

    def receive(self) -> Message:
        """Return the next message of the adapter."""
        length = 0
        while line := self.stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        message: Message = json.loads(self.stream.read(length))
        return message

    def wait(self, kind: str, name: str) -> Message:
        """Return the first event, or response to a command, of this name."""
        until = time.monotonic() + self.patience
        while time.monotonic() < until:
            for message in self.kept:
                if message["type"] == kind and message.get("event" if kind == "event" else "command") == name:
                    self.kept.remove(message)
                    return message
            self.kept.append(self.receive())
        raise TimeoutError(f"no {kind} {name}")

    def close(self) -> None:
        """Close the connection."""
        self.stream.close()
        self.socket.close()


def attach(host: str, port: int) -> Client:
    """Attach as VS Code does and return the client once the debugger runs the configuration."""
    client = Client(host, port)
    client.send("initialize", clientID="test", adapterID="debugpy", pathFormat="path", linesStartAt1=True)
    assert client.wait("response", "initialize")["success"]
    client.send("attach", name="Ray", type="debugpy", request="attach", justMyCode=False)
    client.wait("event", "initialized")
    client.send("configurationDone")
    assert client.wait("response", "configurationDone")["success"]
    return client

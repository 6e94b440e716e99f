"""An address in use that stops a server, told from one that only worries somebody."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_port import port_in_log
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, word

ENGINE = "(SGLangEngine pid=9) "
LISTEN = "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98"


@pytest.mark.parametrize(
    "line",
    [
        f"{ENGINE}OSError: [Errno 98] Address already in use",
        f"{ENGINE}ERROR:    [Errno 98] error while attempting to bind on address ('::', 15000): address already in use",
        f"{ENGINE}zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:30235')",
        f"torch.distributed.DistNetworkError: {LISTEN}, name: EADDRINUSE, message: address already in use",
        "Error: failed to bind 0.0.0.0:3000: Address already in use (os error 98)",
        f"{ENGINE}ValueError: nccl_port at 15002 is not available in 30 seconds. It is used by a process.",
        "ConnectionError: Ray is trying to start at 10.0.0.1:6379, but is already running at 10.0.0.1:6379.",
    ],
)
def test_a_server_that_could_not_bind_is_reported(line: str, tmp_path: Path) -> None:
    """Each program's own error is told, with its line."""
    finding = ask_text(port_in_log, tmp_path, line)
    assert word(finding) == "problem:taken"
    assert finding.citations[0].line == 2


@pytest.mark.parametrize(
    "line",
    [
        "node:1:1 [0] misc/socket.cc:1 NCCL WARN Call to bind failed: Address already in use",
        f"{STAMP}http.py:1 - port 30000 is taken (address already in use), trying 30001",
        f"{STAMP}x.py:1 - First rollout sample: ['OSError: [Errno 98] Address already in use']",
        f"torch.distributed.DistNetworkError: {LISTEN}, name: EACCES, message: permission denied",
    ],
)
def test_what_stops_no_server_is_none(line: str, tmp_path: Path) -> None:
    """A warning, a second try, the text of the model and another reason are no address in use."""
    assert word(ask_text(port_in_log, tmp_path, line)) == "ok:free"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A healthy log answers free."""
    assert word(ask(port_in_log, DATA / f"{name}.log")) == "ok:free"

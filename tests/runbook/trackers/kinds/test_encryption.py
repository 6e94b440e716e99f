"""Certificates are checked by every tracker, and no request is made over a connection that cannot be trusted."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from runbook.trackers.trouble import TrackerError
from tests.runbook.trackers.kinds.common import TOKEN, planned, send

ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


def certificate(folder: Path) -> Path:
    """Return a file with a key and a certificate for 127.0.0.1 that nobody has signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    path = folder / "both.pem"
    pem = serialization.Encoding.PEM
    path.write_bytes(key.private_bytes(pem, form, plain) + made.public_bytes(pem))
    return path


@pytest.fixture
def heard() -> list[bytes]:
    """Return what the server was told over a connection that came about."""
    return []


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """Return the certificate."""
    return certificate(tmp_path)


@pytest.fixture
def port(pem: Path, heard: list[bytes]) -> Iterator[int]:
    """Serve behind that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    def serve() -> None:
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            with client, suppress(OSError):
                client.settimeout(10)
                with context.wrap_socket(client, server_side=True) as inside:
                    heard.append(inside.recv(65536))
                    inside.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.mark.parametrize(
    "address",
    [
        "github+https://127.0.0.1:{}:owner/repo",
        "gitlab+https://127.0.0.1:{}:group/project",
        "jira+https://127.0.0.1:{}/OPS",
        "roundup+https://127.0.0.1:{}/tracker",
    ],
)
def test_a_certificate_must_be_trusted(
    address: str, port: int, pem: Path, heard: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate of nobody's is refused before a byte is sent; with REQUESTS_CA_BUNDLE it is trusted."""
    variables = ("GITHUB_TOKEN", "GITLAB_TOKEN", "JIRA_TOKEN", "ROUNDUP_LOGIN", "ROUNDUP_PASSWORD")
    environment = dict.fromkeys(variables, TOKEN)
    with pytest.raises(TrackerError, match="certificate") as caught:
        send(planned(address.format(port)), tmp_path, environment)
    assert "REQUESTS_CA_BUNDLE" in caught.value.hint
    assert heard == []
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pem))
    with pytest.raises(TrackerError, match="cannot be read"):
        send(planned(address.format(port)), tmp_path, environment)
    assert heard

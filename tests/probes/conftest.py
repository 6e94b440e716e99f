"""A dashboard for tests of what asks a live Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.probes.dashboard import Dashboard, serving


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    """Return a dashboard that listens, with no token and no distance between questions."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "SLIME_RUNBOOK_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("probes.readers.ray_keep.PAUSE", 0.0)
    monkeypatch.setattr("probes.readers.ray_http.RETRIES", (0.01, 0.01))
    with serving() as one:
        yield one

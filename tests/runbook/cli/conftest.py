"""One small world for all tests of the command line; making it costs some hundred links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runbook.cli.world import World


@pytest.fixture(scope="session")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    World(folder := tmp_path_factory.mktemp("world"))
    return folder / "site"


@pytest.fixture
def world(_site: Path, tmp_path: Path) -> World:
    """Return the small world with empty folders."""
    (tmp_path / "site").symlink_to(_site)
    return World(tmp_path)

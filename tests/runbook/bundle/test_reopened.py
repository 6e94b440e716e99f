"""A bundle opens anywhere, with nothing else present, to the very screens of the session that it was made of."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runbook.bundle.write import write_bundle
from runbook.window import FILES
from tests.runbook.bundle.cooking import reread
from tests.runbook.bundle.elsewhere import NO_NETWORK, NOBODY, Elsewhere, works
from tests.runbook.bundle.looking import screens


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """Return a place with nothing in it; not below the folders of tests, which only their owner may enter."""
    with tempfile.TemporaryDirectory(prefix="runbook-else-") as made:
        yield Elsewhere(Path(made))


@pytest.mark.parametrize(
    ("size", "around"),
    [((80, 24), ()), ((120, 40), (*NO_NETWORK, *NOBODY))],
    ids=["elsewhere", "as another user without network"],
)
async def test_the_screens_are_the_same_where_nothing_else_is(
    session: Path, elsewhere: Elsewhere, size: tuple[int, int], around: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start, help, evidence, walk, experiment, citations and cause: text and picture equal those over the real files.

    There, the run and the session are gone, no probe and no flow is installed, and home and folders are other ones.
    """
    if around and not works(*around, sys.executable, "-c", "pass"):
        pytest.skip("neither another user nor a process without network is allowed here")
    desk = reread(session)
    expected = await screens(desk, FILES, size)
    bundle = write_bundle(desk, "handed.zip", session)
    desk.close()
    assert bundle is not None
    handed = elsewhere.take(bundle)
    place = Path.cwd()
    monkeypatch.chdir(elsewhere.folder)
    shutil.rmtree(place)
    done = elsewhere.run("tests.runbook.bundle.looking", handed, *size, around=around)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert elsewhere.left_behind == []
    assert list(found) == list(expected)
    for name, text in expected.items():
        assert found[name] == text, name
    assert "oven: OFF" in expected["cited"]
    assert "line 61" in expected["cited"]
    assert "Ann says the yeast is fresh" in expected["its notes"]
    assert "attached run: run-2" in expected["look at the experiment"]

"""The committed documents are what the code generates."""

from __future__ import annotations

import pytest

from tests.generate_docs import DOCUMENTS, ROOT


@pytest.mark.parametrize("path", [path for path, _ in DOCUMENTS])
def test_documents_are_what_the_code_generates(path: str) -> None:
    """A generated document that is out of date is renewed with `make docs`."""
    text = dict(DOCUMENTS)[path]()
    assert (ROOT / path).read_text() == text, "run: make docs"

"""Writes the documents that are generated from the code: `python -m tests.generate_docs`.

A document that restates the code by hand is wrong after the next change. Each entry of DOCUMENTS is a path below the
project and a function that returns its text; `tests/test_generated_docs.py` holds the committed files to them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from runbook.answer_json import answer_schema
from runbook.flow.schema import flow_schema, vocabulary_schema
from runbook.tui.actions import key_table

ROOT = Path(__file__).parents[1]


def as_json(value: Any) -> str:
    """Return a value as indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


DOCUMENTS: list[tuple[str, Callable[[], str]]] = [
    ("docs/flow.schema.json", lambda: as_json(flow_schema())),
    ("docs/causes.schema.json", lambda: as_json(vocabulary_schema())),
    ("docs/triage.schema.json", lambda: as_json(answer_schema())),
    ("docs/keys.md", key_table),
]


def main() -> None:
    """Write every document whose text differs."""
    for path, text in DOCUMENTS:
        target = ROOT / path
        wanted = text()
        if not target.exists() or target.read_text() != wanted:
            target.write_text(wanted)
            sys.stdout.write(f"wrote {path}\n")


if __name__ == "__main__":
    main()

"""Writes the documents that are generated from the code: `python -m tests.generate_docs`.

A document that restates the code by hand is wrong after the next change. Each entry of DOCUMENTS is a path below the
project and a function that returns its text; `tests/test_generated_docs.py` holds the committed files to them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from probes.known import shelves
from probes.known.document import document
from runbook.answer_json import answer_schema
from runbook.catalog import load_flows
from runbook.flow.schema import flow_schema, vocabulary_schema
from runbook.tui.actions import key_table

ROOT = Path(__file__).parents[1]


def as_json(value: Any) -> str:
    """Return a value as indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def readme() -> str:
    """Return the README with its table of flows: id, title and symptom of each, in display order."""
    flows = [loaded.flow for loaded in load_flows().loaded.values()]
    rows = [f"| `{flow.flow}` | {flow.title.en} | {flow.symptom.en} |" for flow in flows]
    table = "\n".join(["| flow | about | start here when you see |", "|---|---|---|", *rows])
    text = (ROOT / "README.md").read_text()
    marked = re.compile(r"(<!-- flows: .*? -->\n).*?(<!-- end of flows -->)", re.DOTALL)
    assert marked.search(text), "README.md has no place for the table of flows"
    return marked.sub(lambda match: f"{match[1]}\n{table}\n\n{match[2]}", text)


DOCUMENTS: list[tuple[str, Callable[[], str]]] = [
    ("docs/flow.schema.json", lambda: as_json(flow_schema())),
    ("docs/causes.schema.json", lambda: as_json(vocabulary_schema())),
    ("docs/triage.schema.json", lambda: as_json(answer_schema())),
    ("docs/keys.md", key_table),
    ("docs/signatures.md", lambda: document(shelves())),
    ("README.md", readme),
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

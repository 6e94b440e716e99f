"""The JSON Schema of flow files for editors, generated from the model itself."""

from __future__ import annotations

from typing import Any

import msgspec

from runbook.flow.model import Flow, Vocabulary


def flow_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a flow file."""
    return _titled(msgspec.json.schema(Flow), "A decision tree")


def vocabulary_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a causes.yaml."""
    return _titled(msgspec.json.schema(Vocabulary), "A vocabulary of causes")


def _titled(schema: dict[str, Any], title: str) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}

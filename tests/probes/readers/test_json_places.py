"""Tests of the places of JSON values: they are those that json.loads reads."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from probes.readers.json_places import Path, bad_json, line_of, places
from tests.helpers import hostile_bytes, hostile_text, is_safe

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | hostile_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hostile_text, inner, max_size=4),
    max_leaves=12,
)


def every(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Return each value of a JSON tree by its path."""
    found = {path: value}
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found |= every(inner, (*path, key))
    return found


@given(values, st.sampled_from([None, 2]))
def test_each_value_is_at_its_place(value: Any, indent: int | None) -> None:
    """The bytes of a place, read alone, are the value at that path; no place is missing or extra."""
    data = json.dumps(value, indent=indent).encode()
    found = places(data)
    assert {path: json.loads(data[place.start : place.end]) for path, place in found.items()} == every(value)


@given(hostile_bytes)
def test_places_of_garbage_do_not_escape(data: bytes) -> None:
    """What is not JSON is told with a line that exists, in safe words."""
    places(data)
    fault = bad_json("config.json", data)
    if fault is not None:
        assert is_safe(fault.what)
        assert 1 <= fault.line <= data.count(b"\n") + 1
        assert fault.citation.line in (None, fault.line)
        assert fault.citation.excerpt


def test_the_line_of_the_first_fault_is_cited() -> None:
    """A backslash that JSON does not know is found on its line, and valid JSON has no fault."""
    data = b'{\n "ignore": [\n  "re:.*mlp\\.gate"\n ]\n}'
    fault = bad_json("config.json", data)
    assert fault is not None
    assert (fault.line, fault.citation.line, "escape" in fault.what) == (3, 3, True)
    assert bad_json("config.json", b"{}") is None
    assert bad_json("config.json", b"[" * 100_000) is not None
    assert line_of(data, len(data)) == 5

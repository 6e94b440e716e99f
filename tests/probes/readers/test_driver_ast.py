"""The order of ray.init(), breakpoint() and other calls in a driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.driver_ast import read_driver
from tests.probes.scripts import write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import ray\nray.init()\nbreakpoint()\n", [("init", 2), ("breakpoint", 3)]),
        ("from ray import init as go\ngo(address='auto')\nbreakpoint()\n", [("init", 2), ("breakpoint", 3)]),
        ("def train():\n    breakpoint()\nif __name__ == '__main__':\n    train()\n", [("breakpoint", 2)]),
        ("def train():\n    breakpoint()\n", []),
        ("import ray\n@ray.remote\ndef f():\n    breakpoint()\nf.remote()\n", [("call", 5)]),
        ("class A:\n    def f(self):\n        breakpoint()\n", []),
        ("args = parse_args()\nstart(args)\nbreakpoint()\n", [("call", 2), ("breakpoint", 3)]),
        ("def f():\n    f()\nf()\n", [("call", 2)]),
        ("# breakpoint()\nx = 'breakpoint()'\n", []),
        ("if DEBUG:\n    breakpoint()\n", [("breakpoint", 2)]),
    ],
)
def test_the_main_flow_is_followed(tmp_path: Path, text: str, expected: list[tuple[str, int]]) -> None:
    """Functions count where they are called, remote bodies never, and harmless calls are passed over."""
    events = read_driver(write(tmp_path, "train.py", text))
    assert events is not None
    assert [(event.kind, event.line) for event in events] == expected
    lines = text.split("\n")
    for event in events:
        assert event.text == lines[event.line - 1]
        assert text.encode()[event.offset :].startswith(event.text.encode())


@pytest.mark.parametrize("text", ["def (", "\0", "ünï\n)"])
def test_what_is_not_python_is_none(tmp_path: Path, text: str) -> None:
    """Text that does not parse gives None."""
    assert read_driver(write(tmp_path, "train.py", text)) is None


@given(
    st.lists(
        st.sampled_from(
            ["breakpoint()\n", "def f():\n", "  f()\n", "f()\n", "ray.init()\n", "x = (\n", ")\n", "\x1b[2J"]
        ),
        max_size=20,
    )
)
def test_no_text_raises(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Odd text gives events or None."""
    events = read_driver(write(tmp_path_factory.mktemp("driver"), "t.py", "".join(lines)))
    assert events is None or all(event.line >= 1 for event in events)

"""Conditions of a driver: which are understood, and what a variable must be to fulfil them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.driver_guards import dotted, guards


def one(text: str) -> ast.expr:
    """Return an expression."""
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("args.debug_break", "flag", "debug-break"),
        ("getattr(args, 'debug_break', False)", "flag", "debug-break"),
        ("self.args.debug", "flag", "debug"),
        ("model.training", "other", ""),
        ("os.environ.get('STOP')", "env", "STOP"),
        ("os.environ['STOP'] == '1'", "env", "STOP"),
        ("'STOP' in os.environ", "env", "STOP"),
        ("int(os.getenv('STOP', '0'))", "env", "STOP"),
        ("rank == 0", "other", ""),
        ("os.environ.get(name)", "other", ""),
        ("torch.distributed.get_rank() in (0,)", "other", ""),
        ("True", "constant", ""),
    ],
)
def test_conditions_are_told_apart(text: str, kind: str, name: str) -> None:
    """Flags and variables are recognised as people write them; anything else stays open."""
    (guard,) = guards(one(text))
    assert (guard.kind, guard.name) == (kind, name)


@pytest.mark.parametrize(
    ("text", "unset", "zero", "word"),
    [
        ("os.environ.get('X')", False, True, True),
        ("os.environ.get('X', '')", False, True, True),
        ("os.environ.get('X', '1')", True, True, True),
        ("os.environ.get('X', '0') == '1'", False, False, False),
        ("os.environ.get('X', '1') == '1'", True, False, False),
        ("int(os.environ.get('X', 0))", False, False, True),
        ("'X' in os.environ", False, True, True),
        ("not os.environ.get('X')", True, False, False),
    ],
)
def test_a_variable_fulfils_what_python_would(text: str, unset: bool, zero: bool, word: bool) -> None:
    """The value "0" is true as text and false as a number; an unset variable counts as its default."""
    (guard,) = guards(one(text))
    assert (guard.holds(None), guard.holds("0"), guard.holds("7")) == (unset, zero, word)


@pytest.mark.parametrize("text", ["__name__ == '__main__'", "not ray.is_initialized()"])
def test_what_says_nothing_of_the_run_is_no_condition(text: str) -> None:
    """The main guard and the question whether Ray is up are passed over."""
    assert guards(one(text)) == ()


def test_names_are_joined() -> None:
    """A chain of names is one dotted name; a call in it is none."""
    assert dotted(one("a.b.c")) == "a.b.c"
    assert dotted(one("a().b")) == ""


@given(st.text("argsnot.()'\"=1 and or_[]X", max_size=40), st.booleans())
def test_no_expression_raises(text: str, negated: bool) -> None:
    """Whatever parses gives conditions."""
    try:
        test = one(text)
    except (SyntaxError, ValueError, MemoryError):
        return
    for guard in guards(test, negated=negated):
        assert isinstance(guard.holds("1"), bool)

"""Whoever waits for a ticket hears what became of it, whatever went wrong on the way."""

from __future__ import annotations

import queue
from collections.abc import Callable

import pytest

from runbook.errors import UsageError
from runbook.tui.asking import Hands
from runbook.tui.deeds import why
from runbook.tui.leaving import Leaving
from tests.runbook.tui.driving import a_desk


def broken(error: BaseException) -> None:
    """Raise an error."""
    raise error


@pytest.mark.parametrize(
    "error", [RecursionError("deep"), ValueError("x"), AssertionError(), MemoryError(), OSError("disk"), ImportError()]
)
def test_whatever_goes_wrong_ends_the_waiting(error: Exception) -> None:
    """Work that fails for a reason that nobody foresaw is told as any other failure, on the app's thread."""
    calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    said: list[BaseException] = []
    hands = Hands(calls.put)
    with a_desk() as desk:
        Leaving(desk, hands, calls.put, said.append).apart(lambda: broken(error), said.append)
        calls.get(timeout=60)()
    hands.finish(20)
    assert said == [error]


def test_an_error_that_nobody_foresaw_quotes_nothing() -> None:
    """Ours and the system's are told in their words; of any other the kind and the place: its text may hold a login."""
    assert why(UsageError("a\x1b[2Jb", "do c")) == "ab  do c"
    assert why(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"
    with pytest.raises(ValueError, match="secret") as raised:
        broken(ValueError("Invalid header value b'Bearer hf_secret'"))
    words = why(raised.value)
    assert words.startswith("ValueError (broken, line ")
    assert "secret" not in words
    assert why(KeyError("k")) == "KeyError"

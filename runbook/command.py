"""A command that a probe package adds to the command line, declared as a module-level constant."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Command:
    """A further word of the command line.

    name: the word. help: one line. add_arguments: declares its arguments on the parser. run: carries it out and returns
    the exit code; it may raise RunbookError.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None] = field(repr=False)
    run: Callable[[argparse.Namespace], int] = field(repr=False)

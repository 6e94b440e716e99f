"""The terminal before the UI is there: whether a person sits at one, and the first frame on it.

Imports nothing heavy: it is asked before anything else.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


def interactive() -> bool:
    """Return whether stdin and stdout are a terminal that can show the UI."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@dataclass
class Frame:
    """The first frame. handed_over: the UI draws over it now and will leave the alternate screen itself."""

    handed_over: bool = False


@contextmanager
def first_frame(*, wanted: bool) -> Iterator[Frame]:
    """Show the first frame while the block loads the UI; whatever ends the block before the UI runs takes it away."""
    frame = Frame()
    if not wanted or not interactive():
        yield frame
        return
    from runbook.tui.frame import LEAVE
    from runbook.tui.frame import first_frame as draw

    size = shutil.get_terminal_size()
    sys.stdout.write(draw(size.columns, size.lines))
    sys.stdout.flush()
    try:
        yield frame
    finally:
        if not frame.handed_over:
            sys.stdout.write(LEAVE)
            sys.stdout.flush()

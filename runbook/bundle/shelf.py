"""The excerpts of a bundle as a source of windows: what was kept of a file, with a line for each hole.

Pure and in memory. Invariants: a window holds all that was kept of its file, so there is nothing to read on; offsets
and numbers are those of the file as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from runbook.bundle.form import Excerpt, KeptLine
from runbook.finding import Citation
from runbook.window import Line, Window


class Excerpts:
    """The excerpts by the names of their files."""

    def __init__(self, excerpts: Iterable[Excerpt]) -> None:
        """Hold `excerpts`; of two of one name the first."""
        self._by_path: dict[str, Excerpt] = {}
        for excerpt in excerpts:
            self._by_path.setdefault(excerpt.path, excerpt)

    @property
    def by_path(self) -> Mapping[str, Excerpt]:
        """Return the excerpts by the names of their files."""
        return self._by_path

    def open(self, path: str, citation: Citation | None = None, *, tail: bool = False) -> Window:
        """Return what was kept of a file, standing at the citation; "absent" when nothing was."""
        excerpt = self._by_path.get(path)
        if excerpt is None or (excerpt.kind == "text" and not excerpt.lines and excerpt.size):
            return Window(path, "absent")
        if excerpt.kind == "folder":
            return Window(path, "folder", tuple(_line(line) for line in excerpt.lines))
        if excerpt.kind != "text":
            return Window(path, excerpt.kind, size=excerpt.size, why=excerpt.why)
        lines = tuple(_with_holes(excerpt))
        offset = (citation.offset or 0) if citation is not None else 0
        note = excerpt.notes.get(str(offset), "") if citation is not None else ""
        at = len(lines) - 1 if tail else _at(lines, offset, cited=citation is not None)
        return Window(path, "text", lines, excerpt.size, at, packed=False, note=note)

    def extend(self, window: Window, *, after: bool) -> Window:  # noqa: ARG002  # there is nothing on either side
        """Return the window: it holds all there is."""
        return window


def _line(kept: KeptLine) -> Line:
    return Line(kept.offset, kept.text.encode("utf-8", "replace"), kept.size, kept.number, kept.part)


def _with_holes(excerpt: Excerpt) -> Iterator[Line]:
    end = 0
    for line in excerpt.lines:
        if line.offset > end:
            yield Line(end, b"", line.offset - end, hole=True)
        yield _line(line)
        end = line.offset + line.size
    if excerpt.size > end:
        yield Line(end, b"", excerpt.size - end, hole=True)
    elif excerpt.size < 0:
        yield Line(end, b"", -1, hole=True)


def _at(lines: tuple[Line, ...], offset: int, *, cited: bool) -> int | None:
    """Return the line that holds the byte at `offset`; the first line where nothing is cited."""
    if not cited:
        return 0 if lines else None
    return next(
        (i for i, line in enumerate(lines) if line.offset <= offset < line.offset + max(line.size, 1)), None
    )  # fmt: skip

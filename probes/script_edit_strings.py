"""Edits of flags that are written inside strings: Python launchers, and bash strings and here-documents.

Candidates as in `script_edit_bash`: text is changed on the line where a flag stands, and the reader decides whether the
result is right. Braces are tried single and doubled, since only the reader knows whether a string is an f-string.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from probes.readers.launch_model import Launch, Occurrence

_VALUE = rb"(?:(?:[ \t]+|=)(?!--)(?:\\\"[^\"\n]*\\\"|'[^'\n]*'|(?:\{[^}\n]*\}|\$\{[^}\n]*\}|[^\s\"'\\){}])+))*"
_PIECE = re.compile(rb"([ \t]*)[fF]?\"[^\"\n]* \"")
"""A string that stands alone on its line, as one of many that are joined; the next flag gets a line of its own."""
_EMPTY = re.compile(rb"[ \t]*[fFrRbBuU]{0,2}(?:\"[ \t]*\"|'[ \t]*')[ \t]*\r?")


def occurrences(launch: Launch, path: str, flag: str) -> list[Occurrence]:
    """Return the occurrences of a flag that stand in this file, one a line, in order."""
    found = {one.place.offset: one for job in launch.jobs for one in job.flags.get(flag, ()) if one.place.path == path}
    return [found[offset] for offset in sorted(found)]


def written(flag: str, words: Sequence[str]) -> bytes:
    """Return a flag with its words as a shell reads them."""
    return " ".join((f"--{flag}", *(shlex.quote(word) for word in words))).encode("utf-8", "surrogateescape")


def line_end(data: bytes, offset: int) -> int:
    """Return where the line ends that holds `offset`."""
    end = data.find(b"\n", offset)
    return len(data) if end < 0 else end


def shared(one: str, other: str) -> int:
    """Return how near two flags are: ten for each leading word in common, a leading "no" left out."""
    mine, theirs = one.removeprefix("no-").split("-"), other.removeprefix("no-").split("-")
    count = 0
    for first, second in zip(mine, theirs, strict=False):
        if first != second:
            break
        count += 1
    return 10 * count


def removed(data: bytes, path: str, launch: Launch, flag: str) -> Iterator[bytes]:
    """Yield the script without a flag that stands in strings, and without the strings that it leaves empty."""
    bare = tidy = data
    for one in reversed(occurrences(launch, path, flag)):  # from the end on, so that earlier lines stay where they are
        start, end = one.place.offset, line_end(data, one.place.offset)
        line = re.sub(rb"[ \t]*" + _pattern(flag), b"", data[start:end])
        emptied = line != data[start:end] and _EMPTY.fullmatch(line)
        tidy = tidy[:start] + (tidy[end + 1 :] if emptied else line + tidy[end:])
        bare = bare[:start] + line + bare[end:]
    if bare != data:
        yield tidy
        yield bare


def replaced(data: bytes, path: str, launch: Launch, flag: str, new: bytes) -> Iterator[bytes]:
    """Yield the script with the last occurrence of a flag replaced inside its string."""
    for one in reversed(occurrences(launch, path, flag)):
        end = line_end(data, one.place.offset)
        for found in re.finditer(_pattern(flag), data[one.place.offset : end]):
            start = one.place.offset + found.start()
            for text in _braced(new):
                yield data[:start] + text + data[one.place.offset + found.end() :]


def added(data: bytes, path: str, launch: Launch, flag: str, new: bytes) -> Iterator[bytes]:
    """Yield the script with a flag put behind one of its kin inside a string, nearest kin first."""
    places = [
        (shared(flag, name), one.place.offset, name)
        for job in launch.jobs
        for name, ones in job.flags.items()
        for one in ones
        if one.place.path == path and one.sure
    ]
    for _, offset, name in sorted(places, key=lambda item: (-item[0], -item[1]))[:8]:
        end = line_end(data, offset)
        found = re.search(_pattern(name), data[offset:end])
        piece = _PIECE.fullmatch(data[offset:end])
        if piece:
            yield data[:end] + b"\n" + piece[1] + b'"' + new.replace(b'"', b'\\"') + b' "' + data[end:]
        if found:
            at = offset + found.end()
            for text in _braced(new):
                yield data[:at] + b" " + text + data[at:]


def _pattern(flag: str) -> bytes:
    return rb"(?<![\w-])--" + re.escape(flag).encode() + rb"(?![\w.-])" + _VALUE


def _braced(text: bytes) -> Iterator[bytes]:
    yield text
    if b"{" in text:
        yield text.replace(b"{", b"{{").replace(b"}", b"}}")

"""What tests of several parts share: the check that a citation is true, and strategies for hostile text."""

from __future__ import annotations

import gzip
import os
import unicodedata

import zstandard
from hypothesis import strategies as st

from runbook.evidence import Evidence, Item
from runbook.finding import Citation, Finding, Verdict
from runbook.text import EXCERPT_LIMIT, Text, sanitise

FORBIDDEN = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""The bidi controls of Unicode (UAX 9)."""

HOSTILE = (
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\",
    "\x1b[31m",
    "\x9b2J",
    "\x1bP",
    "\x00",
    "\r",
    "\x7f",
    "\u202e",
    "\u2066",
    "\ufeff",
    "\u2028",
    "\U000e0041",
    "[rank7] x",
    "[/rank0]",
    "{}",
    "%s",
    "\t",
)
"""Pieces of text that terminals or markup would act upon."""

hostile_text = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), max_size=12).map("".join)
"""Text with control sequences, bidi controls and markup in it."""

hostile_bytes = st.lists(
    st.one_of(
        st.sampled_from(HOSTILE).map(lambda piece: piece.encode("utf-8", "surrogatepass")), st.binary(max_size=8)
    ),
    max_size=12,
).map(b"".join)
"""Bytes that are not always UTF-8, with the same pieces in them."""


def is_safe(text: str) -> bool:
    """Return whether a terminal draws `text` as it stands: no control, separator, surrogate or bidi character."""
    return not any(char in FORBIDDEN or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text)


def evidence_of(*pairs: tuple[str, object], root: str = "") -> Evidence:
    """Return evidence of (slot, path) pairs."""
    return Evidence(tuple(Item(slot, str(path), Text("given", "给定")) for slot, path in pairs), root)


def check_citations(finding: Finding) -> None:
    """Assert that each citation of `finding` is true.

    Its file or folder exists; for a text line, the excerpt is the sanitised text of that very line and the offset
    is where that line begins (in the unpacked text of a packed file). A problem has at least one citation, and the
    measurement that decided it, the first with a threshold, is not judged by a limit that we chose.
    """
    assert finding.verdict is not Verdict.PROBLEM or finding.citations, f"{finding.probe}: a problem without citation"
    decided = [measured for measured in finding.measurements if measured.threshold is not None][:1]
    chosen = [measured for measured in decided if measured.source.startswith("chosen")]
    assert finding.verdict is not Verdict.PROBLEM or not chosen, f"a problem by a limit of ours: {chosen}"
    for citation in finding.citations:
        _check(citation)


def _check(citation: Citation) -> None:
    where = f"{citation.path}:{citation.line}"
    assert os.path.exists(citation.path), f"{where}: no such file"
    assert citation.excerpt, f"{where}: nothing is quoted"
    assert sanitise(citation.excerpt) == citation.excerpt, f"{where}: the excerpt is not sanitised"
    assert len(citation.excerpt) <= EXCERPT_LIMIT, f"{where}: the excerpt is too long"
    assert citation.count >= 1, f"{where}: counted {citation.count}"
    if citation.line is None:
        if citation.offset is not None and os.path.isfile(citation.path):
            assert 0 <= citation.offset <= os.path.getsize(citation.path), f"{where}: offset beyond the file"
        return
    lines = _content(citation.path).split(b"\n")
    assert 1 <= citation.line <= len(lines), f"{where}: the file has {len(lines)} lines"
    raw = lines[citation.line - 1]
    begins = sum(len(line) + 1 for line in lines[: citation.line - 1])
    assert citation.offset in (None, begins), f"{where}: the line begins at {begins}, not {citation.offset}"
    expected, quoted = sanitise(raw, EXCERPT_LIMIT), citation.excerpt.strip()
    if quoted != expected.strip():
        assert expected.endswith("…"), f"{where}: {quoted!r} is not the line {expected!r}"
        assert quoted.strip("…").strip() in sanitise(raw), f"{where}: {quoted!r} is not in the line"


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        raw = file.read()
    if raw[:2] == b"\x1f\x8b":
        return gzip.decompress(raw)
    if raw[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    return raw

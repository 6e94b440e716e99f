"""Text that is safe to draw.

Logs, prompts and file names are hostile input: escape sequences would move the cursor, bidi controls
would reorder a line, a bracket would be read as markup. Readers keep raw bytes as evidence; everything
that is drawn or exported passes through `sanitise` first. Nothing here interprets markup.
"""

from __future__ import annotations

import re

import msgspec

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"  # two-character sequences and a lone ESC
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 character
)
# C0 (but not tab), DEL, C1, zero-width and bidi controls, line/paragraph separators, BOM, tags, surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)

CUT = "…"
"""What stands at the end of a text that was cut."""

EXCERPT_LIMIT = 400
"""Characters of one excerpt: five lines of an 80-column terminal."""


class Text(msgspec.Struct, frozen=True):
    """Words for people, in English and Chinese."""

    en: str
    zh: str

    def say(self, language: str) -> str:
        """Return the words in `language` ("en" or "zh"); English is the fallback."""
        return (self.zh or self.en) if language == "zh" else self.en


def counted(number: int, noun: str, several: str = "") -> str:
    """Return "1 process" or "3 processes"; several: the noun's plural, where an s does not make it."""
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def sanitise(raw: str | bytes, limit: int | None = None) -> str:
    """Return `raw` as one line without control, escape or bidi characters.

    Bytes are decoded as UTF-8 with U+FFFD for what is not. A tab becomes four blanks. With `limit`
    (characters), a longer text ends in an ellipsis; the work done is bounded by the limit.
    """
    cut = limit is not None and len(raw) > limit * 8 + 64
    if limit is not None and cut:
        raw = raw[: limit * 8 + 64]
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if not text.isascii() or not text.isprintable():
        text = _UNSAFE.sub("", _ESCAPES.sub("", text.replace("\t", "    ")))
    if limit is not None and (cut or len(text) > limit):
        return text[: max(limit - 1, 0)] + CUT
    return text


def visible(raw: str) -> str:
    """Return `raw` with its lines kept and every other character that must not be drawn written as its escape.

    For text that is read piece by piece, where a hidden character is what one looks for. A tab becomes four blanks.
    """
    if raw.isascii() and raw.isprintable():
        return raw
    return _UNSAFE.sub(lambda found: _escape(found[0]), raw.replace("\t", "    "))


def _escape(char: str) -> str:
    return char if char == "\n" else char.encode("unicode_escape").decode()

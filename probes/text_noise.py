"""Finds characters without order: undecodable ones, symbols that close nothing, marks after no word, noise.

What a broken sampler or cache writes below the level of words. Each test gets one piece of a response and returns the
reason in both languages, or None. Invariant: every expression takes time linear in the length of its text.
"""

from __future__ import annotations

import base64
import binascii
import math
import re

from probes.thresholds import text as limit
from runbook.text import Text

_BROKEN = re.compile("[\ufffdĠĊ\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
_SYMBOL = re.compile(r"[^\w\s]|_")
_SYMBOL_ASCII = re.compile(r"[\x00-\x08\x0e-\x1b!-/:-@\[-`{-~\x7f]")
"""The same of text in ASCII, which most is: it takes half as long."""
_MAY_BE_LOOSE = re.compile(r"\s[,.]")
_LOOSE = re.compile(r"(?<!\S)(?!\.\.\.,?\s)[,.]+(?=\s)")
_LETTERS = re.compile(r"[^\W\d_]+")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_MAGIC = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"PK\x03\x04", b"\x1f\x8b", b"%PDF", b"\x7fELF", b"BM", b"RIFF", b"OggS",
    b"ID3", b"BZh", b"7z\xbc\xaf", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\x00\x00\x00", b"wOF", b"Salted__", b"\x30\x82",
    b"\x30\x81",
)  # fmt: skip


def broken(text: str) -> Text | None:
    """Find replacement and control characters, and Ġ and Ċ, which tokenizers write for blank and line end."""
    found = len(_BROKEN.findall(text))
    if found < max(limit.BROKEN_COUNT.value, limit.BROKEN_SHARE.value * len(text)):
        return None
    share = f"{found / len(text):.0%}"
    return Text(f"{share} undecodable or control characters", f"{share} 为无法解码或控制字符")


def symbols(text: str) -> Text | None:
    """Symbols and brackets that close nothing; code, formulas and expressions balance most of theirs."""
    found = (_SYMBOL_ASCII if text.isascii() else _SYMBOL).findall(text)
    if len(found) < limit.SYMBOLS_SHARE.value * limit.SYMBOLS_COUNT.value:
        return None
    dense = sum(map(len, text.split()))
    if dense < limit.SYMBOLS_COUNT.value or len(found) < limit.SYMBOLS_SHARE.value * dense:
        return None
    stack: list[str] = []
    brackets = matched = 0
    for character in found:
        if character in "([{":
            brackets += 1
            stack.append(character)
        elif character in _PAIRS:
            brackets += 1
            if stack and stack[-1] == _PAIRS[character]:
                stack.pop()
                matched += 2
    loose = brackets >= limit.BRACKETS_COUNT.value and matched < limit.BRACKETS_MATCHED.value * brackets
    if loose and len(set(found)) >= limit.SYMBOLS_KINDS.value:
        return Text("symbols and brackets in no order", "符号与括号杂乱无序")
    return None


def loose_marks(text: str, function_words: frozenset[str]) -> Text | None:
    """Find commas and full stops between blanks, with hardly a word of content: what a broken model falls back on.

    Code that begins its lines with commas has names between them; a board or a grid has no function words.
    """
    if not text.startswith((",", ".")) and _MAY_BE_LOOSE.search(text) is None:
        return None
    loose = sum(map(len, _LOOSE.findall(text)))
    if loose < limit.LOOSE_COUNT.value or loose < limit.LOOSE_SHARE.value * sum(map(len, text.split())):
        return None
    words = _LETTERS.findall(text.lower())
    empty = sum(word in function_words or len(word) == 1 for word in words)
    joining = any(word in function_words and len(word) > 1 for word in words)
    if len(words) >= limit.LOOSE_WORDS.value and empty >= limit.LOOSE_EMPTY.value * len(words) and joining:
        return Text(f"{loose} commas and full stops that follow no word", f"{loose} 个标点前没有词")
    return None


def noise(text: str) -> Text | None:
    """Find printable ASCII without blanks in which every character is as frequent as any other."""
    if len(text) < limit.NOISE_COUNT.value or not text.isascii() or len(text.split()) > 1 + len(text) // 200:
        return None
    distinct = len(set(text))
    expected = limit.NOISE_KINDS.value * -math.expm1(-len(text) / limit.NOISE_KINDS.value)
    most = max(map(text.count, set(text)))
    if distinct >= limit.NOISE_SHARE.value * expected and most <= limit.NOISE_MOST.value * len(text):
        return Text(f"{distinct} different characters in no order", f"{distinct} 种字符杂乱无序")
    return None


def base64_noise(text: str) -> Text | None:
    """Find a whole response of base64 characters that decodes neither to text nor to a known kind of file."""
    dense = "".join(text.strip().strip("`").split())
    if len(dense) < limit.BASE64_COUNT.value or not _BASE64.fullmatch(dense):
        return None
    words = text.split()
    kinds = (str.islower, str.isupper, str.isdigit)
    if any(len(word) < limit.BASE64_LINE.value for word in words[:-1]) or not all(
        any(map(kind, dense)) for kind in kinds
    ):
        return None
    try:
        raw = base64.b64decode(dense[: len(dense) // 4 * 4])
    except (binascii.Error, ValueError):
        raw = b""
    readable = sum(32 <= byte < 127 or byte in b"\n\r\t" for byte in raw)
    if raw.startswith(_MAGIC) or readable >= limit.BASE64_READABLE.value * len(raw) > 0 or _utf8(raw):
        return None
    if max(map(dense.count, set(dense))) > limit.BASE64_MOST.value * len(dense):
        return None
    return Text("base64 characters that decode to nothing", "base64 字符，解码后没有内容")


def _utf8(raw: bytes) -> bool:
    """Return whether bytes are text in UTF-8, but for a character cut at the end."""
    try:
        raw[: max(len(raw) - 3, 0)].decode()
    except UnicodeDecodeError as error:
        return bool(raw) and error.start >= len(raw) - 6
    return bool(raw)

"""The text of token ids, by the vocabulary in a checkpoint's tokenizer.json (or vocab.json); nothing else is needed.

Only ids are turned into text, so merges and normalisers do not matter: a byte-level vocabulary spells bytes as letters
(GPT-2's table, bytes_to_unicode in transformers), a sentencepiece-like one writes "▁" for a blank and `<0xE4>` for a
byte. Invariants: one piece for each id; a character of several tokens stands in the token that completes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

LIMIT = 128 << 20
"""Bytes of a tokenizer.json; the largest real ones have 35 MB."""

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class _Added(msgspec.Struct):
    id: int
    content: str


class _Model(msgspec.Struct):
    vocab: Any = None


class _File(msgspec.Struct):
    """The parts of tokenizer.json that ids need; merges, its largest part, are passed over."""

    model: _Model
    added_tokens: list[_Added] = []
    decoder: msgspec.Raw = msgspec.Raw(b"null")
    pre_tokenizer: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True)
class Vocabulary:
    """Spellings by id. byte_level: letters stand for bytes. special: ids whose spelling is the text itself."""

    spelling: dict[int, str]
    special: frozenset[int]
    byte_level: bool

    def raw(self, id: int) -> bytes | None:
        """Return the bytes of a token, None when the vocabulary does not have it."""
        spelled = self.spelling.get(id)
        if spelled is None:
            return None
        if id in self.special:
            return spelled.encode("utf-8", "replace")
        if self.byte_level:
            table = _bytes_of()
            return b"".join(bytes((table[c],)) if c in table else c.encode("utf-8", "replace") for c in spelled)
        byte = _BYTE.fullmatch(spelled)
        return bytes((int(byte[1], 16),)) if byte else spelled.replace("▁", " ").encode("utf-8", "replace")

    def texts(self, ids: Iterable[int]) -> list[str]:
        """Return one piece for each id; an id that the vocabulary lacks is written as <id>."""
        pieces: list[str] = []
        held = b""
        for id in ids:
            raw = self.raw(id)
            if raw is None:
                pieces.append(f"<{id}>")
                held = b""
                continue
            text, held = _whole(held + raw)
            pieces.append(text)
        if held and pieces:
            pieces[-1] += held.decode("utf-8", "replace")
        return pieces


def _whole(raw: bytes) -> tuple[str, bytes]:
    """Return the characters of `raw` that are whole, and the bytes of one that is not yet."""
    for keep in range(1, min(3, len(raw)) + 1):
        lead = raw[-keep]
        if lead >= 0xC0:
            needs = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            if needs > keep:
                return raw[:-keep].decode("utf-8", "replace"), raw[-keep:]
            break
        if lead < 0x80:
            break
    return raw.decode("utf-8", "replace"), b""


@lru_cache(maxsize=1)
def _bytes_of() -> dict[str, int]:
    """Return GPT-2's table from letter to byte: printable Latin-1 stands for itself, the others from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(b): b for b in plain} | {chr(0x100 + n): b for n, b in enumerate(others)}


def read_vocabulary(folders: Sequence[str]) -> Vocabulary | None:
    """Return the vocabulary of the first checkpoint folder that has one; None when no folder has one we can read."""
    for folder in folders:
        for name, read in (("tokenizer.json", _tokenizer), ("vocab.json", _vocab)):
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and os.path.getsize(path) <= LIMIT:
                    with open(path, "rb") as file:
                        return read(file.read())
            except (OSError, ValueError, TypeError, msgspec.MsgspecError):
                continue
    return None


def _tokenizer(raw: bytes) -> Vocabulary:
    read = msgspec.json.decode(raw, type=_File)
    vocab = read.model.vocab
    if isinstance(vocab, dict):
        spelling = {id: str(piece) for piece, id in vocab.items() if isinstance(id, int)}
    elif isinstance(vocab, list):  # Unigram: [piece, score] by id
        spelling = {id: str(pair[0]) for id, pair in enumerate(vocab) if isinstance(pair, list) and pair}
    else:
        raise TypeError("a tokenizer without a vocabulary")
    added = {token.id: token.content for token in read.added_tokens}
    byte_level = b'"ByteLevel"' in bytes(read.decoder) or b'"ByteLevel"' in bytes(read.pre_tokenizer)
    return Vocabulary(spelling | added, frozenset(added), byte_level)


def _vocab(raw: bytes) -> Vocabulary:
    """Read vocab.json of a byte-level BPE tokenizer saved without tokenizer.json."""
    vocab = msgspec.json.decode(raw, type=dict[str, int])
    return Vocabulary({id: piece for piece, id in vocab.items()}, frozenset(), byte_level=True)


def by_share(text: str, count: int) -> list[str]:
    """Return `text` in `count` pieces of nearly equal length, where no vocabulary says where tokens end."""
    return [text[len(text) * i // count : len(text) * (i + 1) // count] for i in range(count)]

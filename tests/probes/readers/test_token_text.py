"""The text of token ids by a checkpoint's vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.token_text import Vocabulary, by_share, read_vocabulary


def gpt2_letters() -> list[str]:
    """Return the letter for each byte, built as bytes_to_unicode of transformers builds it."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters, more = {}, 0
    for byte in range(256):
        letters[byte] = chr(byte) if byte in plain else chr(256 + more)
        more += byte not in plain
    return [letters[byte] for byte in range(256)]


BYTES = Vocabulary(dict(enumerate(gpt2_letters())), frozenset(), byte_level=True)
"""A token for each byte."""


@given(st.text(max_size=40).filter(lambda text: text.isascii() or "\x00" not in text))
def test_bytes_put_together_are_the_text(text: str) -> None:
    """A byte-level vocabulary gives back any text, one piece a token, characters in the token that completes them."""
    raw = text.encode("utf-8", "replace")
    pieces = BYTES.texts(raw)
    assert len(pieces) == len(raw)
    assert "".join(pieces) == raw.decode()


@given(st.binary(max_size=40))
def test_any_tokens_give_one_piece_each(raw: bytes) -> None:
    """Bytes that are no UTF-8 neither fail nor lose a token."""
    assert len(BYTES.texts(raw)) == len(raw)


def test_a_character_of_several_tokens_stands_in_the_last() -> None:
    """汉 is E6 B1 89; the two tokens before it are empty."""
    assert BYTES.texts("a汉b".encode()) == ["a", "", "", "汉", "b"]


def tokenizer(folder: Path, **parts: Any) -> Path:
    """Write a tokenizer.json."""
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    return folder


def test_a_byte_level_tokenizer(tmp_path: Path) -> None:
    """Ġ is a blank, Ċ a line end; added tokens are the text itself, also where it looks like bytes."""
    folder = tokenizer(
        tmp_path,
        model={"type": "BPE", "vocab": {"Hello": 0, "Ġworld": 1, "Ċ": 2}, "merges": ["a b"]},
        added_tokens=[{"id": 9, "content": "<|im_end|>Ġ", "special": True}],
        decoder={"type": "ByteLevel"},
    )
    vocabulary = read_vocabulary([str(tmp_path / "none"), str(folder)])
    assert vocabulary is not None
    assert vocabulary.texts([0, 1, 2, 9, 7]) == ["Hello", " world", "\n", "<|im_end|>Ġ", "<7>"]


def test_a_sentencepiece_tokenizer_with_byte_fallback(tmp_path: Path) -> None:
    """▁ is a blank, and <0xE6><0xB1><0x89> are the bytes of 汉."""
    vocab = {"▁Hi": 0, "<0xE6>": 1, "<0xB1>": 2, "<0x89>": 3, "x": 4}
    folder = tokenizer(tmp_path, model={"type": "BPE", "vocab": vocab}, decoder={"type": "Sequence", "decoders": []})
    vocabulary = read_vocabulary([str(folder)])
    assert vocabulary is not None
    assert vocabulary.texts([0, 1, 2, 3, 4]) == [" Hi", "", "", "汉", "x"]


def test_a_unigram_tokenizer_counts_its_pieces(tmp_path: Path) -> None:
    """The vocabulary is a list of piece and score; the place is the id."""
    folder = tokenizer(tmp_path, model={"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.5], ["b", -2]]})
    vocabulary = read_vocabulary([str(folder)])
    assert vocabulary is not None
    assert vocabulary.texts([1, 2]) == [" a", "b"]


def test_vocab_json_alone_is_byte_level(tmp_path: Path) -> None:
    """Older checkpoints have vocab.json and merges.txt only."""
    (tmp_path / "vocab.json").write_text('{"Ġa": 5}')
    vocabulary = read_vocabulary([str(tmp_path)])
    assert vocabulary is not None
    assert vocabulary.texts([5]) == [" a"]


@pytest.mark.parametrize("raw", ["", "{", "[]", '{"model": {}}', '{"model": {"vocab": 3}}', "\x00", '{"model": 1}'])
def test_a_broken_tokenizer_is_none(raw: str, tmp_path: Path) -> None:
    """A file that is damaged or holds something else gives no vocabulary, and no error."""
    (tmp_path / "tokenizer.json").write_text(raw)
    assert read_vocabulary([str(tmp_path)]) is None


@given(st.text(max_size=60), st.integers(1, 30))
def test_shares_put_together_are_the_text(text: str, count: int) -> None:
    """Text cut in equal shares loses nothing, and no share is longer than another by more than a character."""
    pieces = by_share(text, count)
    assert len(pieces) == count
    assert "".join(pieces) == text
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1

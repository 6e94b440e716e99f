"""Encodes and decodes with a checkpoint's tokenizer.json, by the `tokenizers` library.

Text and ids go through without the post-processor, as slime encodes prompts (`add_special_tokens=False`) and as a
template already holds its own special tokens. Invariants: a file that the library refuses, or panics on, raises
VocabularyError; an id without an entry is never passed on, so decoding never drops one silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probes.readers.tokenizer_files import VOCABULARY_LIMIT, TokenizerFiles, read_file


class VocabularyError(Exception):
    """The vocabulary cannot be used: absent, of a kind that is not read, broken, or the library is missing."""


class Vocabulary:
    """One tokenizer. added: id to text of the tokens that are never split. size: entries, added ones included."""

    def __init__(self, tokenizer: Any, added: dict[int, str]) -> None:
        self._tokenizer = tokenizer
        self.added = added
        self.size: int = max(tokenizer.get_vocab_size(with_added_tokens=True), max(added, default=-1) + 1)
        self._ids = {text: number for number, text in added.items()}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; markers of the template become their single ids."""
        ids: list[int] = self._guarded(lambda: self._tokenizer.encode(text, add_special_tokens=False).ids)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens included. Raises VocabularyError for an id beyond the vocabulary."""
        if any(not 0 <= number < self.size for number in ids):
            raise VocabularyError("an id beyond the vocabulary")
        text: str = self._guarded(lambda: self._tokenizer.decode(list(ids), skip_special_tokens=False))
        return text

    def id_of(self, text: str) -> int | None:
        """Return the id of a token by its text; None when it is not one token."""
        known = self._ids.get(text)
        number: int | None = known if known is not None else self._tokenizer.token_to_id(text)
        return number

    @staticmethod
    def _guarded(call: Any) -> Any:
        try:
            return call()
        except Exception as error:
            raise VocabularyError(f"the tokenizer fails ({type(error).__name__})") from error
        except BaseException as error:
            raise _panic(error) from error


def load_vocabulary(files: TokenizerFiles) -> Vocabulary:
    """Load tokenizer.json, with the added tokens of tokenizer_config.json. Raises VocabularyError."""
    if not files.vocabulary:
        raise VocabularyError(files.without)
    try:
        from tokenizers import AddedToken, Tokenizer
    except ImportError as error:
        raise VocabularyError("the Python package tokenizers is not installed") from error
    try:
        data = read_file(files.vocabulary, VOCABULARY_LIMIT)
        tokenizer = Tokenizer.from_buffer(data)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        missing = [text for text in files.added.values() if tokenizer.token_to_id(text) is None]
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in missing])
        added = {number: token.content for number, token in tokenizer.get_added_tokens_decoder().items()}
    except OSError as error:
        raise VocabularyError(f"tokenizer.json {error}") from error
    except Exception as error:
        raise VocabularyError(f"tokenizer.json is refused: {str(error)[:120]}") from error
    except BaseException as error:
        raise _panic(error) from error
    return Vocabulary(tokenizer, added)


def _panic(error: BaseException) -> BaseException:
    """Return what to raise for something that is no Exception: pyo3 lets a panic of the library appear as one."""
    return VocabularyError("the tokenizer library panics on it") if type(error).__name__ == "PanicException" else error

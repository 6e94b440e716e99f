"""Characters without order are noise; code, formulas, boards and encoded files are not."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import text_noise
from probes.text_words import FUNCTION_WORDS

RANDOM = random.Random(3)
NOISE = RANDOM.randbytes(600)


def test_base64_that_decodes_to_nothing_is_noise() -> None:
    """Random bytes in base64 are noise; a text, a picture or a Chinese sentence in base64 is an answer."""
    assert text_noise.base64_noise(base64.b64encode(NOISE).decode()) is not None
    sentence = "The treasure lies under the third palm on the left, counted from the well in the market place. " * 3
    for meant in (sentence.encode(), b"\x89PNG\r\n\x1a\n" + NOISE, ("宝藏就埋在左边第三棵棕榈树下面。" * 6).encode()):
        assert text_noise.base64_noise(base64.b64encode(meant).decode()) is None


@pytest.mark.parametrize(
    "text",
    ["ACGT" * 60, "0123456789abcdef" * 20, "Antidisestablishmentarianism", "see " + base64.b64encode(NOISE).decode()],
    ids=["DNA", "hex", "a long word", "a sentence"],
)
def test_what_is_not_base64_noise(text: str) -> None:
    """DNA, hex, one long word and a sentence about a key are not judged by decoding."""
    assert text_noise.base64_noise(text) is None


def test_printable_noise_has_every_character_alike() -> None:
    """Random printable characters are noise; minified code and a regular expression are not."""
    noise = "".join(chr(RANDOM.randrange(33, 127)) for _ in range(400))
    assert text_noise.noise(noise) is not None
    code = "const d=(f,w=200)=>{let t;return(...a)=>{clearTimeout(t);t=setTimeout(()=>f.apply(this,a),w)}};export{d};"
    assert text_noise.noise(code * 2) is None
    assert text_noise.noise(base64.b64encode(NOISE).decode()) is None


def test_marks_of_a_tokenizer_that_were_not_decoded() -> None:
    """Ġ before every word is a token string printed as it is; Maltese and a sentence about Ġthe are text."""
    assert text_noise.broken("TheĠsumĠofĠtheĠtwoĠnumbersĠisĠtwelveĊSoĠtheĠanswerĠisĠtwelve") is not None
    assert text_noise.broken("Il-Ġimgħa filgħodu Ġorġ mar il-Belt Valletta u xtara l-ħobż mingħand tal-ħanut.") is None
    assert (
        text_noise.broken("GPT-2 writes the token for a blank and a word as Ġthe, and that of a line end as Ċ.") is None
    )


def test_a_chess_board_of_dots_is_not_loose_marks() -> None:
    """Full stops between blanks need function words around them to be a broken sentence."""
    board = "r n b q k b n r\n" + ". . . . . . . .\n" * 4 + "R N B Q K B N R"
    assert text_noise.loose_marks(board, FUNCTION_WORDS) is None
    assert text_noise.loose_marks(", and the , , of , . to , the , , . and , , is", FUNCTION_WORDS) is not None


@given(text=st.text(max_size=300))
def test_any_text_is_looked_at_without_an_error(text: str) -> None:
    """Every test gives a reason in both languages or None."""
    tests = (text_noise.broken, text_noise.symbols, text_noise.noise, text_noise.base64_noise)
    for reason in (*(test(text) for test in tests if text), text_noise.loose_marks(text, FUNCTION_WORDS)):
        assert reason is None or (reason.en and reason.zh)


@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_the_quick_way_through_ascii_finds_the_same_symbols(text: str) -> None:
    """The expression for text in ASCII gives what the one for all characters gives."""
    assert text_noise._SYMBOL_ASCII.findall(text) == text_noise._SYMBOL.findall(text)


@given(st.text(st.sampled_from(",.a \n\t\u3000-"), max_size=30))
def test_no_loose_mark_is_missed_by_the_first_look(text: str) -> None:
    """Where commas or full stops stand alone, the first look finds a place that may be one."""
    if text_noise._LOOSE.search(text):
        assert text.startswith((",", ".")) or text_noise._MAY_BE_LOOSE.search(text)

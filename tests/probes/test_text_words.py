"""Words in no order, stutters and salad are told from sentences, lists and programs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import text_words
from probes.text_words import neighbours, order, pieces, salad, sentences, stutter, vocabulary

SENTENCES = (
    "We take the sum of the numbers and divide it by how many there are in the list. It is the same for every case "
    "that we have seen, so the mean of the rest will be the one which we got at the start of this. "
) * 2


def test_words_shuffled_are_no_english() -> None:
    """The same words are English in one order and none in another."""
    words = SENTENCES.lower().replace(".", "").replace(",", "").split()
    assert order(neighbours(SENTENCES)) is None
    random.Random(1).shuffle(words)
    reason = order(neighbours(" ".join(words)))
    assert reason is not None
    assert "no English word order" in reason.en


@pytest.mark.parametrize(
    "text",
    [
        "The `for` loop and the if branch: the if is taken, the if is not taken, and the if is left out of it",
        "a he a be a he to be a be to he a he a be",
        "the\nof\nand\nto\na\nin\nis\nit\nyou\nthat",
        "it was the the that I had had in mind, and so on and on",
    ],
)
def test_terms_other_languages_and_lists_are_left_alone(text: str) -> None:
    """One pair again and again is a term, words of other languages look like ours, and a list is no sentence."""
    assert order(neighbours(text)) is None


def test_a_vocabulary_is_told_from_names_and_programs() -> None:
    """Many words, none twice, some glued: salad. The same without glue is a list; glued without blanks, a program."""
    words = [f"{chr(97 + n % 26)}{chr(97 + n * 7 % 26)}lo{chr(97 + n * 3 % 26)}{n // 26 * 'x'}" for n in range(60)]
    glued = [word + "Tak" + word if n % 10 == 0 else word for n, word in enumerate(words)]
    assert vocabulary(" ".join(glued)) is not None
    assert vocabulary(" ".join(words)) is None
    assert vocabulary("();".join(glued)) is None
    assert vocabulary(", ".join(glued)) is None


def test_prefixes_of_names_are_not_glued_words() -> None:
    """Xhosa and Zulu put a prefix before a capital; tokens that are glued have longer pieces, of any kind."""
    names = [
        f"{'kuyelama'[n % 4 : n % 4 + 3]}{chr(65 + n % 26)}a{chr(97 + n * 7 % 26)}i{chr(97 + n * 3 % 26)}e"
        for n in range(60)
    ]
    plain = [f"{chr(97 + n % 26)}u{chr(97 + n * 5 % 26)}ela{n // 26 * 'n'}" for n in range(60)]
    mixed = [names[n] if n % 10 == 0 else plain[n] for n in range(60)]
    assert vocabulary(" ".join(mixed)) is None
    assert vocabulary(" ".join(f"scatter{word}" if word in names else word for word in mixed)) is not None


def test_a_stutter_and_bare_function_words() -> None:
    """Few words, each often after itself, or nothing but function words; a list of phrases is neither."""
    assert stutter("", []) is None
    text = "even even or or of of even or even even of even or or even of " * 3
    assert stutter(text, sentences(text)) is not None
    text = "what we have had\n\nwhat they will do\n\nwhat you can be\n\nwhat he has been\n\n" * 4
    assert stutter(text, sentences(text)) is None


def test_pieces_inside_a_word_that_follow_themselves() -> None:
    """Half a word again and again is a stutter."""
    assert pieces(
        "It is <filename><filename><filename><filename><filename><filename><filename><filename><filename>" * 2
    )
    assert pieces(SENTENCES) is None


@given(text=st.text(max_size=300))
def test_any_text_is_looked_at_without_an_error(text: str) -> None:
    """Every test gives a reason in both languages or None."""
    words = sentences(text)
    for reason in (order(neighbours(text)), vocabulary(text), stutter(text, words), pieces(text)):
        assert reason is None or (reason.en and reason.zh)
    salad(text, words, lambda _: ("", 0.0))


@given(st.text(st.characters(max_codepoint=127), max_size=200))
def test_the_quick_way_through_ascii_finds_the_same(text: str) -> None:
    """The expressions for text in ASCII give what those for all alphabets give, and so does the count of digits."""
    assert text_words._CASED_ASCII.findall(text) == text_words._CASED.findall(text)
    long = [word.lower() for word in text_words._LETTERS.findall(text) if len(word) > 1]
    assert text_words._LONG_ASCII.findall(text.lower()) == long
    assert text_words._digits(text) == sum(character.isdigit() for character in text)

"""Scripts that change where no language changes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes import text_scripts
from probes.text_scripts import mixed_scripts, rare_characters, stray_scripts, strays


def unsure(_: str) -> tuple[str, float]:
    """Return a language that nothing is sure of."""
    return "", 0.0


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("we add собака then 图 and นาฬิกา to it", {"cyrillic", "han", "thai"}),
        ("thank you: спасибо, 谢谢, ขอบคุณ and merci", set()),
        ('the words "собака" (图) and **นาฬิกา** mean', set()),
        ("用 Python 写一个 function 来处理", {"han"}),
        ("plain words only", set()),
    ],
)
def test_only_bare_words_between_latin_words_are_strays(text: str, kinds: set[str]) -> None:
    """Quoted, listed and bracketed words are meant; Chinese between Latin words is one script, which is ordinary."""
    assert set(strays(text)) == kinds


def test_strays_of_three_scripts_are_a_reason() -> None:
    """One or two foreign scripts a text may be about, three at once without a mark no text is."""
    assert stray_scripts(["han", "han", "cyrillic"]) is None
    reason = stray_scripts(["han", "thai", "cyrillic"])
    assert reason is not None
    assert "3 other scripts" in reason.en


def test_scripts_joined_inside_words_are_mixed() -> None:
    """Three kinds of joints are salad; Chinese with Latin names and Korean particles are languages."""
    assert mixed_scripts("ab图 cдe fกx ghя图 z", unsure) is not None
    assert mixed_scripts("用Python和async写，用GPU跑，再用Docker部署", unsure) is None
    assert mixed_scripts("Python의 async는 GPU에서", unsure) is None


def test_characters_that_nobody_uses_are_rare() -> None:
    """Characters from the whole of the block are rare ones; a sentence has few."""
    assert rare_characters("".join(chr(0x4E00 + 97 * n % 20000) for n in range(60))) is not None
    assert rare_characters("我们先计算总数，再除以人数，就得到平均值。这个方法很简单，也很常用。") is None


@given(text=st.text(max_size=300))
def test_any_text_is_looked_at_without_an_error(text: str) -> None:
    """Every script of Unicode is accepted."""
    stray_scripts(strays(text))
    mixed_scripts(text, unsure)
    rare_characters(text)


@given(st.characters())
def test_what_is_no_other_script_mixes_with_nothing(character: str) -> None:
    """The first look passes over no character that either test would count as another script than Latin."""
    other = text_scripts._OTHER.match(character) is not None
    script = text_scripts._SCRIPT.match(character)
    assert other or script is None or script.lastgroup == "latin"
    assert other or not any(first <= character <= last for first, last, _ in text_scripts._RANGES)

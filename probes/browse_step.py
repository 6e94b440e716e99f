"""One rollout of debug dumps for browsing: which files it has, and its samples as rows and as records.

A row is what a table shows of a sample, a record is what its page shows. Invariants: what ranks wrote is put together,
joined with the rollout dump and judged by the functions of the probes, so that both say the same; a sample that only
one side holds is kept; nothing is judged here but single responses.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from probes.dump_pairs import Aligned, align
from probes.dump_ranks import Whole, whole
from probes.dump_twins import partners
from probes.dumps import SLOTS, index_of, numbers
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump, DumpFile, list_dumps, read_dump
from probes.samples import Generated, generated_of, judge_sample
from probes.thresholds import browse as limits
from runbook.evidence import Evidence
from runbook.text import Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXCERPT = 120
"""Characters of a prompt and of a response in a row."""

FACT = 300
"""Characters of a field that is shown as it is."""


@dataclass(frozen=True)
class Step:
    """One rollout. id: its number, "eval-N" for an evaluation, "?" and a file name where no number is known."""

    id: str
    number: int | None
    files: tuple[DumpFile, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the files, in order."""
        return tuple(file.path for file in self.files)

    @property
    def kinds(self) -> str:
        """Return which kinds of dumps there are, as slime calls them."""
        have = {file.kind for file in self.files}
        return "+".join(kind for kind in ("rollout", "train", "other") if kind in have)


def steps_of(evidence: Evidence) -> tuple[Step, ...]:
    """Return the rollouts of all dumps, in order, evaluations last."""
    grouped: dict[str, list[DumpFile]] = {}
    for file in list_dumps(path for slot in SLOTS for path in evidence.paths(slot)):
        name = re.sub(r".*/", "", file.path)
        id = (
            f"?{name}"
            if file.rollout_id is None
            else f"eval-{file.rollout_id}"
            if file.evaluation
            else str(file.rollout_id)
        )
        grouped.setdefault(id, []).append(file)
    return tuple(Step(id, files[0].rollout_id if id.isdigit() else None, tuple(files)) for id, files in grouped.items())


class Row(msgspec.Struct, frozen=True):
    """What a table shows of a sample.

    id: its index, with a further number where an index occurs twice. gap, largest: mean and largest |trainer - engine|
    in nat; compared: over how many tokens. first: response token at which they first disagree. disagree: how many do.
    odd: what is suspicious about the text, None where nothing is; kind: of `text_quality.judge`, "" while it was not
    judged.
    """

    id: str
    index: int
    group: int | None = None
    status: str = ""
    reward: float | None = None
    length: int = 0
    gap: float | None = None
    largest: float | None = None
    first: int | None = None
    disagree: int | None = None
    compared: int = 0
    log_prob: float | None = None
    kind: str = ""
    odd: Text | None = None
    prompt: str = ""
    response: str = ""


class Record(msgspec.Struct, frozen=True):
    """What the page of a sample shows.

    Arrays are bytes: `tokens` int32 of the response, the others float32, "" where unknown; `mask` one byte a token.
    told: what the response is judged by.
    """

    row: Row
    prompt: str
    response: str | None
    length: int
    tokens: bytes
    trainer: bytes
    engine: bytes
    reference: bytes
    advantages: bytes
    mask: bytes
    facts: tuple[tuple[Text, str], ...] = ()
    notes: tuple[Text, ...] = ()
    told: Generated = Generated()


@dataclass(frozen=True)
class Sample:
    """A sample of a rollout. id: as in its row. index: its own, else its place in its dump. One side may be {}."""

    id: str
    index: int
    train: dict[str, Any]
    rollout: dict[str, Any]


@dataclass(frozen=True)
class StepRead:
    """The samples of a rollout. faults: what could not be read. missing: what the ranks did not write."""

    samples: tuple[Sample, ...]
    faults: tuple[str, ...] = ()
    missing: tuple[Text, ...] = ()


def read_step(step: Step) -> StepRead:
    """Read the dumps of a rollout and join them as `dump_sides` does: the first rollout dump with the train dumps."""
    told: list[Dump] = []
    trained: list[Dump] = []
    faults: list[str] = []
    for file in step.files:
        try:
            dump = read_dump(file)
        except DumpError as error:
            faults.append(str(error))
        else:
            (told if dump.kind == "rollout" else trained).append(dump)
    rollouts = [sample for dump in told for sample in dump.samples]
    put, found = _joined(trained, told[0].samples if told else [], faults)
    trains = {id(rollout): train for train, rollout in zip(put.samples, found, strict=True) if rollout}
    both = [(trains.get(id(one), {}), one) for one in rollouts]
    pairs = [(index_of(one, index_of(train, place)), train, one) for place, (train, one) in enumerate(both)]
    pairs += [
        (index_of(train, place), train, {})
        for place, (train, rollout) in enumerate(zip(put.samples, found, strict=True))
        if not rollout
    ]
    seen: Counter[int] = Counter()
    samples = []
    for index, train, rollout in pairs:
        seen[index] += 1
        samples.append(Sample(str(index) if seen[index] == 1 else f"{index}.{seen[index]}", index, train, rollout))
    return StepRead(tuple(samples), tuple(faults), put.missing)


def _joined(
    trained: list[Dump], rollout: list[dict[str, Any]], faults: list[str]
) -> tuple[Whole, list[dict[str, Any]]]:
    """Return the train samples put together, and the partner of each; where numbers cannot be read, all stand alone."""
    samples = [sample for dump in trained for sample in dump.samples]
    put = Whole(None, "", samples, [])
    if trained:
        try:
            put = whole(trained)
            return put, partners(put.samples, rollout)
        except DumpError as error:
            faults.append(str(error))
    return put, [{} for _ in put.samples]


def records(samples: Iterable[Sample]) -> Iterator[Record]:
    """Yield the record of each sample; the text of its row is not judged yet."""
    for sample in samples:
        yield _record(sample.id, sample.train, sample.rollout, sample.index)


def judged(row: Row, response: str | None, told: Generated) -> Row:
    """Return the row with its response judged, as `rollout.coherence` judges it."""
    judgement = judge_sample(response, told)
    if judgement is None:
        return msgspec.structs.replace(row, kind="none")
    odd = judgement.why if judgement.kind in ("garbled", "empty") else None
    return msgspec.structs.replace(row, kind=judgement.kind, odd=odd)


def _record(id: str, train: dict[str, Any], rollout: dict[str, Any], place: int) -> Record:
    notes: list[Text] = []
    try:
        aligned = align(train, rollout, place)
        advantages = numbers(train, "advantages")
    except DumpError as error:
        notes.append(Text(f"its numbers cannot be read: {error.what}", f"数值无法读取：{error.what}"))
        aligned, advantages = align({}, {k: v for k, v in rollout.items() if isinstance(v, int | str)}, place), None
    prompt, response = _words(prompt_text(rollout.get("prompt"))), rollout.get("response")
    response = _words(response) if isinstance(response, str) else None
    row = _row(id, train, rollout, aligned, prompt, response)
    if aligned.sliced:
        notes.append(Text("a slice of a context-parallel rank only", "仅为一个 context parallel rank 的切片"))
    if aligned.first_other is not None:
        where = aligned.first_other
        notes.append(
            Text(
                f"the two dumps hold other tokens from token {where} of the sequence on, so they are not compared",
                f"两个 dump 自序列第 {where} 个 token 起不同，故不作比较",
            )
        )
    for trouble in aligned.troubles:
        what = f"{trouble.side} {trouble.field}"
        if trouble.length == trouble.wanted:
            notes.append(Text(f"{what}: other values than in the other dump", f"{what}：与另一 dump 中的值不同"))
        else:
            count = f"{trouble.length} / {trouble.wanted}"
            notes.append(Text(f"{what}: {count} values, left out", f"{what}：{count} 个值，未采用"))
    return Record(
        row,
        prompt,
        response,
        aligned.length,
        _packed(aligned.tokens, "<i4"),
        _packed(aligned.trainer, "<f4"),
        _packed(aligned.engine, "<f4"),
        _packed(aligned.reference, "<f4"),
        _packed(advantages if advantages is not None and len(advantages) == aligned.length else None, "<f4"),
        _packed(aligned.mask, "u1"),
        facts_of(train, rollout),
        tuple(notes),
        generated_of(rollout),
    )


def _row(
    id: str, train: dict[str, Any], rollout: dict[str, Any], aligned: Aligned, prompt: str, response: str | None
) -> Row:
    import numpy as np

    gaps = aligned.diff[aligned.counted]
    known = aligned.engine[aligned.mask] if aligned.engine is not None else None
    known = known[np.isfinite(known)] if known is not None else None
    group, status = rollout.get("group_index"), rollout.get("status")
    truncated = train.get("truncated")
    return Row(
        id,
        aligned.index,
        group if isinstance(group, int) and abs(group) < 2**63 else None,
        _words(status) if isinstance(status, str) else "truncated" if truncated == 1 else "",
        reward_of(train, rollout),
        aligned.length,
        float(gaps.mean()) if len(gaps) else None,
        float(gaps.max()) if len(gaps) else None,
        aligned.first_disagreement(limits.TOKEN_DISAGREES.value),
        int((gaps > limits.TOKEN_DISAGREES.value).sum()) if len(gaps) else None,
        len(gaps),
        float(known.mean()) if known is not None and len(known) else None,
        prompt=" ".join(prompt[-EXCERPT * 2 :].split())[-EXCERPT:],
        response=" ".join((response or "")[: EXCERPT * 2].split())[:EXCERPT],
    )


def reward_of(train: dict[str, Any], rollout: dict[str, Any]) -> float | None:
    """Return the reward: of the rollout dump, of a dict of rewards its only number, else of the train dump."""
    for value in (rollout.get("reward"), train.get("rewards"), train.get("raw_reward")):
        known = list(value.values()) if isinstance(value, dict) else [value]
        if len(known) == 1 and isinstance(known[0], int | float) and not isinstance(known[0], bool):
            with contextlib.suppress(OverflowError):  # an integer that no float holds is no reward
                return float(known[0])
    return None


def _words(text: str) -> str:
    """Return a text with lone surrogates, which JSON of a data set may hold and no file can keep, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def prompt_text(prompt: object) -> str:
    """Return a prompt as text: as it is, or chat messages with their roles."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        parts = [part for part in prompt if isinstance(part, dict)]
        return "\n".join(f"[{part.get('role', '?')}] {part.get('content', '')}" for part in parts)
    return ""


_ELSEWHERE = """
    prompt response tokens loss_mask loss_masks rollout_log_probs log_probs ref_log_probs advantages returns kl values
    reward rewards status index sample_index sample_indices response_length response_lengths
"""
_SHOWN_ELSEWHERE = frozenset(_ELSEWHERE.split())


def facts_of(train: dict[str, Any], rollout: dict[str, Any]) -> tuple[tuple[Text, str], ...]:
    """Return the remaining fields of a sample that say something, each cut to FACT characters."""
    facts = []
    for sample in (rollout, train):
        for name, value in sample.items():
            if name in _SHOWN_ELSEWHERE or value is None or not isinstance(value, str | int | float | list | dict):
                continue
            if isinstance(value, str | list | dict) and not value:
                continue
            if isinstance(value, list) and len(value) > 64:
                continue
            words = value if isinstance(value, str) else repr(value)
            title = _words(str(name))
            facts.append((Text(title, title), _words(words[:FACT])))
    return tuple({name.en: (name, words) for name, words in facts}.values())


def _packed(values: NDArray[Any] | None, code: str) -> bytes:
    import numpy as np

    if values is None:
        return b""
    if code == "<i4":
        values = np.clip(values, -(2**31), 2**31 - 1)
    return bytes(np.asarray(values).astype(code).tobytes())

"""The samples of debug dumps as the probes of the chat template look at them, and the tokenizer they are held against.

A custom rollout function may build its prompt from `sample.prompt` and leave that as it was (slime's retool example
does), so what the tokens say wins over the prompt's text. Invariants: a sample whose fields are not what slime writes
is left out, never guessed at; multimodal samples carry `multimodal`, as their tokens hold expanded placeholders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from probes import dumps
from probes.dumps import Read, index_of, numbers
from probes.readers.dump_errors import DumpError
from probes.readers.rollout_dump import Dump
from probes.readers.tokenizer_files import TokenizerFiles, read_tokenizer
from probes.readers.vocabulary import Vocabulary, VocabularyError, load_vocabulary
from runbook.evidence import Evidence
from runbook.probe import Progress

MAX_SAMPLES = 256
"""Samples looked at in one dump, spread evenly: a flaw of the template is in all of them."""
MAX_DUMPS = 3
MAX_TOKENS = 1 << 20
_LEFT_OUT = ("aborted", "failed", "pending")


@dataclass(frozen=True)
class View:
    """One sample.

    index: as slime numbers it. text, messages: its prompt, as a string or a conversation. prompt, answer: ids of the
    tokens before the response and in it, empty when not known. mask: the loss mask of the response, None when absent;
    log_probs: the engine's, likewise. removed: slime gives it a mask of zeros. switches: what the template was given.
    """

    index: int
    path: str
    text: str | None = None
    messages: list[dict[str, Any]] | None = None
    prompt: list[int] = field(default_factory=list)
    answer: list[int] = field(default_factory=list)
    response: str = ""
    status: str = ""
    mask: list[int] | None = None
    log_probs: list[float] | None = None
    multimodal: bool = False
    removed: bool = False
    tools: list[Any] | None = None
    switches: dict[str, Any] = field(default_factory=dict)

    @property
    def trains_on_data(self) -> bool:
        """Return whether the conversation ends with the assistant: its answer is data (SFT), not the engine's."""
        return self.messages is not None and self.messages[-1]["role"] == "assistant"


@dataclass(frozen=True)
class Views:
    """The samples of one dump that can be looked at."""

    path: str
    kind: str
    rollout: int | None
    samples: tuple[View, ...]


def views(evidence: Evidence, kind: str, report: Progress, read: Read) -> Iterator[Views]:
    """Yield the samples of the first dumps of a kind; faults go to `read`."""
    count = 0
    for dump in dumps.dumps_of(evidence, kind, report, read):
        seen = views_of(dump)
        if seen.samples:
            yield seen
            count += 1
        if count == MAX_DUMPS:
            return


def views_of(dump: Dump) -> Views:
    """Return at most MAX_SAMPLES of a dump; aborted, failed and pending ones are left out."""
    step = max(1, -(-len(dump.samples) // MAX_SAMPLES))
    chosen = [(place, sample) for place, sample in enumerate(dump.samples) if place % step == 0]
    found = (view_of(sample, place, dump.path) for place, sample in chosen)
    return Views(dump.path, dump.kind, dump.rollout_id, tuple(view for view in found if view is not None))


def view_of(sample: dict[str, Any], place: int, path: str) -> View | None:
    """Return one sample; None when it was not finished or is not one."""
    status = str(sample.get("status") or "")
    if status in _LEFT_OUT:
        return None
    tokens, length = _integers(sample, "tokens"), sample.get("response_length", sample.get("response_lengths"))
    fits = isinstance(length, int) and 0 <= length <= len(tokens)
    cut = len(tokens) - length if fits and isinstance(length, int) else 0
    prompt = sample.get("prompt")
    metadata = sample.get("metadata")
    tools = metadata.get("tools") if isinstance(metadata, dict) else None
    switches = sample.get("apply_chat_template_kwargs")
    response = sample.get("response")
    return View(
        index_of(sample, place),
        path,
        prompt if isinstance(prompt, str) else None,
        _conversation(prompt),
        tokens[:cut],
        tokens[cut:] if fits else [],
        response if isinstance(response, str) else "",
        status,
        _mask(sample),
        _floats(sample, "rollout_log_probs"),
        bool(sample.get("multimodal_inputs") or sample.get("multimodal_train_inputs")),
        sample.get("remove_sample") is True,
        tools if isinstance(tools, list) else None,
        switches if isinstance(switches, dict) else {},
    )


def _conversation(prompt: object) -> list[dict[str, Any]] | None:
    """Return a list of messages; None for anything else. Parts of a content that are no text make it None too."""
    if not isinstance(prompt, list) or not prompt:
        return None
    messages: list[dict[str, Any]] = []
    for message in prompt:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return None
        content = message.get("content")
        if isinstance(content, list):
            if not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content):
                return None
            content = "".join(part["text"] for part in content)
        if content is not None and not isinstance(content, str):
            return None
        messages.append({**message, "content": content or ""})
    return messages


def _integers(sample: dict[str, Any], name: str) -> list[int]:
    values = _floats(sample, name)
    if values is None or len(values) > MAX_TOKENS:
        return []
    return [int(value) for value in values] if all(value == value // 1 and value >= 0 for value in values) else []


def _floats(sample: dict[str, Any], name: str) -> list[float] | None:
    try:
        values = numbers(sample, name)
    except (DumpError, ValueError, OverflowError):
        return None
    return None if values is None or values.ndim != 1 else [float(value) for value in values]


def _mask(sample: dict[str, Any]) -> list[int] | None:
    for name in ("loss_mask", "loss_masks"):
        values = _floats(sample, name)
        if values is not None:
            return [int(value > 0) for value in values]
    return None


@dataclass(frozen=True)
class Tokenizer:
    """The tokenizer of --hf-checkpoint. vocabulary: None when it cannot be read, `why` says why."""

    files: TokenizerFiles
    vocabulary: Vocabulary | None
    why: str


def tokenizer_of(evidence: Evidence) -> Tokenizer | None:
    """Return the tokenizer of the first checkpoint that has one; None without a checkpoint that names any."""
    for folder in evidence.paths("hf_checkpoint"):
        files = read_tokenizer(folder)
        if files.templates or files.vocabulary or files.special:
            try:
                return Tokenizer(files, load_vocabulary(files), "")
            except VocabularyError as error:
                return Tokenizer(files, None, str(error))
    return None

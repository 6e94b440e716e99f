"""What the numbers of an out-of-memory message come to: the tokens of a logits tensor, pieces, and who holds the rest.

Pure arithmetic. A micro batch of n tokens makes logits of n x (padded vocabulary / TP) numbers, in float32 where
log-probs are computed (slime/backends/megatron_utils/loss.py) and in bfloat16 as the model returns them; context
parallelism gives each rank its part of n. It is by far the largest single tensor of a step, so a failed request of that
size tells n. Invariant: every figure keeps its formula, so that a person can check it by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from probes.readers.oom_message import GIB, OomMessage
from probes.thresholds.memory import (
    FITS,
    LOGITS_LEAST,
    LOGITS_MATCH,
    MICRO_BATCH,
    OTHERS_LARGE,
    PIECES,
    RESPONSE_MATCH,
    SLACK,
)

FORMATS = (("float32", 4), ("bfloat16", 2))


@dataclass(frozen=True)
class Known:
    """What is known beside the message; None where nothing tells.

    vocabulary: rows of the output layer, padded. tensor_parallel, context_parallel: ranks. limit, log_probs_limit:
    --max-tokens-per-gpu and --log-probs-max-tokens-per-gpu, tokens of a micro batch on one rank. longest: tokens of the
    longest sample of that rollout; whole: with its prompt. colocated: the engine shares the GPU. trainer: it raised.
    engine_kept: bytes that others than the trainer held before wake_up, the median of all cycles. asleep: bytes in use
    on the device when trainer and engine both had given up theirs. static: --sglang-mem-fraction-static. switching: it
    happened while the GPU changed hands.
    """

    vocabulary: int | None = None
    tensor_parallel: int | None = None
    context_parallel: int | None = None
    limit: int | None = None
    log_probs_limit: int | None = None
    longest: int | None = None
    whole: bool = False
    colocated: bool | None = None
    engine_kept: float | None = None
    trainer: bool = True
    asleep: float | None = None
    static: float | None = None
    switching: bool = False


@dataclass(frozen=True)
class Story:
    """What the numbers tell. answer: the probe's. proven: they match within a tolerance that is not ours to choose.

    off: how far from the match, in the unit of its threshold. tokens: of the micro batch, where it is about them.
    """

    answer: str
    proven: bool
    off: float | None = None
    tokens: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class Row:
    """One figure: what it is, how it comes about, its value with unit, and where from."""

    what: str
    formula: str
    value: str
    source: str


UNCLEAR = Story("unclear", proven=False)


def tokens_of(tried: float, size: int, known: Known) -> float | None:
    """Return how many tokens a logits tensor of `tried` bytes has, with numbers of `size` bytes."""
    if not known.vocabulary or not known.tensor_parallel:
        return None
    return tried / (known.vocabulary / known.tensor_parallel * size)


def story(message: OomMessage, known: Known) -> Story:
    """Return the story that the numbers tell: a proven one, else a lead.

    A micro batch that is merely half full is the weakest lead, for many tensors have such a size.
    """
    found = [*_pieces(message), *_logits(message, known), *_others(message, known), *_sum(message, known)]
    return min(found, key=lambda one: (not one.proven, one.answer == "micro-batch"), default=UNCLEAR)


def _pieces(message: OomMessage) -> Iterator[Story]:
    if message.unallocated is None or message.tried <= 0:
        return
    times = message.unallocated / message.tried
    reserved = (message.allocated or 0.0) + message.unallocated
    if times >= PIECES.value and message.unallocated >= SLACK.value * reserved:
        yield Story("fragmented", proven=True, off=times)


def _logits(message: OomMessage, known: Known) -> Iterator[Story]:
    """Yield what a logits tensor of that size would mean: one sample longer than the limit, or a full micro batch."""
    if not known.trainer or known.switching:
        return
    found = []
    for kind, size in FORMATS:
        tokens = tokens_of(message.tried, size, known)
        if tokens is not None and tokens >= LOGITS_LEAST.value:
            found += [*_sample(tokens, kind, known), *_batch(tokens, kind, known)]
    yield from sorted(found, key=lambda one: (not one.proven, one.answer != "one-sample-too-long", one.off or 0.0))


def _sample(tokens: float, kind: str, known: Known) -> Iterator[Story]:
    if not known.longest or not known.context_parallel:
        return
    part = known.longest / known.context_parallel
    limit = known.limit or known.log_probs_limit
    if limit is None or part <= limit:
        return
    off = (tokens - part) / part
    if abs(off) <= LOGITS_MATCH.value:
        yield Story("one-sample-too-long", known.whole, abs(off), round(tokens), kind)
    elif not known.whole and 0 <= off <= RESPONSE_MATCH.value:
        yield Story("one-sample-too-long", proven=False, off=off, tokens=round(tokens), kind=kind)


def _batch(tokens: float, kind: str, known: Known) -> Iterator[Story]:
    for limit in (known.limit, known.log_probs_limit):
        if not limit:
            continue
        off = abs(tokens - limit) / limit
        if off <= LOGITS_MATCH.value:
            yield Story("micro-batch", proven=True, off=off, tokens=round(tokens), kind=kind)
        elif MICRO_BATCH.value <= tokens / limit <= 1:
            yield Story("micro-batch", proven=False, off=off, tokens=round(tokens), kind=kind)


def _others(message: OomMessage, known: Known) -> Iterator[Story]:
    """Yield who else holds the GPU, when what they hold is large and would have been enough."""
    held, total = message.strangers, message.total
    if held is None or not total or held / total < OTHERS_LARGE.value:
        return
    missing = message.tried - (message.free or 0.0)
    if held < missing:
        return
    if not known.colocated:
        if known.colocated is False:
            yield Story("stranger", proven=False, off=held / total)
        return
    if not known.trainer:
        yield Story("trainer-holds-memory", proven=False, off=held / total)
    elif known.engine_kept is None or held - known.engine_kept >= missing:
        yield Story("engine-holds-memory", proven=False, off=held / total)


def _sum(message: OomMessage, known: Known) -> Iterator[Story]:
    """Yield that the engine's static share does not fit beside what stays on the device when everyone sleeps."""
    if known.switching and known.colocated and known.static and known.asleep is not None and message.total:
        need = (known.static * message.total + known.asleep) / message.total
        if need > FITS.value:
            yield Story("does-not-fit", proven=False, off=need)


def rows(message: OomMessage, known: Known) -> list[Row]:
    """Return every figure with its formula, in the order in which one reckons by hand."""
    return [*_printed(message), *_reckoned(message), *_tokens(message, known)]


def gib(value: float) -> str:
    """Return bytes in GiB with two decimals, in MiB where that is too coarse."""
    return f"{value / GIB:.2f} GiB" if value >= GIB / 10 else f"{value / (1 << 20):.2f} MiB"


def _printed(message: OomMessage) -> Iterator[Row]:
    for what, value in (
        ("tried to allocate", message.tried),
        ("capacity of the GPU", message.total),
        ("free", message.free),
        ("held by this process", message.this or None),
        ("allocated by torch", message.allocated),
        ("reserved, unallocated", message.unallocated),
        ("in private pools", message.pools),
    ):
        if value is not None:
            yield Row(what, "printed", gib(value), "torch")
    for pid, held in message.others:
        yield Row(f"held by process {pid}", "printed", gib(held), "torch")


def _reckoned(message: OomMessage) -> Iterator[Row]:
    if message.free is not None:
        yield Row("missing", "tried - free", gib(max(message.tried - message.free, 0.0)), "torch")
    if message.strangers is not None:
        yield Row("held by others", "capacity - free - this process", gib(message.strangers), "torch")
    if message.unallocated is not None and message.tried > 0:
        yield Row("in pieces", "unallocated / tried", f"{message.unallocated / message.tried:.2f}", "torch")


def _tokens(message: OomMessage, known: Known) -> Iterator[Row]:
    for what, value in (
        ("vocabulary, padded", known.vocabulary),
        ("TP", known.tensor_parallel),
        ("CP", known.context_parallel),
        ("max-tokens-per-gpu", known.limit),
        ("log-probs-max-tokens", known.log_probs_limit),
    ):
        if value is not None:
            yield Row(what, "given", str(value), "arguments")
    if known.longest is not None:
        words = "prompt + response" if known.whole else "response alone"
        yield Row("longest sample", words, f"{known.longest} tokens", "dump" if known.whole else "perf line")
    for kind, size in FORMATS:
        tokens = tokens_of(message.tried, size, known)
        if tokens is not None:
            formula = f"tried / (vocabulary / TP x {size})"
            yield Row(f"logits in {kind}", formula, f"{tokens:.0f} tokens", "reckoned")
    if known.engine_kept is not None:
        yield Row("others before wake_up", "median of used - reserved", gib(known.engine_kept), "Memory-Usage")
    if known.asleep is not None:
        yield Row("in use when all sleep", "median of used", gib(known.asleep), "Memory-Usage")
    if known.static is not None:
        yield Row("static fraction", "given", f"{known.static:g}", "arguments")
    if known.static is not None and message.total is not None:
        yield Row("engine's static share", "fraction x capacity", gib(known.static * message.total), "reckoned")

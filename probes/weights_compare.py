"""Compares every tensor that SGLang's load_weights was given with the checkpoint: the guide's thorough method (1.1 b).

Each tensor is read once, in pieces, on both sides; a recording without tensors is compared by its fingerprints.
Updates are judged in order and the first one that is wrong answers, since later ones inherit its fault. The initial
load, which SGLang reads from the checkpoint itself, says nothing about what Megatron sends and never counts as right.
It is asked without being told to (it is not `heavy`): whoever records weights wants them compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from probes.hf_checkpoint import open_checkpoint, shorten
from probes.readers.received_weights import Place, Sent, Update, quote, read_updates
from probes.weights_fingerprint import Print
from probes.weights_pictures import layer_grid, parameter_grid
from probes.weights_places import Judged, sender
from probes.weights_reference import Reference, address, print_of_sent, reference_of
from probes.weights_relation import HEALTHY, Relation, relate
from probes.weights_stale import unchanged
from probes.weights_taken import Taken, taken
from probes.weights_verdict import Compared, Outcome, decide, lay_beside
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Grid, Measurement, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe, silent
from runbook.text import Text, sanitise

SHOWN = 40
"""Tensors in the table."""
CITED = 4
"""Tensors that are cited."""
DRAFT = re.compile(r"NextN|MTP|Eagle|Draft", re.IGNORECASE)
"""Classes of draft models: given everything, they take only their own part."""
FROZEN = (b"only-train-params", b"freeze-params")
"""Flags of slime that keep parameters from being trained."""


@probe(
    "weights.compare",
    needs=("received_weights", "hf_checkpoint"),
    answers=(
        "equal",
        "trained",
        "pp-layer-ids",
        "ep-expert-ids",
        "vocab-padding",
        "zero",
        "nonfinite",
        "unknown-name",
        "never-sent",
        "not-taken",
        "values-wrong",
        "load-failed",
        "stale",
        "unrelated",
    ),
    en="Is what SGLang's load_weights was given what the checkpoint holds?",
    zh="SGLang 的 load_weights 收到的内容与 ckpt 一致吗？",
    deadline=3600.0,
)
def compare(evidence: Evidence, report: Progress) -> Finding:
    """Lay each update beside the checkpoint; the first wrong one answers, else the last right one."""
    updates, troubles = read_updates(evidence.paths("received_weights"))
    if not updates:
        return _unusable(shorten(troubles) or "The recording holds no update", evidence.first("received_weights"))
    checkpoint = open_checkpoint(evidence, silent)
    if isinstance(checkpoint, Finding):
        return checkpoint
    reference = reference_of(checkpoint)
    if not reference.stored:
        return _unusable(f"{reference.path} has no readable safetensors", reference.path, slot="hf_checkpoint")
    return _judge(evidence, updates, reference, report)


@dataclass(frozen=True)
class _Read:
    """One update, judged. engine: what became of it, None when that was not recorded."""

    compared: Compared
    outcome: Outcome | None
    engine: Taken | None


def _judge(evidence: Evidence, updates: list[Update], reference: Reference, report: Progress) -> Finding:
    """Judge updates in order until one is wrong."""
    right: _Read | None = None
    before: dict[str, Print] = {}
    reason = ""
    for number, update in enumerate(updates):
        try:
            one = _read(update, before, reference, _share(report, number, len(updates)))
        except (OSError, EOFError, KeyError) as error:
            return _unusable(f"{update.label}: {error}", update.path)
        before = {one.compared.judged[at].sent.name: own for at, own in one.compared.prints.items()}
        if one.outcome is None:
            reason = reason or _why_open(one.compared)
        elif one.outcome.verdict is Verdict.PROBLEM or one.outcome.answer in ("stale", "unrelated"):
            return _finding(evidence, one, one.outcome, reference)
        elif update.kind == "load":
            reason = reason or "Only the load at the start is recorded, which SGLang reads from the checkpoint itself"
        else:
            right = one
    if right is None or right.outcome is None:
        return _open(reason or "Nothing of the recording can be compared", updates)
    return _finding(evidence, right, right.outcome, reference)


def _share(report: Progress, number: int, count: int) -> Callable[[float], None]:
    """Return progress within one update as progress over all of them."""
    return lambda done: report(number + done, count, "update")


def _read(update: Update, before: dict[str, Print], reference: Reference, report: Callable[[float], None]) -> _Read:
    """Lay one update beside the checkpoint. Raises OSError, EOFError, KeyError."""
    judged: list[Judged] = []
    prints: dict[int, Print] = {}
    for sent, own, relation in _related(update, reference):
        if own is not None:
            prints[len(judged)] = own
        judged.append(Judged(sent, relation, address(sent.name), sent.name in reference.stored))
        report(len(judged) / len(update.sent))
    compared = lay_beside(update, judged, prints, reference)
    if DRAFT.search(update.model):
        compared.missing.clear()
    compared.stale = _unmoved(compared, before, reference)
    outcome, engine = decide(compared), taken(update, judged, prints)
    if outcome is None or outcome.verdict is not Verdict.PROBLEM:
        outcome = _left(compared, engine) or outcome
    return _Read(compared, outcome, engine)


def _related(update: Update, reference: Reference) -> Iterator[tuple[Sent, Print | None, Relation]]:
    """Yield each tensor of an update with its fingerprint and its relation to the checkpoint."""
    for sent in update.sent:
        own = print_of_sent(sent)
        yield sent, own, relate(own, sent.name, reference)


def _unmoved(compared: Compared, before: dict[str, Print], reference: Reference) -> list[int]:
    """Return the tensors that stayed as in the checkpoint, or as in the previous update, while the rest changed."""
    healthy = {each.sent.name for each in compared.judged if each.relation.kind in HEALTHY}
    start = {name: reference.print_of(name) for name in healthy if name in reference.stored}
    stale = unchanged(compared.judged, compared.prints, start)
    return stale or (unchanged(compared.judged, compared.prints, before) if before else [])


def _left(compared: Compared, engine: Taken | None) -> Outcome | None:
    """Return what the engine did not take of what it was sent."""
    if engine is None:
        return None
    lost = [name for name in engine.homeless if name in set(compared.unknown)]
    names = [*engine.kept, *lost]
    if not names:
        return None
    proof = tuple(each for each in compared.judged if each.sent.name in set(names))
    why = "kept its old content" if engine.kept else "has no parameter of that name and said nothing"
    why_zh = "保持旧内容" if engine.kept else "没有该名字的参数，也没有任何提示"
    return Outcome(
        Verdict.PROBLEM,
        "not-taken",
        f"{shorten(names)} was sent but not taken: the engine {why}",
        f"{shorten(names)} 已发送但未被接收：engine {why_zh}",
        proof,
    )


def _why_open(compared: Compared) -> str:
    update = compared.update
    if not compared.whole:
        came = len({each.sent.name for each in compared.judged})
        return f"{update.label} holds {came} of {compared.expected} tensors and may not be complete; those are right"
    return f"{update.label} holds names or quantised values only, which cannot be compared with this checkpoint"


def _finding(evidence: Evidence, one: _Read, outcome: Outcome, reference: Reference) -> Finding:
    """Build the finding of one update."""
    compared, engine, verdict = one.compared, one.engine, outcome.verdict
    if outcome.answer == "stale" and verdict is Verdict.PROBLEM and _freezes(evidence):
        verdict = Verdict.WARNING
    en, zh = outcome.en, outcome.zh
    if compared.update.kind != "saved":
        en, zh = f"{compared.update.label} ({compared.update.kind}): {en}", f"{compared.update.label}：{zh}"
    if engine is not None and engine.proven and outcome.answer in ("equal", "trained"):
        en += f"; {engine.proven} are in the engine bit by bit"
        zh += f"；其中 {engine.proven} 个在 engine 中逐位一致"
    if engine is not None and outcome.answer == "unknown-name" and set(engine.homeless) & set(compared.unknown):
        en += "; the engine has no such parameter and dropped it without a word"
        zh += "；engine 没有这样的参数，并且毫无提示地丢弃了它"
    return found(
        verdict,
        outcome.answer,
        f"{_begun(en)}.",
        f"{zh}。",
        citations=tuple(_citations(compared, outcome, reference)),
        measurements=tuple(_counts(compared)),
        tables=tuple(_tables(compared, engine)),
        grids=tuple(_grids(compared, outcome)),
    )


def _begun(sentence: str) -> str:
    """Return a sentence with a capital at its start, unless it starts with a name."""
    first = sentence.split(" ", 1)[0]
    return sentence[0].upper() + sentence[1:] if first.isalpha() else sentence


def _freezes(evidence: Evidence) -> bool:
    """Whether a launch script names parameters that are not trained."""
    for path in evidence.paths("launch"):
        try:
            with open(path, "rb") as file:
                text = file.read(4 << 20).replace(b"_", b"-")
        except OSError:
            continue
        if any(flag in text for flag in FROZEN):
            return True
    return False


def _citations(compared: Compared, outcome: Outcome, reference: Reference) -> Iterator[Citation]:
    if outcome.error is not None:
        yield _cite_place(compared.update.errors[outcome.error][1], compared.update.errors[outcome.error][0])
    for each in outcome.proof[:CITED]:
        yield _cite_sent(each)
    for name in outcome.absent[:CITED]:
        stored = reference.stored[name]
        yield cite(stored.path, f"{name} {stored.dtype} {list(stored.shape)}: never sent", offset=stored.offset)
    if outcome.absent:
        count = len({each.sent.name for each in compared.judged})
        yield cite(
            compared.update.path, f"{count} names, {outcome.absent[0]} not among them", count=len(outcome.absent)
        )


def _cite_sent(each: Judged) -> Citation:
    sent, relation = each.sent, each.relation
    said = {"elsewhere": f"content of {relation.origin}", "equal": "equal to the checkpoint"}
    words = said.get(relation.kind, relation.en or relation.kind)
    return _cite_place(sent.place, f"{sent.name} {sent.dtype} {list(sent.shape)}: {words}")


def _cite_place(place: Place, words: str) -> Citation:
    """Cite a line of a recording as it stands there, or a tensor in a file in words."""
    if place.line is None:
        return cite(place.path, words, offset=place.offset)
    return cite(place.path, quote(place), line=place.line, offset=place.offset)


def _counts(compared: Compared) -> Iterator[Measurement]:
    kinds: dict[str, int] = {}
    for each in compared.judged:
        kinds[each.relation.kind] = kinds.get(each.relation.kind, 0) + 1
    yield Measurement("tensors received", float(len(compared.judged)), "tensor")
    for kind, count in sorted(kinds.items()):
        yield Measurement(f"tensors: {kind}", float(count), "tensor")
    if compared.whole:
        yield Measurement("tensors never sent", float(len(compared.missing)), "tensor")


def _tables(compared: Compared, engine: Taken | None) -> Iterator[Table]:
    wrong = [each for each in compared.judged if each.relation.kind not in HEALTHY]
    rows = [(each.sent.name, sender(each.sent.source)[0], *_words(each)) for each in wrong[:SHOWN]]
    if compared.whole:
        rows += [(name, "", "never sent", "") for name in compared.missing[: SHOWN - len(rows)]]
    if rows:
        total = len(wrong) + (len(compared.missing) if compared.whole else 0)
        yield Table(
            Text(f"Tensors that are not as in the checkpoint ({total})", f"与 ckpt 不一致的张量（{total} 个）"),
            ("tensor", "from", "what", "how"),
            tuple(tuple(sanitise(cell, 160) for cell in row) for row in rows),
        )
    if engine is not None and (engine.kept or engine.homeless):
        yield Table(
            Text("Sent, but not in the engine under that name", "已发送，但 engine 中没有该名字或未变化"),
            ("tensor", "what became of it"),
            tuple((sanitise(name, 160), "its parameter kept its old content") for name in engine.kept[:SHOWN])
            + tuple((sanitise(name, 160), "the engine has no such parameter") for name in engine.homeless[:SHOWN]),
        )


def _words(each: Judged) -> tuple[str, str]:
    if each.relation.kind == "elsewhere":
        return "content of", each.relation.origin
    return each.relation.kind, each.relation.en


def _grids(compared: Compared, outcome: Outcome) -> Iterator[Grid]:
    """Yield the pictures: that of the layers where content moved or is to be seen in its place, that of parameters."""
    if outcome.answer in ("pp-layer-ids", "ep-expert-ids", "values-wrong", "never-sent", "equal"):
        grid = layer_grid(compared)
        if grid is not None:
            yield grid
    if outcome.answer != "equal":
        grid = parameter_grid(compared)
        if grid is not None:
            yield grid


def _unusable(why: str, path: str | None, slot: str = "received_weights") -> Finding:
    return unknown(
        f"{why}.",
        f"{why}。",
        settle_en="Record an update with slime-runbook recorder, and give the recorder's folder and the checkpoint.",
        settle_zh="用 slime-runbook recorder 录制一次更新，提供录制目录和 ckpt。",
        slots=(slot,),
        citations=(cite(path, why),) if path and os.path.exists(path) else (),
    )


def _open(why: str, updates: list[Update]) -> Finding:
    return unknown(
        f"{why}.",
        f"{why}。",
        settle_en="Let the recording run until an update has ended (20 s without another call), and give it again.",
        settle_zh="让录制持续到一次更新结束（其后 20 秒没有新的调用），再提供一次。",
        slots=("received_weights",),
        citations=tuple(cite(update.path, f"{len(update.sent)} tensors") for update in updates[:1]),
    )

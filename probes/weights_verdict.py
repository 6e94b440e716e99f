"""What is wrong with an update as a whole: from the relations of single tensors to one answer.

Order: the most specific fault that explains the others comes first. A stage that sends its layers under wrong ids
also leaves names unsent and values wrong; that is one fault, not three. Nothing is said to be missing from an update
that is not known to have ended, or that holds less than PART of the checkpoint.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from probes.hf_checkpoint import shorten
from probes.readers.received_weights import Update
from probes.weights_fingerprint import Print
from probes.weights_groups import Mixed, mixed
from probes.weights_places import Judged, Move, describe, moved_experts, moved_layers, spans
from probes.weights_reference import Reference, address, missing, unknown_names
from probes.weights_relation import SOUND
from runbook.finding import Verdict

PART = 0.25
"""Share of the checkpoint's names below which an update is a part on purpose, such as one parameter sent by hand."""
UNRELATED = 0.7
"""Share of tensors without any relation from which the checkpoint is simply another one."""
TOLERANT = ("e_score_correction_bias", "expert_bias")
"""Tensors that training moves by other rules than gradients: the balance bias of routers."""


@dataclass
class Compared:
    """One update laid beside the checkpoint. prints: by position in `judged`. missing: needed names that never came."""

    update: Update
    judged: list[Judged]
    prints: dict[int, Print]
    missing: list[str]
    free: list[str]
    unknown: list[str]
    layers: list[Move]
    experts: list[Move]
    mixed: list[Mixed]
    expected: int
    stale: list[int] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether what is missing from it can be said never to have been sent."""
        came = len({each.sent.name for each in self.judged})
        return self.update.whole and came >= PART * self.expected

    @property
    def told(self) -> list[Judged]:
        """Return the tensors of the checkpoint whose content could be compared."""
        return [each for each in self.judged if each.expected and each.relation.kind not in ("named", "opaque")]

    def of(self, *kinds: str) -> list[Judged]:
        """Return the tensors whose relation is one of `kinds`."""
        return [each for each in self.judged if each.relation.kind in kinds]


@dataclass(frozen=True)
class Outcome:
    """The answer for one update. proof: the tensors to show first; absent: names to show as never sent."""

    verdict: Verdict
    answer: str
    en: str
    zh: str
    proof: tuple[Judged, ...] = ()
    absent: tuple[str, ...] = ()
    error: int | None = None


def lay_beside(update: Update, judged: list[Judged], prints: dict[int, Print], reference: Reference) -> Compared:
    """Put the relations of an update's tensors together. Raises OSError."""
    came = {each.sent.name for each in judged}
    absent, free = missing(reference, came)
    layers = moved_layers(judged)
    return Compared(
        update,
        judged,
        prints,
        absent,
        free,
        unknown_names(reference, came),
        layers,
        moved_experts(judged, layers),
        mixed(judged, prints, reference),
        len(absent) + len([name for name in came if name in reference.stored]),
    )


def decide(compared: Compared) -> Outcome | None:
    """Return what is wrong with an update or that it is right; None when its content does not tell."""
    for step in (_places, _rows, _broken, _names, _values, _errors, _stale):
        outcome = step(compared)
        if outcome is not None:
            return outcome
    return _healthy(compared)


def _places(compared: Compared) -> Outcome | None:
    """Layers or experts under wrong ids."""
    if compared.layers:
        en, zh = describe(compared.layers, "layers", "layer")
        moved = {(move.source, move.id) for move in compared.layers}
        proof = [each for each in compared.of("elsewhere") if (each.sent.source, each.place.layer or 0) in moved]
        gone, gone_zh = _never(compared, "layer")
        return Outcome(
            Verdict.PROBLEM, "pp-layer-ids", en + gone, zh + gone_zh, tuple(proof), tuple(compared.missing[:1])
        )
    if compared.experts:
        en, zh = describe(compared.experts, "experts", "expert")
        within = spans([move.within for move in compared.experts if move.within is not None])
        ids = {(move.source, move.within, move.id) for move in compared.experts}
        proof = [
            each for each in compared.of("elsewhere") if (each.sent.source, each.place.layer, each.place.expert) in ids
        ]
        gone, gone_zh = _never(compared, "expert")
        en, zh = f"{en} (in layers {within}){gone}", f"{zh}（layer {within}）{gone_zh}"
        return Outcome(Verdict.PROBLEM, "ep-expert-ids", en, zh, tuple(proof), tuple(compared.missing[:1]))
    return _repeated(compared)


def _never(compared: Compared, what: str) -> tuple[str, str]:
    """Say which ids never came at all."""
    places = [address(name) for name in compared.missing] if compared.whole else []
    ids = [place.expert if what == "expert" else place.layer for place in places]
    known = [number for number in ids if number is not None]
    if not known:
        return "", ""
    return f"; {what}s {spans(known)} never came", f"；{what} {spans(known)} 从未送达"


def _repeated(compared: Compared) -> Outcome | None:
    """Ids that were sent twice while as many others never came, though the content that was kept is right."""
    if not compared.whole or not compared.missing or not compared.update.twice:
        return None
    twice = [address(name) for name in compared.update.twice]
    gone = [address(name) for name in compared.missing]
    for noun, zh, answer in (("expert", "expert", "ep-expert-ids"), ("layer", "layer", "pp-layer-ids")):
        again = sorted({id for place in twice if (id := place.expert if noun == "expert" else place.layer) is not None})
        lost = sorted({id for place in gone if (id := place.expert if noun == "expert" else place.layer) is not None})
        kinds = {place.kind for place in twice} == {place.kind for place in gone}
        if again and len(again) == len(lost) and not set(again) & set(lost) and kinds:
            proof = tuple(each for each in compared.judged if each.sent.name in compared.update.twice)
            return Outcome(
                Verdict.PROBLEM,
                answer,
                f"{noun}s {spans(again)} were sent twice and {noun}s {spans(lost)} never",
                f"{zh} {spans(again)} 发送了两次，{zh} {spans(lost)} 从未发送",
                proof,
                tuple(compared.missing[:1]),
            )
    return None


def _rows(compared: Compared) -> Outcome | None:
    """Vocabulary rows that Megatron appended."""
    padded = compared.of("padded")
    if not padded:
        return None
    names = shorten(sorted({each.sent.name for each in padded}))
    detail = padded[0].relation
    en = f"{names}: {detail.en}; vocabulary padding was not removed"
    return Outcome(Verdict.PROBLEM, "vocab-padding", en, f"{names}：{detail.zh}；词表 padding 没有去掉", tuple(padded))


def _broken(compared: Compared) -> Outcome | None:
    """Tensors that hold nothing, or no numbers."""
    for kind, en, zh in (
        ("zero", "arrived as zeros though the checkpoint has values", "送达时全为零，而 ckpt 中有值"),
        ("nonfinite", "arrived with NaN or Inf", "送达时含有 NaN 或 Inf"),
    ):
        hits = compared.of(kind)
        if hits:
            where, where_zh = _where(hits)
            return Outcome(Verdict.PROBLEM, kind, f"{where} {en}", f"{where_zh} {zh}", tuple(hits))
    return None


def _where(hits: Sequence[Judged]) -> tuple[str, str]:
    """Return which tensors are meant: whole layers by number, else by name."""
    layers = {each.place.layer for each in hits}
    names = sorted({each.sent.name for each in hits})
    if len(names) > 3 and None not in layers:
        ids = spans([layer for layer in layers if layer is not None])
        tails = sorted({each.place.kind.rpartition("#.")[2] for each in hits})
        return (
            f"{len(names)} tensors of layer {ids} ({shorten(tails)})",
            f"layer {ids} 的 {len(names)} 个张量（{shorten(tails)}）",
        )
    return shorten(names), shorten(names)


def _names(compared: Compared) -> Outcome | None:
    """Names that never came, or came as others."""
    if not compared.missing or not compared.whole:
        return None
    absent = tuple(compared.missing)
    total = compared.expected
    if compared.unknown:
        strange = tuple(each for each in compared.judged if each.sent.name in set(compared.unknown))
        same = next((each for each in strange if each.relation.kind == "elsewhere"), None)
        proof = (same, *strange) if same is not None else strange
        hint = f"; {same.sent.name} holds {same.relation.origin}" if same is not None else ""
        hint_zh = f"；{same.sent.name} 的内容是 {same.relation.origin}" if same is not None else ""
        return Outcome(
            Verdict.PROBLEM,
            "unknown-name",
            f"{len(compared.unknown)} names came that the checkpoint does not have ({shorten(compared.unknown, 2)}), "
            f"and {len(absent)} of its {total} never came{hint}",
            f"收到 {len(compared.unknown)} 个 ckpt 中没有的名字（{shorten(compared.unknown, 2)}），"
            f"而 ckpt 的 {total} 个参数中有 {len(absent)} 个从未送达{hint_zh}",
            proof,
            absent,
        )
    names, names_zh = _gone(absent, compared)
    return Outcome(
        Verdict.PROBLEM,
        "never-sent",
        f"{len(absent)} of {total} parameters never came: {names}",
        f"{total} 个参数中有 {len(absent)} 个从未送达：{names_zh}",
        (),
        absent,
    )


def _gone(absent: Sequence[str], compared: Compared) -> tuple[str, str]:
    """Return which names never came: whole experts or whole layers by number, else by name."""
    places = [address(name) for name in absent]
    layers = {place.layer for place in places}
    experts = {place.expert for place in places}
    if len(absent) > 3 and None not in layers | experts:
        ids, within = (
            spans([int(e) for e in experts if e is not None]),
            spans([int(n) for n in layers if n is not None]),
        )
        return f"experts {ids} of layers {within}", f"layer {within} 的 expert {ids}"
    if len(absent) > 3 and None not in layers and not layers & {each.place.layer for each in compared.judged}:
        ids = spans([number for number in layers if number is not None])
        return f"everything of layers {ids}", f"layer {ids} 的全部参数"
    return shorten(absent), shorten(absent)


def _values(compared: Compared) -> Outcome | None:
    """Right names with wrong values."""
    wrong = [
        each
        for each in compared.judged
        if each.expected
        and each.relation.kind not in SOUND | {"zero", "nonfinite", "padded"}
        and not each.sent.name.endswith(TOLERANT)
    ]
    if not wrong:
        return None
    known = compared.told
    far = [each for each in wrong if each.relation.kind == "far"]
    if len(far) > UNRELATED * len(known):
        return Outcome(
            Verdict.WARNING,
            "unrelated",
            f"{len(far)} of {len(known)} tensors have nothing to do with this checkpoint: other weights were sent, "
            "or it is another checkpoint",
            f"{len(known)} 个张量中有 {len(far)} 个与该 ckpt 无关：发送的是其他权重，或给出的不是同一个 ckpt",
            tuple(far),
        )
    en, zh = _how(compared, wrong)
    return Outcome(Verdict.PROBLEM, "values-wrong", en, zh, tuple(wrong))


def _how(compared: Compared, wrong: list[Judged]) -> tuple[str, str]:
    """Say how the values are wrong, by the most common way."""
    if compared.mixed:
        how, _ = Counter(each.how for each in compared.mixed).most_common(1)[0]
        alike = [each for each in compared.mixed if each.how == how]
        ids = spans([each.layer for each in alike])
        tails = [name.split(".")[-2] for name in alike[0].names]
        both, both_zh = " and ".join(tails), "、".join(tails)
        if how == "ungrouped":
            return (
                f"q, k and v of layers {ids} hold the right rows in the wrong places: the split ignored GQA groups",
                f"layer {ids} 的 q/k/v 行都对但位置不对：切分没有考虑 GQA 分组",
            )
        if how == "exchanged":
            return f"{both} of layers {ids} are exchanged", f"layer {ids} 的 {both_zh} 互换"
        return f"{both} of layers {ids} hold each other's rows", f"layer {ids} 的 {both_zh} 混入了彼此的行"
    ways: dict[str, list[Judged]] = defaultdict(list)
    for each in wrong:
        ways[each.relation.kind].append(each)
    kind, hits = max(ways.items(), key=lambda pair: len(pair[1]))
    where, where_zh = _where(hits)
    words, words_zh = WAYS[kind]
    first = hits[0].relation
    if kind == "elsewhere":
        return f"{where} {words} {first.origin}", f"{where_zh} {words_zh} {first.origin}"
    tail = f" ({first.en})" if first.en else ""
    return f"{where} {words}{tail}", f"{where_zh} {words_zh}" + (f"（{first.zh}）" if first.zh else "")


WAYS: dict[str, tuple[str, str]] = {
    "elsewhere": ("arrived with the content of", "送达的内容其实是"),
    "part": ("arrived only in part", "只送达了一部分"),
    "shape": ("arrived with another shape", "送达时形状不对"),
    "transposed": ("arrived transposed", "送达时被转置"),
    "permuted": ("arrived with its rows permuted", "送达时行的次序被打乱"),
    "shuffled": ("arrived with its values in another order", "送达时数值次序被打乱"),
    "offset": ("arrived with a constant added", "送达时多加了一个常数"),
    "scaled": ("arrived scaled", "送达时被缩放"),
    "partly": ("arrived right in part and wrong in part", "送达时部分正确、部分错误"),
    "far": (
        "arrived with other values that match nothing in the checkpoint",
        "送达的数值不同，且与 ckpt 中任何张量都不匹配",
    ),
}
"""How a tensor is wrong, in words that follow its name."""


def _errors(compared: Compared) -> Outcome | None:
    """load_weights itself raised."""
    if not compared.update.errors:
        return None
    words, _ = compared.update.errors[0]
    return Outcome(
        Verdict.PROBLEM, "load-failed", f"load_weights failed: {words}", f"load_weights 失败：{words}", error=0
    )


def _stale(compared: Compared) -> Outcome | None:
    """Tensors that stayed as they were while their peers were trained."""
    if not compared.stale:
        return None
    hits = [compared.judged[number] for number in compared.stale]
    kinds = Counter(each.place.kind for each in compared.judged if each.relation.kind == "near")
    sure = all(kinds[each.place.kind] >= 3 for each in hits)
    where, where_zh = _where(hits)
    return Outcome(
        Verdict.PROBLEM if sure else Verdict.WARNING,
        "stale",
        f"{where} did not change while the rest was trained: an old copy was sent",
        f"{where_zh} 没有变化，而其余参数都已训练：发送的是旧副本",
        tuple(hits),
    )


def _healthy(compared: Compared) -> Outcome | None:
    """All that came is right."""
    known = compared.told
    if not known or len(known) < sum(each.expected for each in compared.judged) / 2 or not compared.whole:
        return None
    drifted = compared.of("drifted")
    trained = compared.of("near")
    same = compared.of("equal", "cast")
    count = f"{len(known)} tensors"
    if drifted:
        who, who_zh = _where(drifted)
        most = max(each.relation.distance for each in drifted)
        return Outcome(
            Verdict.WARNING,
            "trained",
            f"{count} came under the right names, but {who} moved further than a few steps explain "
            f"({most:.2f} standard deviations)",
            f"{len(known)} 个张量名字都对，但 {who_zh} 的变化超出几步训练的程度（{most:.2f} 个标准差）",
            tuple(drifted),
        )
    if trained:
        few = len(trained) <= 0.1 * len(same)
        en = f"{count} came under the right names; {len(trained)} differ from the checkpoint by no more than training"
        zh = f"{len(known)} 个张量名字都对；{len(trained)} 个与 ckpt 的差异不超过训练所致"
        if few:
            who, who_zh = _where(trained)
            how = trained[0].relation
            en, zh = f"{en}: {who} ({how.en})", f"{zh}：{who_zh}（{how.zh}）"
        return Outcome(Verdict.WARNING if few else Verdict.OK, "trained", en, zh, tuple(trained if few else ()))
    cast = compared.of("cast")
    note = f" ({len(cast)} in another dtype)" if cast else ""
    return Outcome(
        Verdict.OK,
        "equal",
        f"{count} came under the right names with the very values of the checkpoint{note}",
        f"{len(known)} 个张量名字都对，数值与 ckpt 逐位相同" + (f"（{len(cast)} 个 dtype 不同）" if cast else ""),
    )

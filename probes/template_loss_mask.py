"""Whether the loss masks of the dumps count what the assistant wrote and nothing else (debug guide 1.2 b).

Lengths and masks of zeros need no tokenizer; which turn a token belongs to does. It is a problem when half of the
samples train on tokens that certainly are not the assistant's: turns of a conversation that is data, or tokens that
the engine did not draw. Samples that slime itself takes out (`remove_sample`) are not judged.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes import dumps
from probes.dumps import Read
from probes.readers.vocabulary import VocabularyError
from probes.settings import Settings, given, read_settings
from probes.template_samples import Tokenizer, View, tokenizer_of, views
from probes.template_structure import Structure, read_structure
from probes.template_turns import MaskFlaw, Turns, mask_flaws, masked_turns
from probes.thresholds import template as limits
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

_SHOWN = 20
_ORDER = ("length", "nothing-trained", "tool-output-trained", "prompt-trained", "off-by-one", "assistant-masked")


@dataclass(frozen=True)
class _Looked:
    """One sample with a mask, and its flaws. turns: how many turns its tokens hold, None when that is not known."""

    view: View
    flaws: tuple[MaskFlaw, ...]
    turns: int | None


@probe(
    "template.loss_mask",
    needs="rollout_dump|train_dump",
    answers=("right", *_ORDER),
    en="Does the loss mask count the assistant's tokens and no others?",
    zh="loss mask 是否只计入 assistant 的 token？",
    deadline=dumps.DEADLINE,
)
def loss_mask(evidence: Evidence, report: Progress) -> Finding:
    """Hold the masks of the first dumps against the turns of their tokens."""
    read, settings = Read(), read_settings(evidence)
    tokenizer = tokenizer_of(evidence)
    seen = [
        view for kind in ("rollout", "train") for dump in views(evidence, kind, report, read) for view in dump.samples
    ]
    masked = [view for view in seen if view.mask is not None and not view.removed and not view.multimodal]
    if not masked:
        en = "No dump holds a loss mask" if seen else "No dump holds samples"
        return dumps.nothing_read(read, f"{en}.", "dump 中没有 loss mask。" if seen else "dump 中没有样本。")
    structure = _structure(tokenizer)
    vocabulary = tokenizer.vocabulary if tokenizer is not None else None
    turns = Turns(structure, vocabulary) if structure is not None and vocabulary is not None else None
    looked = [_look(view, turns if turns is not None and turns.usable else None) for view in masked]
    return _finding(settings, tokenizer, structure, looked)


def _structure(tokenizer: Tokenizer | None) -> Structure | None:
    template = tokenizer.files.template if tokenizer is not None else None
    if tokenizer is None or template is None:
        return None
    return read_structure(template.text, tokenizer.files.special).structure


def _look(view: View, turns: Turns | None) -> _Looked:
    mask = view.mask or []
    if len(mask) != len(view.answer):
        # Only rollout dumps: train dumps of up to v0.3.1 hold the slices of one context-parallel rank.
        told = view.status and view.answer
        what = Text(
            f"the mask has {len(mask)} values for {len(view.answer)} tokens",
            f"{len(view.answer)} 个 token 却有 {len(mask)} 个 mask 值",
        )
        return _Looked(view, (MaskFlaw("length", what, 0, proven=True),) if told else (), None)
    if mask and not any(mask):
        what = Text("the mask is all zeros: nothing is trained", "mask 全为 0：没有任何 token 参与训练")
        return _Looked(view, (MaskFlaw("nothing-trained", what, 0, proven=True),), None)
    if turns is None or not mask:
        return _Looked(view, (), None)
    flaws = mask_flaws(view, turns)
    if not flaws and masked_turns(view, turns):
        what = Text("the mask leaves out a whole turn of the assistant", "mask 漏掉了 assistant 的整轮回答")
        flaws = [MaskFlaw("assistant-masked", what, 0, proven=False)]
    return _Looked(view, tuple(flaws), len(turns.of([*view.prompt, *view.answer])))


def _finding(
    settings: Settings, tokenizer: Tokenizer | None, structure: Structure | None, looked: list[_Looked]
) -> Finding:
    count, table = len(looked), _table(looked)
    kind, sure = _told(looked)
    if not kind:
        if not any(one.turns for one in looked):
            why = Text("the tokenizer's template is not at hand", "没有 tokenizer 的 chat template")
            if tokenizer is not None and tokenizer.why:
                why = Text(tokenizer.why, tokenizer.why)
            return unknown(
                f"The masks have the right length; which turns they count cannot be told: {why.en}.",
                f"mask 长度正确；无法判断计入了哪些轮次：{why.zh}。",
                settle_en="Attach --hf-checkpoint's folder with tokenizer.json and tokenizer_config.json.",
                settle_zh="附上 --hf-checkpoint 目录（含 tokenizer.json 和 tokenizer_config.json）。",
                slots=("hf_checkpoint",),
            )
        best, known = max(looked, key=lambda one: one.turns or 0), sum(bool(one.turns) for one in looked)
        shown = (
            f"sample {best.view.index}: {best.turns} turns, {sum(best.view.mask or [])}/{len(best.view.answer)} counted"
        )
        return found(
            Verdict.OK,
            "right",
            f"The loss masks of {counted(known, 'sample')} count the assistant's tokens alone.",
            f"{known} 个样本的 loss mask 只计入 assistant 的 token。",
            citations=(cite(best.view.path, shown),),
            tables=(table,),
        )
    mine = [(one.view, flaw) for one in looked for flaw in one.flaws if flaw.kind == kind]
    samples = sum(any(flaw.kind == kind for flaw in one.flaws) for one in looked)
    blame, cited = _blame(settings, structure, mine[0][0])
    limit = limits.FLAWED_SHARE if sure else limits.SOME_SHARE
    return found(
        Verdict.PROBLEM if sure else Verdict.WARNING,
        kind,
        f"In {samples} of {counted(count, 'sample')} {mine[0][1].what.en}{blame.en}.",
        f"{count} 个样本中有 {samples} 个：{mine[0][1].what.zh}{blame.zh}。",
        citations=(*(_proof(view, flaw, tokenizer) for view, flaw in mine[:3]), *cited),
        measurements=(limit.measure("samples with this flaw", samples / count),),
        tables=(table,),
    )


def _told(looked: list[_Looked]) -> tuple[str, bool]:
    """Return the flaw to tell, "" for none, and whether it is beyond doubt. Zeros are that only in every sample."""
    count = len(looked)
    for kind in _ORDER:
        proven = sum(any(flaw.kind == kind and flaw.proven for flaw in one.flaws) for one in looked)
        if proven >= (count if kind == "nothing-trained" else limits.FLAWED_SHARE.value * count):
            return kind, True
    for kind in _ORDER:
        some = sum(any(flaw.kind == kind for flaw in one.flaws) for one in looked)
        least = limits.FLAWED_SHARE if kind == "nothing-trained" else limits.SOME_SHARE
        if some >= min(limits.FEW.value, count) and some > least.value * count:
            return kind, False
    return "", False


def _proof(view: View, flaw: MaskFlaw, tokenizer: Tokenizer | None) -> Citation:
    piece = view.answer[flaw.at : flaw.at + 24]
    shown = f"token {flaw.at} of the response"
    if tokenizer is not None and tokenizer.vocabulary is not None and piece:
        try:
            shown += f": {tokenizer.vocabulary.decode(piece)!r}"
        except VocabularyError:
            shown += f": ids {piece[:8]}"
    return cite(view.path, f"sample {view.index}: {shown}")


def _blame(settings: Settings, structure: Structure | None, view: View) -> tuple[Text, tuple[Citation, ...]]:
    """Name --loss-mask-type where SFT data were masked by slime."""
    if not view.trains_on_data:
        return Text("", ""), ()
    kind = given(settings, "loss-mask-type")
    name = kind.shown if kind is not None else "qwen"
    hint = ""
    if structure is not None and structure.thinking_on and name == "qwen":
        hint = "qwen3"
    en = f"; --loss-mask-type is {name}" + (f", the template has thoughts: try {hint}" if hint else "")
    zh = f"；--loss-mask-type 是 {name}" + (f"，模板带 think：试试 {hint}" if hint else "")
    return Text(en, zh), (kind.citation,) if kind is not None else ()


def _table(looked: list[_Looked]) -> Table:
    ranked = sorted(looked, key=lambda one: not one.flaws)[:_SHOWN]
    rows = tuple(
        (
            str(one.view.index),
            "?" if one.turns is None else str(one.turns),
            f"{sum(one.view.mask or [])}/{len(one.view.mask or [])}",
            ", ".join(sorted({flaw.kind for flaw in one.flaws})) or "-",
            sanitise(one.flaws[0].what.en, 60) if one.flaws else "",
        )
        for one in ranked
    )
    return Table(Text("Loss masks", "各样本的 loss mask"), ("sample", "turns", "counted", "flaws", "what"), rows)

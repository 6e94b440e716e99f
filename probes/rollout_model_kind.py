"""Whether the checkpoint is a pretrain (base) or an instruct model (debug guide 1.1 d): a base model may ramble."""

from __future__ import annotations

from probes.model_signs import signs_of
from probes.settings import read_settings
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise


@probe(
    "rollout.model_kind",
    needs="hf_checkpoint|launch",
    answers=("base", "instruct"),
    en="Is it a pretrain (base) or an instruct model?",
    zh="这是预训练（base）模型还是 instruct 模型？",
)
def model_kind(evidence: Evidence, report: Progress) -> Finding:
    """Weigh names, end tokens, generation defaults, template and model card; what does not decide is unknown."""
    del report
    told = signs_of(evidence, read_settings(evidence))
    citations = tuple(sign.citation for sign in told.signs)
    kind = told.kind
    if kind is None:
        words = "; ".join(f"{sign.kind}: {sign.what.en}" for sign in told.signs)
        words_zh = "；".join(f"{sign.kind}：{sign.what.zh}" for sign in told.signs)
        return unknown(
            f"The signs of a base or instruct model contradict each other ({words})."
            if words
            else "Nothing tells whether it is a base or an instruct model.",
            f"base 与 instruct 的迹象互相矛盾（{words_zh}）。"
            if words
            else "没有迹象说明它是 base 还是 instruct 模型。",
            settle_en="Look up the model card; attach the folder with generation_config.json and "
            "tokenizer_config.json.",
            settle_zh="查看 model card；附上含 generation_config.json 和 tokenizer_config.json 的目录。",
            slots=("hf_checkpoint",),
            citations=citations,
        )
    mine = [sign for sign in told.signs if sign.kind == kind]
    words, words_zh = "; ".join(sign.what.en for sign in mine), "；".join(sign.what.zh for sign in mine)
    if told.thinking is not None:
        words, words_zh = f"{words}; {told.thinking.en}", f"{words_zh}；{told.thinking.zh}"
    rows = tuple((sign.kind, str(sign.weight), sanitise(sign.what.en, 120)) for sign in told.signs)
    zh = tuple(dict.fromkeys((sanitise(sign.what.en, 120), sanitise(sign.what.zh, 120)) for sign in told.signs))
    return found(
        Verdict.WARNING if kind == "base" else Verdict.OK,
        kind,
        f"It is {'a base (pretrain)' if kind == 'base' else 'an instruct'} model: {words}.",
        f"这是 {kind} 模型：{words_zh}。",
        citations=tuple(sign.citation for sign in mine),
        tables=(Table(Text("Signs", "迹象"), ("kind", "weight", "sign"), rows, zh),),
    )

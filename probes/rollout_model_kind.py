"""Whether the checkpoint is a pretrain (base) or an instruct model: a base model is expected to ramble.

Told by the name (`-Base`, `-Instruct`, `-Chat`, `-it`, `-Thinking`), by generation_config.json (an instruct model
has sampling defaults or several stop tokens) and by the absence of a chat template. Several families ship a chat
template with their base models, so having one proves nothing.
"""

from __future__ import annotations

import os
import re

from probes.readers.hf_config import chat_template as has_template
from probes.readers.hf_config import cite_key, load_json, read_config
from probes.settings import read_settings, scripted
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe

_BASE = re.compile(r"(?:^|[-_.])(?:base|pt|pretrain(?:ed)?)(?=$|[-_.])", re.IGNORECASE)
_INSTRUCT = re.compile(r"(?:^|[-_.])(?:instruct|chat|it|thinking|sft|rlhf|dpo)(?=$|[-_.\d])", re.IGNORECASE)


@probe(
    "rollout.model_kind",
    needs="hf_checkpoint|launch",
    answers=("base", "instruct"),
    en="Is it a pretrain (base) or an instruct model?",
    zh="这是预训练（base）模型还是 instruct 模型？",
)
def model_kind(evidence: Evidence, report: Progress) -> Finding:
    """Weigh name, generation defaults and template; only signs that agree decide."""
    del report
    signs: list[tuple[str, str, str, Citation]] = []  # kind, en, zh, citation
    for folder in evidence.paths("hf_checkpoint"):
        signs += _of_folder(folder)
    checkpoint = scripted(read_settings(evidence), "hf-checkpoint")
    if checkpoint is not None:
        signs += _of_name(os.path.basename(checkpoint.shown.rstrip("/")), checkpoint.citation)
    kinds = {kind for kind, *_ in signs}
    if len(kinds) != 1:
        return unknown(
            "The signs of a base or instruct model contradict each other."
            if kinds
            else "Nothing tells whether it is a base or an instruct model.",
            "base 与 instruct 的迹象互相矛盾。" if kinds else "没有迹象说明它是 base 还是 instruct 模型。",
            settle_en="look up the model card; attach the folder with generation_config.json and tokenizer_config.json",
            settle_zh="查看 model card；附上含 generation_config.json 和 tokenizer_config.json 的目录",
            slots=("hf_checkpoint",),
            citations=tuple(citation for *_, citation in signs),
        )
    kind = kinds.pop()
    words, words_zh = "; ".join(en for _, en, _, _ in signs), "；".join(zh for _, _, zh, _ in signs)
    return found(
        Verdict.WARNING if kind == "base" else Verdict.OK,
        kind,
        f"It is {'a base (pretrain)' if kind == 'base' else 'an instruct'} model: {words}.",
        f"这是 {kind} 模型：{words_zh}。",
        citations=tuple(citation for *_, citation in signs),
    )


def _of_name(name: str, citation: Citation) -> list[tuple[str, str, str, Citation]]:
    base, instruct = bool(_BASE.search(name)), bool(_INSTRUCT.search(name))
    if base == instruct:
        return []
    return [("base" if base else "instruct", f"its name is {name}", f"名字是 {name}", citation)]


def _of_folder(folder: str) -> list[tuple[str, str, str, Citation]]:
    name = os.path.basename(os.path.normpath(folder))
    signs = _of_name(name, cite(folder, name))
    path = os.path.join(folder, "generation_config.json")
    generation, data = load_json(path)
    if generation is not None:
        stops = generation.get("eos_token_id")
        key = (
            "temperature"
            if generation.get("do_sample") is True and "temperature" in generation
            else "eos_token_id"
            if isinstance(stops, list) and len(stops) > 1
            else ""
        )
        if key:
            signs.append(
                (
                    "instruct",
                    f"generation_config.json sets {key}",
                    f"generation_config.json 设置了 {key}",
                    cite_key(path, data, key, generation[key]),
                )
            )
    config = read_config(folder)
    if has_template(folder) is False and config is not None:
        where = os.path.join(folder, "tokenizer_config.json")
        signs.append(
            (
                "base",
                "its tokenizer has no chat template",
                "tokenizer 没有 chat template",
                cite(where, "no chat_template"),
            )
        )
    return signs

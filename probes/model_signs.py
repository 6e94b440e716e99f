"""What a checkpoint's files say about the kind of model it is: base (pretrain) or instruct, and whether it thinks.

No single file decides. Several families ship a chat template with their base models (Qwen does), so having one proves
nothing; but a base model's end tokens are those of documents, and the template's end of a turn is not among them.
Invariants: each sign is cited; a sign weighs STRONG where the file says what the model is, WEAK where it only fits;
the kind is known only where the signs of one kind outweigh the other's by more than a WEAK one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from probes.readers.hf_config import cite_key, load_json, read_config
from probes.readers.tokenizer_files import TokenizerFiles, read_file, read_tokenizer
from probes.readers.vocabulary import VocabularyError, load_vocabulary
from probes.settings import Settings, scripted
from probes.template_structure import Structure, read_structure
from runbook.evidence import Evidence
from runbook.finding import Citation, cite
from runbook.text import Text

STRONG, WEAK = 3, 1
CARD_LIMIT = 1 << 20
_BASE = re.compile(r"(?:^|[-_.])(?:base|pt|pretrain(?:ed)?)(?=$|[-_.])", re.IGNORECASE)
_INSTRUCT = re.compile(r"(?:^|[-_.])(?:instruct|chat|it|thinking|sft|rlhf|dpo)(?=$|[-_.\d])", re.IGNORECASE)
_MARK = re.compile(r"<[|｜][^<>|｜]{1,40}[|｜]>|</?\w{1,40}>")
_DOCUMENT_END = re.compile(r"end.?of.?(?:text|sentence|document)|^</s>$|^<eos>$", re.IGNORECASE)
_STAGE = re.compile(
    rb"Training Stage:\s*(?:\*\*\s*)?Pretraining(?P<more>\s*(?:&|and|\+)\s*Post-?training)?", re.IGNORECASE
)
_OWN_FORMAT = ("tekken.json", "encoding")
"""Files of models that come with their own code for conversations, so that no chat template means nothing."""


@dataclass(frozen=True)
class Sign:
    """One sign. kind: "base" or "instruct". weight: STRONG or WEAK."""

    kind: str
    weight: int
    what: Text
    citation: Citation


@dataclass(frozen=True)
class Signs:
    """All signs of a run's checkpoint. thinking: what its template says about thoughts, "" when nothing."""

    signs: tuple[Sign, ...]
    thinking: Text | None = None

    @property
    def kind(self) -> str | None:
        """Return "base", "instruct" or, where the signs do not decide, None."""
        weight = {kind: sum(sign.weight for sign in self.signs if sign.kind == kind) for kind in ("base", "instruct")}
        opposed = min(weight.values()) > 0
        if not self.signs or (opposed and abs(weight["base"] - weight["instruct"]) <= WEAK):
            return None
        return max(weight, key=lambda kind: weight[kind])


def signs_of(evidence: Evidence, settings: Settings) -> Signs:
    """Collect the signs of every checkpoint folder and of the name that the launch script gives it."""
    signs: list[Sign] = []
    thinking: Text | None = None
    for folder in evidence.paths("hf_checkpoint"):
        name = os.path.basename(os.path.normpath(folder))
        files = read_tokenizer(folder)
        structure = None
        if files.template is not None:
            structure = read_structure(files.template.text, files.special).structure
            thinking = thinking or _thinking(files.template.text, structure)
        signs += [*_of_name(name, cite(folder, name), STRONG), *_of_generation(folder), *_of_card(folder)]
        signs += [*_of_origin(folder), *_of_template(folder, files, structure)]
    checkpoint = scripted(settings, "hf-checkpoint")
    if checkpoint is not None:
        signs += _of_name(os.path.basename(checkpoint.shown.rstrip("/")), checkpoint.citation, STRONG)
    return Signs(tuple(_once(signs)), thinking)


def _once(signs: list[Sign]) -> list[Sign]:
    """Return the signs without those that say the same: a folder's name and the script's are one name."""
    kept: dict[str, Sign] = {}
    for sign in signs:
        kept.setdefault(sign.what.en, sign)
    return list(kept.values())


def _named(name: str) -> str | None:
    base, instruct = bool(_BASE.search(name)), bool(_INSTRUCT.search(name))
    return None if base == instruct else "base" if base else "instruct"


def _of_name(name: str, citation: Citation, weight: int) -> list[Sign]:
    kind = _named(name)
    return [] if kind is None else [Sign(kind, weight, Text(f"its name is {name}", f"名字是 {name}"), citation)]


def _of_generation(folder: str) -> list[Sign]:
    path = os.path.join(folder, "generation_config.json")
    values, data = load_json(path)
    if values is None:
        return []
    stops = values.get("eos_token_id")
    if values.get("do_sample") is True and "temperature" in values:
        key, weight = "temperature", STRONG
    elif isinstance(stops, list) and len(stops) > 1:
        key, weight = "eos_token_id", WEAK
    else:
        return []
    what = Text(f"generation_config.json sets {key}", f"generation_config.json 设置了 {key}")
    return [Sign("instruct", weight, what, cite_key(path, data, key, values[key]))]


def _of_origin(folder: str) -> list[Sign]:
    """Read the name that config.json keeps of where the weights came from; it may be that of an earlier stage."""
    config = read_config(folder)
    name = config.raw.get("_name_or_path") if config is not None else None
    if config is None or not isinstance(name, str) or not name:
        return []
    return [
        Sign(
            sign.kind,
            sign.weight,
            Text(f"config.json keeps the name {name}", f"config.json 里的名字是 {name}"),
            sign.citation,
        )
        for sign in _of_name(
            os.path.basename(name.rstrip("/")), cite_key(config.path, config.data, "_name_or_path", name), WEAK
        )
    ]


def _of_card(folder: str) -> list[Sign]:
    """Read the model card: the training stage it tells, its base model and the tags of its front matter."""
    path = os.path.join(folder, "README.md")
    try:
        data = read_file(path, CARD_LIMIT)
    except (OSError, ValueError):
        return []
    signs: list[Sign] = []
    stage = _STAGE.search(data)
    if stage is not None:
        what = Text("its model card tells the training stage", "model card 写明了训练阶段")
        signs.append(Sign("instruct" if stage["more"] else "base", STRONG, what, _cite_at(path, data, stage.start())))
    front = _front_matter(data)
    tags = front.get("tags")
    named = {str(tag).lower() for tag in tags} if isinstance(tags, list) else set()
    for kind, words in (
        ("base", {"base", "pretrained", "base model"}),
        ("instruct", {"chat", "instruct", "conversational"}),
    ):
        if (told := named & words) and not named & {"base"} - words:
            word = min(told)
            what = Text(f"its model card has the tag {word}", f"model card 的标签里有 {word}")
            signs.append(Sign(kind, WEAK, what, _cite_word(path, data, word)))
    parents = front.get("base_model")
    parent = parents[0] if isinstance(parents, list) and parents else parents
    relation = front.get("base_model_relation")
    if isinstance(parent, str) and (kind_of_parent := _named(parent.rpartition("/")[2])) is not None:
        copied = relation == "quantized"
        what = Text(
            f"its model card names {parent} as {'what was quantised' if copied else 'its base model'}",
            f"model card 写明{'量化自' if copied else '基座是'} {parent}",
        )
        signs.append(Sign(kind_of_parent if copied else "instruct", WEAK, what, _cite_word(path, data, parent)))
    return signs


def _front_matter(data: bytes) -> dict[str, Any]:
    import yaml

    head = re.match(rb"\s*---\s*\n(.*?)\n---\s*(?:\n|\Z)", data[:65536], re.DOTALL)
    if head is None or b"&" in head[1] or b"*" in head[1]:  # anchors can unfold into a bomb; cards have none
        return {}
    try:
        value = yaml.safe_load(head[1].decode("utf-8", "replace"))
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _of_template(folder: str, files: TokenizerFiles, structure: Structure | None) -> list[Sign]:
    """Weigh a missing template, and whether generation ends where the template ends a turn."""
    if files.template is None:
        config = os.path.join(folder, "tokenizer_config.json")
        told = config in files.seen and not any(os.path.exists(os.path.join(folder, name)) for name in _OWN_FORMAT)
        broken = any(os.path.basename(path).startswith("chat_template") for path, _ in files.faults)
        if not told or broken or files.templates:
            return []
        what = Text("its tokenizer has no chat template", "tokenizer 没有 chat template")
        return [Sign("base", STRONG, what, cite(config, "no chat_template"))]
    mark = _MARK.search(structure.end_assistant) if structure is not None else None
    if mark is None or _DOCUMENT_END.search(mark[0]) or not files.stops:
        return []
    number = number_of(mark[0], files)
    if number is None:
        return []
    ends, first = number in files.stop_ids, files.stops[0]
    en = f"{mark[0]}, the end of a turn, is {'' if ends else 'not '}among its end tokens"
    zh = f"轮次结束符 {mark[0]} {'在' if ends else '不在'}结束 token 之中"
    citation = cite_key(first.path, first.data, first.key, list(first.ids) if len(first.ids) > 1 else first.ids[0])
    return [Sign("instruct" if ends else "base", WEAK, Text(en, zh), citation)]


def number_of(token: str, files: TokenizerFiles) -> int | None:
    """Return the id of an added token; the vocabulary is loaded only where the configuration does not tell it."""
    known = next((number for number, text in files.added.items() if text == token), None)
    if known is not None or not files.vocabulary:
        return known
    try:
        return load_vocabulary(files).id_of(token)
    except VocabularyError:
        return None


def _thinking(template: str, structure: Structure | None) -> Text | None:
    if structure is not None and structure.thinking_on:
        return Text("thinking can be switched in its template", "模板里可以开关 thinking")
    if structure is not None and any("<think>" in one for one in structure.generation):
        return Text("its template always opens a thought", "模板总是以 <think> 开头")
    return Text("its template knows thoughts", "模板认识 think 标签") if "</think>" in template else None


def _cite_at(path: str, data: bytes, place: int) -> Citation:
    start = data.rfind(b"\n", 0, place) + 1
    end = data.find(b"\n", place)
    return cite(path, data[start : end if end >= 0 else None], line=data.count(b"\n", 0, start) + 1, offset=start)


def _cite_word(path: str, data: bytes, word: str) -> Citation:
    place = data.lower().find(word.lower().encode())
    return _cite_at(path, data, max(place, 0))

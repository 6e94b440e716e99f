"""Whether generation can stop: the token that ends a turn must be among those at which the engine stops.

SGLang stops at the tokenizer's eos_token, at eos_token_id of generation_config.json and config.json, and at what
--rollout-stop and --rollout-stop-token-ids add. It is proven that one is missing when the dumps show it: the model
writes the end of its turn and the engine goes on drawing behind it. Files alone only hint, as a base model ends with
the token of documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from probes import dumps
from probes.dumps import Read
from probes.model_signs import number_of, signs_of
from probes.readers.hf_config import cite_key, field, read_config
from probes.readers.tokenizer_files import TokenizerFiles
from probes.settings import Given, Settings, given, read_settings
from probes.template_samples import Tokenizer, View, tokenizer_of, views
from probes.template_structure import read_structure
from probes.thresholds import template as limits
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe

_MARK = re.compile(r"<[|｜][^<>|｜]{1,40}[|｜]>|</?\w{1,40}>|<\w{1,40}\|>|\[e~\[")
_BEHIND = 4
"""Tokens that must follow an end token before generation counts as not stopped: some templates end in two tokens."""


@dataclass(frozen=True)
class _Stops:
    """The ids at which the engine stops, and the line that lists most of them. sure: nothing can add to them unseen."""

    ids: frozenset[int]
    texts: tuple[str, ...]
    citation: Citation | None
    sure: bool


@probe(
    "template.stop_tokens",
    needs="hf_checkpoint",
    answers=("configured", "missing", "invalid"),
    en="Does the engine stop where the template ends a turn?",
    zh="engine 会在模板的轮次结束符处停止吗？",
    deadline=dumps.DEADLINE,
)
def stop_tokens(evidence: Evidence, report: Progress) -> Finding:
    """Compare the end of a turn with the stop tokens, and look for responses that ran on behind it."""
    settings, tokenizer = read_settings(evidence), tokenizer_of(evidence)
    if tokenizer is None:
        return _unknown("the checkpoint folder holds no tokenizer files", "ckpt 目录里没有 tokenizer 文件")
    files = tokenizer.files
    beyond = _beyond(files, tokenizer)
    if beyond is not None:
        return beyond
    end = _end_of_turn(files)
    number = number_of(end, files) if end else None
    stops = _stops(files, settings)
    if number is None or not stops.ids:
        return _unknown(
            "the template's end of a turn or the end tokens are not known", "不知道模板的轮次结束符或结束 token"
        )
    shown = stops.citation or cite(files.folder, f"{end} is {number}")
    read = Read()
    seen = [view for dump in views(evidence, "rollout", report, read) for view in dump.samples]
    if number in stops.ids or any(text in end or end in text for text in stops.texts) or _stop_there(seen, number):
        return found(
            Verdict.OK,
            "configured",
            f"Generation stops at {end} ({number}), the end of a turn.",
            f"生成会在轮次结束符 {end}（{number}）处停止。",
            citations=(shown,),
        )
    return _missing(evidence, settings, stops, (end, number, shown), seen)


def _missing(
    evidence: Evidence, settings: Settings, stops: _Stops, what: tuple[str, int, Citation], seen: list[View]
) -> Finding:
    """Return how far it is proven that the end of a turn is no stop token; what: its text, id and citation."""
    end, number, shown = what
    ran_on = [(view, place) for view in seen if (place := _ran_on(view, number)) is not None]
    long = [view for view in seen if len(view.answer) > _BEHIND]
    if ran_on and len(ran_on) >= max(limits.RUN_ON.value * len(long), min(limits.FEW.value, len(long))):
        view, place = ran_on[0]
        return found(
            Verdict.PROBLEM,
            "missing",
            f"In {len(ran_on)} of {len(long)} samples the model writes {end} ({number}) and the engine draws on: it is "
            "not among the stop tokens.",
            f"{len(long)} 个样本中有 {len(ran_on)} 个在 {end}（{number}）之后仍继续生成：它不在 stop token 之中。",
            citations=(cite(view.path, f"sample {view.index}: {end} is token {place} of {len(view.answer)}"), shown),
            measurements=(limits.RUN_ON.measure("samples that run on", len(ran_on) / len(long)),),
        )
    if seen or not stops.sure or signs_of(evidence, settings).kind == "base":
        return _unknown(
            f"{end} ({number}) is not among the end tokens of the files, and no sample runs on behind it",
            f"{end}（{number}）不在文件列出的结束 token 中，但没有样本在其后继续生成",
            (shown,),
        )
    return found(
        Verdict.WARNING,
        "missing",
        f"{end} ({number}), the end of a turn, is not among the end tokens {sorted(stops.ids)}.",
        f"轮次结束符 {end}（{number}）不在结束 token {sorted(stops.ids)} 之中。",
        citations=(shown,),
    )


def _beyond(files: TokenizerFiles, tokenizer: Tokenizer) -> Finding | None:
    """Return the finding of an end token that the vocabulary does not have; None when there is none."""
    config = read_config(files.folder)
    rows = field(config, "vocab") if config is not None else None
    size = rows.value if rows is not None and isinstance(rows.value, int) else 0
    if tokenizer.vocabulary is not None:
        size = max(size, tokenizer.vocabulary.size) if size else 0
    for stop in files.stops:
        over = [number for number in stop.ids if size and not 0 <= number < size]
        if over:
            value = list(stop.ids) if len(stop.ids) > 1 else stop.ids[0]
            return found(
                Verdict.PROBLEM if len(over) == len(stop.ids) else Verdict.WARNING,
                "invalid",
                f"End token {over[0]} lies beyond the vocabulary of {size}.",
                f"结束 token {over[0]} 超出词表（{size}）。",
                citations=(cite_key(stop.path, stop.data, stop.key, value),),
            )
    return None


def _end_of_turn(files: TokenizerFiles) -> str:
    """Return the marker with which the template ends the assistant's turn; "" when it has none."""
    if files.template is None:
        return ""
    structure = read_structure(files.template.text, files.special).structure
    mark = _MARK.search(structure.end_assistant) if structure is not None else None
    return mark[0] if mark is not None else ""


def _stops(files: TokenizerFiles, settings: Settings) -> _Stops:
    ids = set(files.stop_ids)
    eos = files.special.get("eos_token")
    if eos and (number := number_of(eos, files)) is not None:
        ids.add(number)
    more, words = given(settings, "rollout-stop-token-ids"), given(settings, "rollout-stop")
    ids |= {int(word) for word in re.findall(r"\d{1,9}", _value(more))}
    first = files.stops[0] if files.stops else None
    value = None if first is None else list(first.ids) if len(first.ids) > 1 else first.ids[0]
    citation = cite_key(first.path, first.data, first.key, value) if first is not None else None
    texts = tuple(re.sub(r"[\[\]'\",]", " ", _value(words)).split())
    return _Stops(frozenset(ids), texts, citation, settings.whole)


def _value(one: Given | None) -> str:
    return "" if one is None else one.value or one.shown


def _stop_there(seen: list[View], end: int) -> bool:
    """Return whether most finished responses end with the end of a turn, whatever it is that stops the engine there."""
    finished = [view for view in seen if view.status == "completed" and view.answer]
    stopped = sum(view.answer[-1] == end for view in finished)
    return stopped > 0 and stopped >= limits.RUN_ON.value * len(finished)


def _ran_on(view: View, end: int) -> int | None:
    """Return where the end of a turn stands in a response with tokens of the engine's own behind it; None if nowhere.

    What a rollout function put behind it (the next turn of a conversation) is not counted by the mask, or has the
    log-prob 0; without either nothing is told.
    """
    values = view.log_probs if view.log_probs is not None and len(view.log_probs) == len(view.answer) else None
    mask = view.mask if view.mask is not None and len(view.mask) == len(view.answer) else None
    if values is None:
        return None
    for place, token in enumerate(view.answer[:-_BEHIND]):
        if token == end:
            behind = range(place + 1, place + 1 + _BEHIND)
            if any(values[n] != 0.0 for n in behind) and (mask is None or all(mask[n] for n in behind)):
                return place
    return None


def _unknown(why: str, why_zh: str, citations: tuple[Citation, ...] = ()) -> Finding:
    return unknown(
        f"Whether generation stops at the end of a turn cannot be told: {why}.",
        f"无法判断生成是否会在轮次结束处停止：{why_zh}。",
        settle_en="Attach the whole checkpoint folder, the launch script and a rollout dump.",
        settle_zh="附上完整的 ckpt 目录、启动脚本和 rollout dump。",
        slots=("hf_checkpoint", "launch", "rollout_dump"),
        citations=citations,
    )

"""Whether the prompts of the dumps follow the chat template of the model's own tokenizer (debug guide 1.2 b).

The tokenizer's template is rendered, and its parts are looked for in each prompt: applied twice, missing, another
family's, without the assistant's opener, its markers spelled out, or tokens of another text. It is a problem only when
half of the samples share a flaw that no rendering of the template has; a prompt without a template is none for a base
model. Where no template is at hand, the markers of the published families may still show a warning, never that all is
right.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from probes import dumps
from probes.dumps import Read
from probes.model_signs import signs_of
from probes.readers.chat_template import Call
from probes.settings import Given, Settings, given, read_settings, switched
from probes.template_families import family_of
from probes.template_flaws import Flaw, Prompt, flaws_of, prompt_of, rendering_flaw, thinking_flaw
from probes.template_samples import Tokenizer, View, tokenizer_of, views
from probes.template_structure import Structure, of_family, read_structure
from probes.thresholds import template as limits
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

_SHOWN = 20
_RENDERED = 64
"""Conversations that are rendered as a whole and compared."""
_NO_TEMPLATE = Text("the tokenizer's chat template is not at hand", "没有 tokenizer 的 chat template")
_ORDER = (
    "tokens-differ",
    "split",
    "double",
    "foreign",
    "missing",
    "no-generation-prompt",
    "not-as-rendered",
    "thinking",
)


@dataclass(frozen=True)
class _Looked:
    """One sample that was looked at, and its flaws."""

    view: View
    prompt: Prompt
    flaws: tuple[Flaw, ...]

    def has(self, kind: str) -> bool:
        return any(flaw.kind == kind for flaw in self.flaws)


@probe(
    "template.prompts",
    needs="rollout_dump|train_dump",
    answers=("matches", *_ORDER),
    en="Do the prompts follow the tokenizer's chat template?",
    zh="prompt 是否符合 tokenizer 自己的 chat template？",
    deadline=dumps.DEADLINE,
)
def prompts(evidence: Evidence, report: Progress) -> Finding:
    """Look for the template's parts in the prompts of the first dumps."""
    read, settings = Read(), read_settings(evidence)
    tokenizer = tokenizer_of(evidence)
    seen = [view for dump in views(evidence, "rollout", report, read) for view in dump.samples]
    seen = seen or [view for dump in views(evidence, "train", report, read) for view in dump.samples]
    vocabulary = tokenizer.vocabulary if tokenizer is not None else None
    pairs = [(view, prompt) for view in seen if (prompt := prompt_of(view, vocabulary)) is not None and prompt.text]
    if not pairs:
        if not seen:
            return dumps.nothing_read(read, "No dump holds samples with a prompt.", "没有含 prompt 的 dump。")
        return _unknown(tokenizer, Text("the prompts are conversations or token ids", "prompt 是消息列表或 token id"))
    conversations = [pair for pair in pairs if pair[0].messages and pair[1].decoded][:_RENDERED]
    structure, why, whole = _structure(tokenizer, settings, pairs, conversations)
    if structure is None:
        return _unknown(tokenizer, why)
    looked = []
    for view, prompt in pairs:
        flaws = flaws_of(view, prompt, structure, vocabulary)
        expected = _thinking_asked(view, settings)
        extra = (thinking_flaw(prompt, structure, expected), whole.get(id(view)))
        if not any(flaw.kind in ("tokens-differ", "missing", "foreign") for flaw in flaws):
            flaws += [flaw for flaw in extra if flaw is not None]
        looked.append(_Looked(view, prompt, tuple(flaws)))
    return _finding(evidence, settings, tokenizer, structure, looked)


def _structure(
    tokenizer: Tokenizer | None,
    settings: Settings,
    pairs: list[tuple[View, Prompt]],
    conversations: list[tuple[View, Prompt]],
) -> tuple[Structure | None, Text, dict[int, Flaw]]:
    """Return the structure to hold prompts against, why there is none, and the flaws against whole renderings."""
    template = tokenizer.files.template if tokenizer is not None else None
    if template is not None and tokenizer is not None:
        asked = tuple(sorted(_kwargs(settings).items()))
        calls = [
            Call(view.messages or [], not view.trains_on_data, (*asked, *view.switches.items(), ("tools", view.tools)))
            for view, _ in conversations
        ]
        read = read_structure(template.text, tokenizer.files.special, calls)
        flaws: dict[int, Flaw] = {}
        for (view, prompt), rendering in zip(conversations, read.renderings, strict=True):
            whole = _whole(view, prompt, tokenizer)
            if rendering.good and whole is not None and "strftime_now" not in template.text:
                flaw = rendering_flaw(whole, rendering.text)
                if flaw is not None:
                    flaws[id(view)] = flaw
        why = Text(f"the chat template cannot be used ({read.why})", f"chat template 无法使用（{read.why}）")
        return read.structure, why, flaws
    families = Counter(family for _, prompt in pairs if (family := family_of(prompt.text)) is not None)
    if not families:
        return None, _NO_TEMPLATE, {}
    return of_family(families.most_common(1)[0][0]), _NO_TEMPLATE, {}


def _whole(view: View, prompt: Prompt, tokenizer: Tokenizer) -> Prompt | None:
    """Return the text that the conversation became: for SFT all tokens, else those of the prompt."""
    if not view.trains_on_data:
        return prompt
    return prompt_of(View(view.index, view.path, prompt=[*view.prompt, *view.answer]), tokenizer.vocabulary)


def _kwargs(settings: Settings) -> dict[str, Any]:
    """Return --apply-chat-template-kwargs, as the script writes it (JSON) or as the table prints it (a dict)."""
    one = given(settings, "apply-chat-template-kwargs")
    if one is None or not one.value or not one.sure or len(one.value) > 4096:
        return {}
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(one.value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return {key: each for key, each in value.items() if isinstance(key, str)}
    return {}


def _thinking_asked(view: View, settings: Settings) -> bool | None:
    """Return what the thinking switch was set to; None when nothing sets it."""
    for values in (view.switches, _kwargs(settings)):
        for key in ("enable_thinking", "thinking"):
            if isinstance(values.get(key), bool):
                return bool(values[key])
    return None


def _finding(
    evidence: Evidence, settings: Settings, tokenizer: Tokenizer | None, structure: Structure, looked: list[_Looked]
) -> Finding:
    table, count = _table(looked), len(looked)
    template = tokenizer.files.template if tokenizer is not None else None
    shares = {kind: sum(one.has(kind) for one in looked) for kind in _ORDER}
    kind, proven = _told(looked, shares)
    model = signs_of(evidence, settings).kind if kind == "missing" else None
    if kind == "missing" and model == "base":
        kind = ""
    if not kind:
        if not structure.own or template is None:
            return _unknown(tokenizer, _NO_TEMPLATE)
        bare = shares["missing"] if model == "base" else 0
        told = Text(
            f"{counted(count - bare, 'prompt')} {'follows' if count - bare == 1 else 'follow'} the tokenizer's chat"
            " template",
            f"{count - bare} 条 prompt 符合 tokenizer 的 chat template",
        )
        if bare:
            rest = Text(
                f"{counted(bare, 'prompt')} {'holds' if bare == 1 else 'hold'} no template, as fits a base model",
                f"{bare} 条 prompt 不带模板，符合 base 模型的用法",
            )
            told = rest if bare == count else Text(f"{told.en}; {rest.en}", f"{told.zh}；{rest.zh}")
        return found(
            Verdict.OK,
            "matches",
            f"{told.en}.",
            f"{told.zh}。",
            citations=(cite(looked[0].view.path, f"sample {looked[0].view.index}: {looked[0].prompt.text[-120:]!r}"),),
            tables=(table,),
        )
    sure = proven and structure.own and (kind != "missing" or model == "instruct")
    mine = [one for one in looked if one.has(kind)]
    flaw = next(flaw for flaw in mine[0].flaws if flaw.kind == kind)
    blame, blamed = _blame(kind, settings)
    limit = limits.FLAWED_SHARE if sure else limits.SOME_SHARE
    return found(
        Verdict.PROBLEM if sure else Verdict.WARNING,
        kind,
        f"{len(mine)} of {counted(count, 'prompt')} break the chat template: {flaw.what.en}{blame.en}.",
        f"{count} 条 prompt 中有 {len(mine)} 条不符合 chat template：{flaw.what.zh}{blame.zh}。",
        citations=(*_proofs(mine, kind), *blamed),
        measurements=(limit.measure("prompts with this flaw", len(mine) / count),),
        tables=(table,),
    )


def _told(looked: list[_Looked], shares: dict[str, int]) -> tuple[str, bool]:
    """Return the flaw to tell, "" for none, and whether it is beyond doubt."""
    count = len(looked)
    for kind in _ORDER:
        proven = sum(any(flaw.kind == kind and flaw.proven for flaw in one.flaws) for one in looked)
        if proven >= limits.FLAWED_SHARE.value * count:
            return kind, True
    for kind in _ORDER:
        enough = shares[kind] >= min(limits.FEW.value, count)
        if enough and shares[kind] > limits.SOME_SHARE.value * count:
            return kind, False
    return "", False


def _proofs(mine: list[_Looked], kind: str) -> tuple[Citation, ...]:
    proofs = []
    for one in mine[:3]:
        flaw = next(flaw for flaw in one.flaws if flaw.kind == kind)
        proofs.append(cite(one.view.path, f"sample {one.view.index}: {flaw.shown!r}", count=1))
    return tuple(proofs)


def _blame(kind: str, settings: Settings) -> tuple[Text, tuple[Citation, ...]]:
    """Return what the flags say about a flaw: which one to change, as words behind the summary, and its line."""
    applied, line = switched(settings, "apply-chat-template")
    path, kwargs = given(settings, "chat-template-path"), given(settings, "apply-chat-template-kwargs")
    if kind == "thinking" and kwargs is not None:
        words = Text("; see --apply-chat-template-kwargs", "；见 --apply-chat-template-kwargs")
        return words, (kwargs.citation,)
    if path is not None and kind in ("foreign", "missing", "not-as-rendered"):
        words = Text("; --chat-template-path gives another template", "；--chat-template-path 给了另一个模板")
        return words, (path.citation,)
    if kind in ("double", "foreign", "no-generation-prompt") and applied:
        key = given(settings, "input-key")
        named = "" if key is None else f" (--input-key {key.shown})"
        words = Text(
            f"; the data{named} hold a template already and --apply-chat-template adds one",
            f"；数据{named}已带模板，又加了 --apply-chat-template",
        )
        return words, _lines(line)
    if kind == "missing" and applied is False:
        return Text("; --apply-chat-template is not given", "；没有给 --apply-chat-template"), ()
    if kind in ("double", "foreign", "no-generation-prompt") and applied is False:
        words = Text(
            "; the data hold it so, --apply-chat-template is not given", "；数据本身如此，没有给 --apply-chat-template"
        )
        return words, ()
    return Text("", ""), ()


def _lines(one: Given | None) -> tuple[Citation, ...]:
    return () if one is None else (one.citation,)


def _unknown(tokenizer: Tokenizer | None, why: Text) -> Finding:
    if tokenizer is not None and tokenizer.vocabulary is None:
        why = Text(f"{why.en}; {tokenizer.why}", f"{why.zh}；{tokenizer.why}")
    return unknown(
        f"Whether the prompts follow the template cannot be told: {why.en}.",
        f"无法判断 prompt 是否符合模板：{why.zh}。",
        settle_en="Attach --hf-checkpoint's folder with tokenizer.json and tokenizer_config.json.",
        settle_zh="附上 --hf-checkpoint 目录（含 tokenizer.json 和 tokenizer_config.json）。",
        slots=("hf_checkpoint",),
    )


def _table(looked: list[_Looked]) -> Table:
    ranked = sorted(looked, key=lambda one: not one.flaws)[:_SHOWN]
    rows = tuple(
        (
            str(one.view.index),
            "tokens" if one.prompt.decoded else "text",
            ", ".join(sorted({flaw.kind for flaw in one.flaws})) or "-",
            sanitise(one.prompt.text[:200].replace("\n", "\\n"), 50),
            sanitise(one.prompt.text[-200:].replace("\n", "\\n"), 160)[-40:],
        )
        for one in ranked
    )
    return Table(Text("Prompts", "各样本的 prompt"), ("sample", "from", "flaws", "begins", "ends"), rows)

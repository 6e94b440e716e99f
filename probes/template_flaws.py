"""What is wrong with one prompt, held against the structure of the tokenizer's own chat template.

Each check answers for one sample; the probe decides from how many samples share a flaw. Invariants: a flaw is `proven`
only where no conversation rendered with this template could look so; the text looked at is that of the tokens where a
vocabulary is at hand, else the prompt's string.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from probes.readers.vocabulary import Vocabulary, VocabularyError
from probes.template_families import BEGINNINGS, FAMILIES, family_of
from probes.template_samples import View
from probes.template_structure import Structure
from runbook.text import Text

AROUND = 60


@dataclass(frozen=True)
class Flaw:
    """One flaw of one sample. kind: the probe's answer for it. shown: the place, as raw text."""

    kind: str
    what: Text
    shown: str
    proven: bool = True


@dataclass(frozen=True)
class Prompt:
    """The prompt of a sample as text. decoded: it is that of the tokens."""

    text: str
    decoded: bool


def prompt_of(view: View, vocabulary: Vocabulary | None) -> Prompt | None:
    """Return the prompt's text; None when neither tokens nor a string tell it."""
    if vocabulary is not None and view.prompt:
        try:
            return Prompt(vocabulary.decode(view.prompt), True)
        except VocabularyError:
            pass
    return None if view.text is None else Prompt(view.text, False)


def flaws_of(view: View, prompt: Prompt, structure: Structure, vocabulary: Vocabulary | None) -> list[Flaw]:
    """Return the flaws of one sample; with tokens of another tokenizer nothing else can be told."""
    if vocabulary is not None and (flaw := _other_tokens(view, prompt, vocabulary)) is not None:
        return [flaw]
    checks = (
        _split(view, prompt, structure, vocabulary) if vocabulary is not None else None,
        _twice(view, prompt, structure, vocabulary),
        _other_template(prompt, structure),
        _no_answer_prompt(view, prompt, structure),
        _think_twice(view, prompt),
    )
    return [flaw for flaw in checks if flaw is not None]


def _other_tokens(view: View, prompt: Prompt, vocabulary: Vocabulary) -> Flaw | None:
    """Tell tokens that are not those of the text: ids beyond the vocabulary, or other words on decoding."""
    beyond = [number for number in view.prompt if number >= vocabulary.size]
    if beyond:
        what = Text("ids beyond the vocabulary", "有超出词表的 id")
        return Flaw("tokens-differ", what, f"id {beyond[0]} in the prompt, the vocabulary has {vocabulary.size}")
    if view.text is None or not prompt.decoded or view.multimodal:
        return None
    mine, theirs = squash(view.text), squash(prompt.text)
    if not mine or mine in theirs or theirs in mine:
        return None
    what = Text("its tokens spell another text", "token 解码后是另一段文本")
    at = next((n for n, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
    shown = f"prompt {mine[at : at + AROUND]!r}, its tokens {theirs[at : at + AROUND]!r}"
    return Flaw("tokens-differ", what, shown, proven=_answer_differs(view, vocabulary))


def _answer_differs(view: View, vocabulary: Vocabulary) -> bool:
    """Return whether the tokens of the response spell another text too: then they are of another tokenizer."""
    if not view.response or not view.answer:
        return False
    try:
        spelled = squash(vocabulary.decode(view.answer))
    except VocabularyError:
        return True
    said = squash(view.response)
    return bool(said) and said not in spelled and spelled not in said and said[:16] != spelled[:16]


def squash(text: str) -> str:
    """Return a text without blanks and replacement characters, in one normal form: what tokenizers may change."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\ufffd", "").split())


def _split(view: View, prompt: Prompt, structure: Structure, vocabulary: Vocabulary) -> Flaw | None:
    """Tell markers that were encoded letter by letter instead of as their one token."""
    for mark in structure.marks:
        number = vocabulary.id_of(mark)
        if number is None or number not in vocabulary.added or not prompt.decoded:
            continue
        if mark in prompt.text and number not in view.prompt:
            what = Text(f"{mark} is spelled out in pieces", f"{mark} 被拆成了普通 token")
            return Flaw("split", what, f"{around(prompt.text, mark)!r} holds no token {number}")
    return None


def _twice(view: View, prompt: Prompt, structure: Structure, vocabulary: Vocabulary | None) -> Flaw | None:
    """Tell a user's turn whose content begins like a conversation, and a doubled first token."""
    bos = structure.bos
    if bos:
        number = vocabulary.id_of(bos) if vocabulary is not None else None
        ids = number is not None and view.prompt[:2] == [number, number]
        if ids or (not prompt.decoded and prompt.text.startswith(bos + bos)):
            return Flaw("double", Text(f"it begins with {bos} twice", f"开头有两个 {bos}"), prompt.text[: 2 * AROUND])
    starts = {bos, structure.start.strip(), structure.system.strip(), structure.user.strip()}
    starts |= {opener for family in FAMILIES for opener in (family.user, family.assistant)} - {structure.answer_mark}
    inner = "|".join(re.escape(start) for start in sorted(starts - {""}, key=len, reverse=True))
    begins = "|".join(re.escape(beginning) for beginning in BEGINNINGS)
    hit = re.search(re.escape(structure.user.strip()) + rf"\s*(?:(?:{begins})\s*){{0,4}}(?:{inner})", prompt.text)
    if hit is None:
        return None
    what = Text("a user's turn holds a whole templated conversation", "user 轮次里又套了一整段已套模板的对话")
    return Flaw("double", what, prompt.text[hit.start() : hit.end() + AROUND], structure.distinct)


def _other_template(prompt: Prompt, structure: Structure) -> Flaw | None:
    """Tell a prompt without any marker of the template: with another family's, or with none at all."""
    if any(mark in prompt.text for mark in structure.marks):
        return None
    family = family_of(prompt.text)
    if family is not None:
        what = Text(f"it holds markers of {family.name} only", f"只有 {family.name} 的标记")
        opener = family.user if family.user in prompt.text else family.assistant
        return Flaw("foreign", what, around(prompt.text, opener))
    what = Text("it holds no marker of the template", "没有任何模板标记")
    return Flaw("missing", what, prompt.text[: 2 * AROUND], prompt.decoded)


def _no_answer_prompt(view: View, prompt: Prompt, structure: Structure) -> Flaw | None:
    """Tell a prompt whose last turn is the user's, though the template opens the assistant's."""
    asked = view.text is not None or view.messages is not None
    if not asked or view.trains_on_data or not any(mark in prompt.text for mark in structure.marks):
        return None
    mine, theirs = prompt.text.rfind(structure.answer_mark), prompt.text.rfind(structure.user.strip())
    if theirs < 0 or mine > theirs or structure.answer_mark in structure.user:
        return None
    what = Text("it ends without the assistant's opener", "结尾缺少 assistant 的开头（generation prompt）")
    return Flaw("no-generation-prompt", what, prompt.text[-2 * AROUND :], structure.distinct)


def _think_twice(view: View, prompt: Prompt) -> Flaw | None:
    """Tell a think tag that the prompt opens and the response opens again."""
    if not prompt.text.rstrip().endswith("<think>") or not view.response.lstrip().startswith("<think>"):
        return None
    what = Text("prompt and response both open <think>", "prompt 和回复都以 <think> 开头")
    return Flaw("thinking", what, prompt.text[-AROUND:] + view.response[:AROUND], proven=False)


def thinking_flaw(prompt: Prompt, structure: Structure, expected: bool | None) -> Flaw | None:
    """Tell a prompt that ends as with the other position of the thinking switch than `expected`."""
    if expected is None or not structure.thinking_on or not structure.thinking_off:
        return None
    end = prompt.text.rstrip()
    shorter, longer = sorted((True, False), key=lambda on: len(_switched(structure, on=on)))
    if not end.endswith(_switched(structure, on=longer)):
        if not end.endswith(_switched(structure, on=shorter)):
            return None
        longer = shorter
    if longer is expected:
        return None
    words = ("on", "off") if expected else ("off", "on")
    what = Text(
        f"thinking was asked to be {words[0]}, the prompt ends as with {words[1]}",
        f"要求 thinking {words[0]}，prompt 结尾却是 {words[1]}",
    )
    return Flaw("thinking", what, end[-2 * AROUND :], proven=False)


def _switched(structure: Structure, *, on: bool) -> str:
    return (structure.thinking_on if on else structure.thinking_off).rstrip()


_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


def rendering_flaw(prompt: Prompt, rendered: str) -> Flaw | None:
    """Tell tokens that differ from the conversation rendered as a whole, thoughts and blanks aside."""
    mine, theirs = (squash(_THOUGHT.sub("", text)) for text in (prompt.text, rendered))
    if mine == theirs:
        return None
    at = next((n for n, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), min(len(mine), len(theirs)))
    what = Text("its tokens are not the conversation as the template renders it", "token 与模板渲染整段对话的结果不同")
    shown = f"tokens {mine[max(0, at - 20) : at + AROUND]!r}, template {theirs[max(0, at - 20) : at + AROUND]!r}"
    return Flaw("not-as-rendered", what, shown, proven=False)


def around(text: str, part: str) -> str:
    """Return the part of a text around the first occurrence of `part`."""
    at = max(text.find(part), 0)
    return text[max(0, at - AROUND // 2) : at + AROUND]

"""The turns of a conversation in a list of token ids, and what a loss mask does in each.

Turns are found by the ids of their openers (`<|im_start|>` and `user`), never by searching decoded text, so that a
place is exact to the token. slime's rule for SFT (utils/mask_utils.py): the opener of an assistant's turn is not
counted, its content, its end token and the line break behind it are; all other turns are not. In a rollout the tokens
that the engine drew count, and slime's examples give every other token the log-prob 0. Invariants: what could not be
told from a turn that the model made up itself is not `proven`.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.readers.vocabulary import Vocabulary, VocabularyError
from probes.template_samples import View
from probes.template_structure import Structure
from probes.thresholds import template as limits
from runbook.text import Text

_TAGS = ("<tool_response>", "<information>", "<interpreter>", "<observation>", "<output>", "<result>", "<tool_output>")
"""What tool output stands in where the rollout function, not the template, wraps it (slime's examples and others)."""
_EDGE = 2
"""Tokens at the edge of a turn that a mask may be off by, rather than counting or leaving out the turn."""


@dataclass(frozen=True)
class Turn:
    """One turn.

    role: "user", "assistant", "system" or "tool". start: of its opener; content: behind it; end: the index behind its
    last token, where the next opener begins.
    """

    role: str
    start: int
    content: int
    end: int


@dataclass(frozen=True)
class MaskFlaw:
    """One flaw of one sample's mask. kind: the probe's answer. at: index of a token in the response."""

    kind: str
    what: Text
    at: int
    proven: bool


class Turns:
    """Finds turns with one vocabulary and one template."""

    def __init__(self, structure: Structure, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.structure = structure
        parts = (
            ("tool", structure.tool),
            ("system", structure.system),
            ("user", structure.user),
            ("assistant", structure.answer_mark),
        )
        self._openers = [(role, ids) for role, text in parts if (ids := self._ids(text.strip()))]
        self._openers.sort(key=lambda one: -len(one[1]))
        asked = structure.generation[0] if structure.generation else structure.assistant
        self._blank = asked.partition(structure.answer_mark)[2][:1].isspace()
        end = self._ids(structure.end_assistant.strip())
        self.end_token = end[0] if end and end[0] in vocabulary.added else None

    def _ids(self, text: str) -> list[int]:
        """Return the ids of an opener; [] when it does not begin with a marker of its own, as it may then be prose."""
        try:
            ids = self.vocabulary.encode(text) if text else []
        except VocabularyError:
            return []
        return ids if ids and ids[0] in self.vocabulary.added else []

    @property
    def usable(self) -> bool:
        """Return whether the turns of user and assistant can be told apart by ids."""
        return {"user", "assistant"} <= {role for role, _ in self._openers}

    def of(self, tokens: list[int]) -> list[Turn]:
        """Return the turns, in order. What stands before the first opener is no turn."""
        starts: list[tuple[int, int, str]] = []
        first = {ids[0] for _, ids in self._openers}
        for place, token in enumerate(tokens):
            if token not in first:
                continue
            for role, ids in self._openers:
                if tokens[place : place + len(ids)] == ids:
                    starts.append((place, place + len(ids), role))
                    break
        ends = [start for start, _, _ in starts[1:]] + [len(tokens)]
        return [Turn(role, a, self._behind(tokens, b), e) for (a, b, role), e in zip(starts, ends, strict=False)]

    def _behind(self, tokens: list[int], place: int) -> int:
        """Return the first index of the content: a blank that the prompt for an answer ends with is passed over."""
        blank = self._blank and place < len(tokens) and not self.text(tokens[place : place + 1]).strip()
        return place + 1 if blank else place

    def text(self, tokens: list[int]) -> str:
        """Return the text of tokens, "?" where they cannot be decoded."""
        try:
            return self.vocabulary.decode(tokens)
        except VocabularyError:
            return "?"


def mask_flaws(view: View, turns: Turns) -> list[MaskFlaw]:
    """Return what is wrong with the mask of one sample that has one of the right length."""
    cut, mask = len(view.prompt), view.mask or []
    flaws: list[MaskFlaw] = []
    for turn in turns.of([*view.prompt, *view.answer]):
        a, b = max(turn.start - cut, 0), turn.end - cut
        counted = [place for place in range(a, b) if mask[place]]
        if not counted:
            continue
        if turn.role == "assistant":
            flaws += _assistant(view, turns, turn, cut)
        elif len(counted) <= _EDGE < b - a and turn.start >= cut:
            if turns.end_token is not None and not _drawn(view, counted):
                en, zh = "the mask counts the edge of another turn", "mask 多算了另一轮的边缘"
                flaws.append(_edge(counted[0], en, zh, proven=view.trains_on_data))
        elif (proven := _not_drawn(view, a, b)) is not None:
            flaws.append(_of_role(turn.role, turns.text(view.answer[a:b]), counted[0], proven=proven))
    return flaws or _wrapped_output(view, turns)


def _drawn(view: View, places: list[int]) -> bool:
    """Return whether the engine drew these tokens: its log-probs are known and not 0 there."""
    values = view.log_probs
    return values is not None and len(values) == len(view.answer) and any(values[place] != 0.0 for place in places)


def _of_role(role: str, text: str, at: int, *, proven: bool) -> MaskFlaw:
    if role == "tool" or any(tag in text for tag in _TAGS):
        return MaskFlaw("tool-output-trained", Text("tool output is trained on", "工具输出被计入 loss"), at, proven)
    what = Text(f"a {role}'s turn is trained on", f"{role} 轮次被计入 loss")
    return MaskFlaw("prompt-trained", what, at, proven)


def _edge(at: int, en: str, zh: str, *, proven: bool) -> MaskFlaw:
    return MaskFlaw("off-by-one", Text(en, zh), at, proven)


def _not_drawn(view: View, a: int, b: int) -> bool | None:
    """Return whether the tokens certainly did not come from the engine; None when they certainly did."""
    if view.trains_on_data:
        return True
    if view.log_probs is None or len(view.log_probs) != len(view.answer):
        return False
    silent = sum(value == 0.0 for value in view.log_probs[a:b])
    share = silent / max(b - a, 1)
    if share >= limits.SILENT_SHARE.value and b - a >= limits.SILENT_SPAN.value:
        return silent < sum(value == 0.0 for value in view.log_probs) or silent < len(view.log_probs)
    return None


def _assistant(view: View, turns: Turns, turn: Turn, cut: int) -> list[MaskFlaw]:
    """Hold the edges of an assistant's turn that is counted against slime's rule."""
    mask, data = view.mask or [], view.trains_on_data
    start, begins = turn.start - cut, turn.content - cut
    if start >= 0 and any(mask[start:begins]) and not _drawn(view, list(range(start, begins))):
        en, zh = "the mask counts the assistant's opener", "mask 把 assistant 的开头也算了"
        return [_edge(start, en, zh, proven=data)]
    begins = max(begins, 0)
    counted = next((place for place in range(begins, turn.end - cut) if mask[place]), begins)
    left_out = turns.text(view.answer[begins:counted]).strip() if 0 < counted - begins <= _EDGE else ""
    if left_out and left_out not in ("<think>", "<think></think>"):
        en, zh = "the mask leaves out the first token of an answer", "mask 漏掉了回答的第一个 token"
        return [_edge(begins, en, zh, proven=data)]
    ends = [place for place in range(counted, turn.end - cut) if view.answer[place] == turns.end_token]
    if ends and not mask[ends[-1]] and ends[-1] > 0 and mask[ends[-1] - 1]:
        en, zh = "the mask leaves out the end token", "mask 漏掉了结束 token，模型学不会停止"
        return [_edge(ends[-1], en, zh, proven=False)]
    return []


def _wrapped_output(view: View, turns: Turns) -> list[MaskFlaw]:
    """Tell counted tokens that the engine did not draw, in the tags of a rollout function's own."""
    values, mask = view.log_probs, view.mask or []
    if values is None or len(values) != len(mask) or not any(values):
        return []
    place = 0
    while place < len(values):
        stop = place
        while stop < len(values) and values[stop] == 0.0 and mask[stop]:
            stop += 1
        if stop - place >= limits.SILENT_SPAN.value:
            text = turns.text(view.answer[place:stop])
            if any(tag in text for tag in _TAGS):
                return [_of_role("tool", text, place, proven=True)]
        place = stop + 1
    return []


def masked_turns(view: View, turns: Turns) -> int:
    """Return how many of a conversation's assistant turns the mask leaves out though the data do not ask for it."""
    if not view.trains_on_data or view.messages is None:
        return 0
    cut, mask = len(view.prompt), view.mask or []
    spans = [turn for turn in turns.of([*view.prompt, *view.answer]) if turn.role == "assistant" and turn.start >= cut]
    left_out = sum(not any(mask[turn.start - cut : turn.end - cut]) for turn in spans)
    said = [message for message in view.messages if message["role"] == "assistant"]
    asked = len([message for message in said if message.get("step_loss_mask", 1) != 1])
    return max(left_out - asked, 0)

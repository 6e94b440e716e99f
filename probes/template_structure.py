"""What a chat template puts around the turns of a conversation, found by rendering short conversations with it.

Nothing is known of families here: the parts are cut out of the template's own output, around contents that occur
nowhere else. Invariants: a part that the template does not show (it refuses system or tool messages, it has no
generation prompt) is ""; without a user and an assistant opener there is no structure; the template is rendered in the
sandboxed process of `readers.chat_template` alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from probes.readers.chat_template import Call, Rendering, render
from probes.template_families import Family

_USER, _ANSWER, _NEXT, _SYSTEM, _RESULT = "qvUserOneqv", "qvAnswerqv", "qvUserTwoqv", "qvSystemqv", "qvResultqv"
_ON = (("enable_thinking", True), ("thinking", True))
_OFF = (("enable_thinking", False), ("thinking", False))


@dataclass(frozen=True)
class Structure:
    """The parts of a template, as strings.

    user, assistant, system, tool: what opens a turn of that role, from behind the end of the turn before. end_user,
    end_assistant: what closes one. generation: the prompts for an answer, the default first. thinking_on, thinking_off:
    the one with thinking switched on or off, "" when the template has no such switch. bos: the token that every
    conversation begins with. start: all that stands before the first user's opener (a default system turn). own: made
    from the checkpoint's template, not from a family's markers.
    """

    user: str
    assistant: str
    system: str = ""
    tool: str = ""
    end_user: str = ""
    end_assistant: str = ""
    generation: tuple[str, ...] = ()
    thinking_on: str = ""
    thinking_off: str = ""
    bos: str = ""
    start: str = ""
    own: bool = True

    @property
    def answer_mark(self) -> str:
        """Return what every answer of the assistant begins with, whatever thinking switch or channel follows."""
        shared = self.assistant
        for one in self.generation:
            shared = _common_end(shared[::-1], one[::-1])[::-1]
        return shared.strip() or self.assistant.strip()

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the markers (`<|im_start|>`, `[INST]`) in the openers; the openers themselves when there is none."""
        openers = (self.user.strip(), self.assistant.strip())
        marks = {mark for opener in openers for mark in _MARK.findall(opener)} - {self.bos}
        return tuple(sorted(marks or set(openers)))

    @property
    def distinct(self) -> bool:
        """Return whether turns begin with markers that ordinary text does not hold (`User:` is none)."""
        return all(_MARK.search(mark) for mark in self.marks)


_TURN_MARK = re.compile(r"<[|｜][^<>|｜]{1,40}[|｜]>")
_MARK = re.compile(r"<[|｜][^<>|｜]{1,40}[|｜]>|<\w{1,40}>|\[/?[A-Z_]{2,40}\]|<\|\w{1,40}>|<\w{1,40}\|>|\]~b\]")


def of_family(family: Family) -> Structure:
    """Return the little that a family's markers tell, where the checkpoint's own template is not at hand."""
    return Structure(family.user, family.assistant, end_user=family.end, end_assistant=family.end, own=False)


def _message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _tool_turns() -> list[dict[str, Any]]:
    call = {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    asked = {**_message("assistant", ""), "tool_calls": [call]}
    result = {**_message("tool", _RESULT), "name": "f", "tool_call_id": "call00001"}
    return [_message("user", _USER), asked, result]


_ONE = [_message("user", _USER)]
_CALLS = (
    Call(_ONE),
    Call(_ONE, True),
    Call([*_ONE, _message("assistant", _ANSWER), _message("user", _NEXT)]),
    Call([*_ONE, _message("assistant", _ANSWER)]),
    Call([_message("system", _SYSTEM), *_ONE]),
    Call(_ONE, True, _ON),
    Call(_ONE, True, _OFF),
    Call(_tool_turns()),
)


@dataclass(frozen=True)
class Read:
    """A template that was rendered: its structure, or why there is none; and the renderings that were asked for."""

    structure: Structure | None
    why: str
    renderings: tuple[Rendering, ...]


def read_structure(template: str, special: dict[str, str], more: Sequence[Call] = ()) -> Read:
    """Render a template's probes and `more` of the caller's in one go. special: token texts by role."""
    said = render(template, special, (*_CALLS, *more))
    head, rest = said[: len(_CALLS)], tuple(said[len(_CALLS) :])
    if not head[0].good:
        return Read(None, f"{head[0].fault}: {head[0].text}".rstrip(": "), rest)
    structure = _cut([one.text if one.good else "" for one in head], special.get("bos_token", ""))
    return Read(structure, "" if structure else "it does not show where turns begin", rest)


def _cut(texts: list[str], bos: str) -> Structure | None:
    plain, asked, turns, answered, with_system, thinking, silent, tools = texts
    before, found, end_user = plain.partition(_USER)
    if not found:
        return None
    generations = tuple(_behind(text, end_user) for text in (asked, thinking, silent))
    end_assistant = answered.partition(_ANSWER)[2]
    between, found, _ = turns.partition(_NEXT)
    user = between.partition(_ANSWER)[2].removeprefix(end_assistant) if found else ""
    user = user or _common_end(before, between)
    assistant = _behind(turns.partition(_ANSWER)[0], end_user) if _ANSWER in turns else generations[0]
    start = bos if bos and plain.startswith(bos) else ""
    system = with_system.partition(_SYSTEM)[0].removeprefix(start) if _SYSTEM in with_system else ""
    if not assistant.strip():  # as in Mistral's: what closes the user's turn opens the answer
        assistant, end_user = end_user, ""
    if not user.strip() or not assistant.strip():
        return None
    default, on, off = generations
    switch = on != off
    return Structure(
        user=user,
        assistant=assistant,
        system=system,
        tool=_tool_opener(tools, end_assistant),
        end_user=end_user,
        end_assistant=end_assistant,
        generation=tuple(dict.fromkeys(one for one in (default, on, off) if one)),
        thinking_on=on if switch else "",
        thinking_off=off if switch else "",
        bos=start,
        start=before.removesuffix(user),
    )


def _behind(text: str, end_user: str) -> str:
    """Return what follows the end of the user's turn."""
    return text.partition(_USER)[2].removeprefix(end_user)


def _common_end(one: str, other: str) -> str:
    length = 0
    while length < min(len(one), len(other)) and one[-1 - length] == other[-1 - length]:
        length += 1
    return one[len(one) - length :] if length else ""


def _tool_opener(tools: str, end_assistant: str) -> str:
    """Return what stands between the end of a tool call's turn and the tool's answer."""
    before, found, _ = tools.partition(_RESULT)
    if not found:
        return ""
    mark = end_assistant.strip()
    if mark and mark in before:
        return before.rpartition(mark)[2]
    marks = [hit.start() for hit in _TURN_MARK.finditer(before)]
    return before[marks[-1] :] if marks else ""

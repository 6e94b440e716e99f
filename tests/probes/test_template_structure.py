"""The parts of a template are cut out of its own output, for every family; a template without turns has none."""

from __future__ import annotations

import pytest

from probes.readers.chat_template import Call
from probes.template_families import FAMILIES as PUBLISHED
from probes.template_families import family_of
from probes.template_structure import Structure, read_structure
from tests.probes.tiny_tokenizers import CHATML, DEEPSEEK, FAMILIES, GEMMA, GLM, KIMI, LLAMA3, MISTRAL, Family

PARTS = [
    (CHATML, "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_start|>system\n", "<|im_end|>\n"),
    (
        LLAMA3,
        "<|start_header_id|>user<|end_header_id|>\n\n",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|start_header_id|>system<|end_header_id|>\n\n",
        "<|eot_id|>",
    ),
    (GLM, "<|user|>\n", "<|assistant|>\n", "[gMASK]<sop><|system|>\n", ""),
    (DEEPSEEK, "<｜User｜>", "<｜Assistant｜>", "", "<｜end▁of▁sentence｜>"),
    (GEMMA, "<start_of_turn>user\n", "<start_of_turn>model\n", "", "<end_of_turn>\n"),
    (MISTRAL, "[INST] ", " [/INST]", "", "</s>"),
    (
        KIMI,
        "<|im_user|>user<|im_middle|>",
        "<|im_assistant|>assistant<|im_middle|>",
        "<|im_system|>system<|im_middle|>",
        "<|im_end|>",
    ),
]


def structure(family: Family, template: str = "") -> Structure:
    """Return the structure of a family's template."""
    read = read_structure(template or family.template, {"bos_token": family.bos, "eos_token": family.document_end})
    assert read.structure is not None, read.why
    return read.structure


@pytest.mark.parametrize(("family", "user", "assistant", "system", "end"), PARTS, ids=[part[0].name for part in PARTS])
def test_openers_and_ends(family: Family, user: str, assistant: str, system: str, end: str) -> None:
    """What opens a turn of each role, what closes an answer, and the token that begins the conversation."""
    found = structure(family)
    assert (found.user, found.assistant, found.system, found.end_assistant) == (user, assistant, system, end)
    assert found.bos == family.bos
    assert found.distinct
    assert all(mark in family.prompt("x") for mark in found.marks)
    assert family.prompt("x").removesuffix("<think>\n").rstrip().endswith(found.answer_mark)


def test_switches_and_tools() -> None:
    """The thinking switch shows in the prompt for an answer, tool results in a turn of their own."""
    found = structure(CHATML)
    assert found.thinking_on == "<|im_start|>assistant\n"
    assert found.thinking_off == "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert found.tool.strip() == "<|im_start|>user\n<tool_response>"
    assert structure(GLM).tool == "<|observation|>\n"
    assert structure(DEEPSEEK).generation == ("<｜Assistant｜><think>\n",)
    assert structure(LLAMA3).thinking_on == ""


def test_a_default_system_turn_is_no_part_of_the_user_s_opener() -> None:
    """Qwen 2.5's template begins with a system turn of its own where the conversation has none."""
    default = "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}{% endif %}"
    found = structure(CHATML, default + CHATML.template)
    assert found.user == "<|im_start|>user\n"
    assert found.start == "<|im_start|>system\nHelp.<|im_end|>\n"


@pytest.mark.parametrize("template", ["constant", "{{ messages[0].content }}", "{% for", "{{ raise_exception('no') }}"])
def test_a_template_without_turns_has_no_structure(template: str) -> None:
    """Nothing is guessed; the reason is told."""
    read = read_structure(template, {}, [Call([])])
    assert read.structure is None
    assert read.why
    assert len(read.renderings) == 1


def test_openers_in_words_are_not_distinct() -> None:
    """`User:` occurs in prose."""
    template = (
        "{% for m in messages %}{{ m.role | capitalize }}: {{ m.content }}\\n{% endfor %}"
        "{% if add_generation_prompt %}Assistant:{% endif %}"
    )
    assert not structure(MISTRAL, template).distinct


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_published_markers_tell_the_family(family: Family) -> None:
    """A prompt of each family is told by its markers, prose and markup are not."""
    told = family_of(family.prompt("x"))
    assert told is not None
    assert told.user in family.prompt("x")
    for text in ("User: hi", "<b>bold</b> <user>", "a[0] [INS] <|x|>", "if a < b | c > d: return"):
        assert family_of(text) is None


def test_markers_of_families_differ() -> None:
    """No opener of one family is part of another's, or a prompt would be told wrongly."""
    openers = [opener for family in PUBLISHED for opener in (family.user, family.assistant)]
    assert len(openers) == len(set(openers))
    assert not [(one, two) for one in openers for two in openers if one != two and one in two]

"""How the families of chat templates write a turn: what tells one from another in a prompt whose template is not known.

The strings are those of the published templates. Invariant: a marker belongs to one entry, or to an entry that names
all the families that share it; none of them occurs in ordinary prose.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One way to write turns. user, assistant: the openers of their turns. end: what closes a turn, "" when nothing."""

    name: str
    user: str
    assistant: str
    end: str = ""


FAMILIES = (
    Family("ChatML (Qwen, Yi, SmolLM)", "<|im_start|>user", "<|im_start|>assistant", "<|im_end|>"),
    Family(
        "Llama 3",
        "<|start_header_id|>user<|end_header_id|>",
        "<|start_header_id|>assistant<|end_header_id|>",
        "<|eot_id|>",
    ),
    Family("Llama 4", "<|header_start|>user<|header_end|>", "<|header_start|>assistant<|header_end|>", "<|eot|>"),
    Family("GLM, Phi-3 or Zephyr", "<|user|>", "<|assistant|>"),
    Family("DeepSeek", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    Family("Gemma", "<start_of_turn>user", "<start_of_turn>model", "<end_of_turn>"),
    Family("Gemma 4", "<|turn>user", "<|turn>model", "<turn|>"),
    Family("Mistral or Llama 2", "[INST]", "[/INST]"),
    Family("Kimi", "<|im_user|>user<|im_middle|>", "<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"),
    Family("gpt-oss (harmony)", "<|start|>user<|message|>", "<|start|>assistant", "<|end|>"),
    Family("MiniMax", "]~b]user", "]~b]ai", "[e~["),
    Family(
        "Cohere",
        "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>",
    ),
    Family("Granite", "<|start_of_role|>user", "<|start_of_role|>assistant", "<|end_of_text|>"),
)

BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "[gMASK]", "<sop>")
"""What conversations of these families begin with, before the first turn."""


def family_of(text: str) -> Family | None:
    """Return the family whose openers a text holds, the one of the first opener; None when it holds none."""
    places = [
        (place, -len(opener), family)
        for family in FAMILIES
        for opener in (family.user, family.assistant)
        if (place := text.find(opener)) >= 0
    ]
    return min(places, key=lambda one: one[:2])[2] if places else None

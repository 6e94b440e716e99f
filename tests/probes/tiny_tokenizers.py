"""Small tokenizers of several families, made with the `tokenizers` library, and dumps of samples made with them.

The templates are written here in the manner of the families; what a prompt must look like is written out by hand
beside each, so that nothing is compared with the output of the code under test.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tests.probes.readers.pickles import torch_zip


@dataclass(frozen=True)
class Family:
    """One way to write conversations. prompt: what a prompt of one user's turn must be. end: closes an answer."""

    name: str
    template: str
    prompt: Callable[[str], str]
    marks: tuple[str, ...]
    end: str
    document_end: str
    bos: str = ""

    @property
    def special(self) -> tuple[str, ...]:
        """Return all added tokens; the place of each is its id behind the 256 bytes."""
        return tuple(dict.fromkeys((*filter(None, (self.bos,)), self.document_end, *self.marks, self.end, *THOUGHT)))


THOUGHT = ("<think>", "</think>")

CHATML = Family(
    "chatml",
    "{%- for m in messages %}"
    "{%- if m.role == 'tool' %}"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}"
    "{{- '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}"
    "{%- else %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{%- endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
    "{%- endif %}",
    lambda user: f"<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
    ("<|im_start|>",),
    "<|im_end|>",
    "<|endoftext|>",
)
LLAMA3 = Family(
    "llama3",
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    lambda user: (
        f"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{user}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    ("<|start_header_id|>", "<|end_header_id|>"),
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|begin_of_text|>",
)
GLM = Family(
    "glm",
    "[gMASK]<sop>{% for m in messages %}"
    "{{ '<|observation|>' if m.role == 'tool' else '<|' + m.role + '|>' }}{{ '\\n' + m.content }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
    lambda user: f"[gMASK]<sop><|user|>\n{user}<|assistant|>",
    ("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|observation|>"),
    "<|user|>",
    "<|endoftext|>",
)
DEEPSEEK = Family(
    "deepseek",
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '<｜User｜>' + m.content }}"
    "{% elif m.role == 'assistant' %}{{ '<｜Assistant｜>' + m.content + '<｜end▁of▁sentence｜>' }}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}",
    lambda user: f"<｜begin▁of▁sentence｜><｜User｜>{user}<｜Assistant｜><think>\n",
    ("<｜User｜>", "<｜Assistant｜>"),
    "<｜end▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜begin▁of▁sentence｜>",
)
GEMMA = Family(
    "gemma",
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + m.content + '<end_of_turn>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
    lambda user: f"<bos><start_of_turn>user\n{user}<end_of_turn>\n<start_of_turn>model\n",
    ("<start_of_turn>",),
    "<end_of_turn>",
    "<eos>",
    "<bos>",
)
MISTRAL = Family(
    "mistral",
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}",
    lambda user: f"<s>[INST] {user} [/INST]",
    ("[INST]", "[/INST]"),
    "</s>",
    "</s>",
    "<s>",
)
KIMI = Family(
    "kimi",
    "{% for m in messages %}{{ '<|im_' + m.role + '|>' + m.role + '<|im_middle|>' + m.content + '<|im_end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_assistant|>assistant<|im_middle|>' }}{% endif %}",
    lambda user: f"<|im_user|>user<|im_middle|>{user}<|im_end|><|im_assistant|>assistant<|im_middle|>",
    ("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
    "<|im_end|>",
    "[EOS]",
)
FAMILIES = (CHATML, LLAMA3, GLM, DEEPSEEK, GEMMA, MISTRAL, KIMI)


def tokenizer(family: Family) -> Tokenizer:
    """Return a tokenizer of single bytes with the family's markers as tokens of their own."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({char: number for number, char in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in family.special])
    return made


def write_checkpoint(folder: Path, family: Family, **changes: Any) -> Path:
    """Write the tokenizer files of an instruct model: its end tokens hold the end of a turn and of a document.

    changes: chat_template (None for none), stops (ids of generation_config.json), extra (keys of it).
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = tokenizer(family)
    made.save(str(folder / "tokenizer.json"))
    ends = [made.token_to_id(token) for token in dict.fromkeys((family.end, family.document_end))]
    config: dict[str, Any] = {"eos_token": family.document_end, "bos_token": family.bos or None}
    template = changes.get("chat_template", family.template)
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))
    stops = {
        "eos_token_id": changes.get("stops", ends),
        **changes.get("extra", {"do_sample": True, "temperature": 0.6}),
    }
    (folder / "generation_config.json").write_text(json.dumps(stops, indent=1))
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", "vocab_size": 512}, indent=1))
    return folder


def sample(made: Tokenizer, index: int, prompt: str, response: str, **changes: Any) -> dict[str, Any]:
    """Return a sample as slime's plain rollout writes it: ids of prompt and response, the response counted."""
    before, behind = made.encode(prompt).ids, made.encode(response).ids
    fields = {
        "index": index,
        "prompt": prompt,
        "tokens": before + behind,
        "response": response,
        "response_length": len(behind),
        "loss_mask": [1] * len(behind),
        "rollout_log_probs": [-0.25] * len(behind),
        "status": "completed",
    }
    return {**fields, **changes}


def write_rollout(folder: Path, samples: Sequence[dict[str, Any]]) -> Path:
    """Write the rollout dump of rollout 0."""
    folder.mkdir(parents=True, exist_ok=True)
    return torch_zip(folder / "0.pt", pickle.dumps({"rollout_id": 0, "samples": list(samples)}, 2))


def write_train(folder: Path, samples: Sequence[dict[str, Any]]) -> Path:
    """Write a train dump of version 2."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"format_version": 2, "rollout_id": 0, "rank": 0, "samples": list(samples), "dp_shards": []}
    return torch_zip(folder / "0_0.pt", pickle.dumps(data, 2))

"""Base or instruct: signs that agree decide, signs that contradict do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.rollout_model_kind import model_kind
from tests.probes.asking import word
from tests.probes.scripts import ask, write
from tests.probes.tiny_tokenizers import (
    CHATML,
    DEEPSEEK,
    GEMMA,
    KIMI,
    LLAMA3,
    MISTRAL,
    Family,
    tokenizer,
    write_checkpoint,
)

CONFIG = json.dumps({"model_type": "qwen3"})
SAMPLING = json.dumps({"do_sample": True, "temperature": 0.6, "eos_token_id": [1, 2]}, indent=1)
PLAIN = json.dumps({"do_sample": False, "eos_token_id": 1})


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        ("Toy-4B-Base", {}, "warning:base"),
        ("Toy-4B-Instruct-2507", {}, "ok:instruct"),
        ("toy-4b-it", {}, "ok:instruct"),
        ("Toy-4B", {"generation_config.json": SAMPLING}, "ok:instruct"),
        ("Toy-4B", {"generation_config.json": PLAIN}, "unknown"),
        ("Toy-4B", {"tokenizer_config.json": "{}"}, "warning:base"),
        ("Toy-4B", {"tokenizer_config.json": '{"chat_template": "x"}'}, "unknown"),
        ("Toy-4B-Base", {"generation_config.json": SAMPLING}, "unknown"),
        ("Toy-4B-Base-sft", {}, "unknown"),
        ("database-4B", {}, "unknown"),
        ("Toy-4B", {}, "unknown"),
        ("Toy-4B", {"README.md": "- Training Stage: Pretraining\n"}, "warning:base"),
        ("Toy-4B", {"README.md": "- Training Stage: Pretraining & Post-training\n"}, "ok:instruct"),
        ("Toy-4B", {"README.md": "---\nbase_model: org/Toy-4B-Base\n---\n"}, "ok:instruct"),
        (
            "Toy-4B",
            {"README.md": "---\nbase_model:\n- org/Toy-Base\nbase_model_relation: quantized\n---\n"},
            "warning:base",
        ),
        ("Toy-4B", {"README.md": "---\ntags: [chat, text]\n---\n"}, "ok:instruct"),
        ("Toy-4B", {"README.md": "---\ntags: [base]\n---\n"}, "warning:base"),
        ("Toy-4B", {"README.md": "---\ntags: &a [*a, *a]\n---\n"}, "unknown"),
        ("Toy-4B", {"README.md": "The base of all Instruct models\n"}, "unknown"),
        ("Toy-4B", {"config.json": '{"_name_or_path": "/m/Toy-4B-Base"}'}, "warning:base"),
        ("Toy-4B-Instruct", {"config.json": '{"_name_or_path": "/m/Toy-4B-Base"}'}, "ok:instruct"),
        ("Toy-4B", {"tokenizer_config.json": "{}", "tekken.json": "{}"}, "unknown"),
    ],
)
def test_signs_of_a_folder(tmp_path: Path, name: str, files: dict[str, str], expected: str) -> None:
    """Name, sampling defaults and a missing template tell; a template proves nothing, as base models ship one too."""
    folder = tmp_path / name
    for file, text in {"config.json": CONFIG, **files}.items():
        write(folder, file, text)
    assert word(ask(model_kind, hf_checkpoint=str(folder))) == expected


@pytest.mark.parametrize("family", [CHATML, LLAMA3, GEMMA, KIMI], ids=lambda family: family.name)
@pytest.mark.parametrize(("documents", "expected"), [(True, "warning:base"), (False, "ok:instruct")])
def test_end_tokens_tell_a_base_model_that_ships_a_template(
    family: Family, documents: bool, expected: str, tmp_path: Path
) -> None:
    """A base model ends with documents, though its template has an end of turns (Qwen's base models are so)."""
    made = tokenizer(family)
    stops = made.token_to_id(family.document_end if documents else family.end)
    folder = write_checkpoint(tmp_path / "Toy-4B", family, stops=stops, extra={"do_sample": False})
    assert word(ask(model_kind, hf_checkpoint=str(folder))) == expected


@pytest.mark.parametrize("family", [DEEPSEEK, MISTRAL], ids=lambda family: family.name)
def test_where_turns_end_like_documents_nothing_is_told(family: Family, tmp_path: Path) -> None:
    """DeepSeek's base models share template and end token with the others."""
    folder = write_checkpoint(tmp_path / "Toy-4B", family, extra={"do_sample": False})
    assert word(ask(model_kind, hf_checkpoint=str(folder))) == "unknown"


def test_the_summary_says_whether_it_thinks(tmp_path: Path) -> None:
    """A switch in the template, or a thought that it always opens."""
    for family, said in ((CHATML, "thinking can be switched"), (DEEPSEEK, "always opens a thought")):
        folder = write_checkpoint(tmp_path / family.name / "Toy-Instruct", family)
        assert said in ask(model_kind, hf_checkpoint=str(folder)).summary.en


def test_the_name_in_the_script_counts(tmp_path: Path) -> None:
    """Without the folder, --hf-checkpoint alone tells, cited at its line."""
    run = write(tmp_path, "run.sh", "python3 train.py \\\n  --hf-checkpoint /m/Toy-Instruct/ --rollout-batch-size 1\n")
    finding = ask(model_kind, launch=run)
    assert word(finding) == "ok:instruct"
    assert finding.citations[0].line == 2

"""Base or instruct: signs that agree decide, signs that contradict do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.rollout_model_kind import model_kind
from tests.probes.asking import word
from tests.probes.scripts import ask, write

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
    ],
)
def test_signs_of_a_folder(tmp_path: Path, name: str, files: dict[str, str], expected: str) -> None:
    """Name, sampling defaults and a missing template tell; a template proves nothing, as base models ship one too."""
    folder = tmp_path / name
    for file, text in {"config.json": CONFIG, **files}.items():
        write(folder, file, text)
    assert word(ask(model_kind, hf_checkpoint=str(folder))) == expected


def test_the_name_in_the_script_counts(tmp_path: Path) -> None:
    """Without the folder, --hf-checkpoint alone tells, cited at its line."""
    run = write(tmp_path, "run.sh", "python3 train.py \\\n  --hf-checkpoint /m/Toy-Instruct/ --rollout-batch-size 1\n")
    finding = ask(model_kind, launch=run)
    assert word(finding) == "ok:instruct"
    assert finding.citations[0].line == 2

"""Tokenizer files are read as transformers reads them; broken and hostile ones are named and never raise."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.readers import tokenizer_files
from probes.readers.tokenizer_files import read_tokenizer
from probes.readers.vocabulary import VocabularyError, load_vocabulary
from tests.probes.scripts import write
from tests.probes.tiny_tokenizers import CHATML, FAMILIES, Family, tokenizer, write_checkpoint


def test_special_tokens_in_both_spellings(tmp_path: Path) -> None:
    """A string or an AddedToken object; tokenizer_config.json wins over special_tokens_map.json."""
    write(tmp_path, "tokenizer_config.json", json.dumps({"eos_token": "<e>", "pad_token": None}))
    write(tmp_path, "special_tokens_map.json", json.dumps({"eos_token": "<x>", "bos_token": {"content": "<b>"}}))
    files = read_tokenizer(str(tmp_path))
    assert files.special == {"eos_token": "<e>", "bos_token": "<b>"}


def test_added_tokens_by_id(tmp_path: Path) -> None:
    """`added_tokens_decoder` maps ids, written as strings, to objects; entries of other shapes are left out."""
    table = {"151644": {"content": "<|im_start|>", "special": True}, "x": {"content": "y"}, "7": {"special": True}}
    write(tmp_path, "tokenizer_config.json", json.dumps({"added_tokens_decoder": table}))
    assert read_tokenizer(str(tmp_path)).added == {151644: "<|im_start|>"}


NAMED = [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}, {"name": 1, "template": "x"}, 7]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tokenizer_config.json": {"chat_template": "A"}}, {"default": "A"}),
        ({"tokenizer_config.json": {"chat_template": NAMED}}, {"default": "D", "tool_use": "T"}),
        ({"tokenizer_config.json": {"chat_template": {"default": "D"}}}, {"default": "D"}),
        (
            {"tokenizer_config.json": {"chat_template": "A"}, "chat_template.json": {"chat_template": "B"}},
            {"default": "B"},
        ),
        ({"chat_template.json": {"chat_template": "B"}, "chat_template.jinja": "C"}, {"default": "C"}),
        ({"chat_template.jinja": "C", "additional_chat_templates/rag.jinja": "R"}, {"default": "C", "rag": "R"}),
        ({"additional_chat_templates/rag.jinja": "R"}, {"rag": "R"}),
        ({"tokenizer_config.json": {}}, {}),
    ],
)
def test_where_templates_come_from(files: dict[str, object], expected: dict[str, str], tmp_path: Path) -> None:
    """chat_template.jinja wins over chat_template.json, that over tokenizer_config.json; named ones stand beside."""
    for name, content in files.items():
        write(tmp_path, name, content if isinstance(content, str) else json.dumps(content))
    found = read_tokenizer(str(tmp_path))
    assert {one.name: one.text for one in found.templates} == expected
    assert (found.template is None) == ("default" not in expected)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("generation_config.json", {"eos_token_id": [3, 1]}, (3, 1)),
        ("generation_config.json", {"eos_token_id": 3}, (3,)),
        ("config.json", {"text_config": {"eos_token_id": 4}}, (4,)),
        ("config.json", {"eos_token_id": "4"}, ()),
        ("config.json", {"eos_token_id": [True, None, 5]}, (5,)),
    ],
)
def test_end_tokens(name: str, value: object, expected: tuple[int, ...], tmp_path: Path) -> None:
    """A number or a list, also of the language model in a multimodal configuration."""
    write(tmp_path, name, json.dumps(value))
    assert read_tokenizer(str(tmp_path)).stop_ids == expected


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("tekken.json", "tekken"),
        ("tiktoken.model", "tiktoken"),
        ("qwen.tiktoken", "tiktoken"),
        ("tokenizer.model", "sentencepiece"),
        ("vocab.json", "merges.txt"),
        ("model.safetensors", "no tokenizer.json"),
    ],
)
def test_vocabularies_that_are_not_read_are_named(name: str, word: str, tmp_path: Path) -> None:
    """The reader says what the folder holds instead of tokenizer.json."""
    write(tmp_path, name, "x")
    files = read_tokenizer(str(tmp_path))
    assert word in files.without
    with pytest.raises(VocabularyError, match=word):
        load_vocabulary(files)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_text_goes_through_a_vocabulary_and_back(family: Family, text: str, tmp_path: Path) -> None:
    """Every text is decoded as it was encoded, markers are one id each, and no first token is added."""
    vocabulary = load_vocabulary(read_tokenizer(str(write_checkpoint(tmp_path, family))))
    assert vocabulary.decode(vocabulary.encode(text)) == text
    whole = vocabulary.encode(family.prompt(text))
    assert vocabulary.decode(whole) == family.prompt(text)
    assert all(vocabulary.id_of(mark) in whole for mark in family.marks if mark in family.prompt(text))
    with pytest.raises(VocabularyError):
        vocabulary.decode([vocabulary.size])


def test_added_tokens_of_the_configuration_are_added(tmp_path: Path) -> None:
    """A marker that only tokenizer_config.json knows is one id, as in transformers."""
    folder = write_checkpoint(tmp_path, CHATML)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    size = tokenizer(CHATML).get_vocab_size()
    config["added_tokens_decoder"] = {str(size): {"content": "<|new|>"}}
    write(folder, "tokenizer_config.json", json.dumps(config))
    vocabulary = load_vocabulary(read_tokenizer(str(folder)))
    assert vocabulary.encode("<|new|>") == [size]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"model": {"type": "BPE"}}',
        b"\xff\xfe",
        b'{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}',
    ],
)
def test_a_broken_vocabulary_is_an_error_of_ours(content: bytes, tmp_path: Path) -> None:
    """Whatever the library raises, or panics with."""
    write(tmp_path, "tokenizer.json", content)
    with pytest.raises(VocabularyError):
        load_vocabulary(read_tokenizer(str(tmp_path)))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_vocabulary_loads_or_is_an_error_of_ours(data: st.DataObject, tmp_path: Path) -> None:
    """Single bytes of tokenizer.json replaced: encoding and decoding never raise anything else."""
    raw = bytearray(tokenizer(CHATML).to_str().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from(b'0"{}[],x\\'))
    write(tmp_path, "tokenizer.json", bytes(raw))
    try:
        vocabulary = load_vocabulary(read_tokenizer(str(tmp_path)))
        vocabulary.decode(vocabulary.encode("<|im_start|>hé"))
    except VocabularyError:
        pass


def test_files_that_are_no_files_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe must not hang the reader; a folder, an oversized file and a wrong type are named."""
    os.mkfifo(tmp_path / "generation_config.json")
    (tmp_path / "tokenizer_config.json").mkdir()
    write(tmp_path, "special_tokens_map.json", "[1]")
    write(tmp_path, "chat_template.jinja", "x" * 100)
    monkeypatch.setattr(tokenizer_files, "TEMPLATE_LIMIT", 50)
    files = read_tokenizer(str(tmp_path))
    assert {os.path.basename(path) for path, _ in files.faults} == {
        "generation_config.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "chat_template.jinja",
    }
    assert files.template is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "chat_template",
    "eos_token",
    "bos_token",
    "added_tokens_decoder",
    "add_bos_token",
    "eos_token_id",
    "text_config",
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(st.sampled_from(KEYS), JSON), raw=st.binary(max_size=20))
def test_any_values_are_read(values: dict[str, object], raw: bytes, tmp_path: Path) -> None:
    """Keys of any type, and bytes that are no JSON, give plain fields."""
    for name in ("tokenizer_config.json", "generation_config.json", "special_tokens_map.json", "chat_template.json"):
        write(tmp_path, name, json.dumps(values))
    write(tmp_path, "config.json", raw)
    files = read_tokenizer(str(tmp_path))
    assert all(isinstance(number, int) for number in files.stop_ids)
    assert all(files.special.values())
    assert all(one.text for one in files.templates)

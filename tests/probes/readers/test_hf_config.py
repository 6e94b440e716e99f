"""config.json in the spellings of several families and transformers versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.hf_config import field, read_config
from tests.probes.scripts import write


def value(folder: Path, config: dict[str, Any], name: str) -> Any:
    """Return a field of a config written to a folder, None when absent."""
    write(folder, "config.json", json.dumps(config, indent=2))
    read = read_config(str(folder))
    assert read is not None
    found = field(read, name)
    return None if found is None else found.value


@pytest.mark.parametrize(
    ("config", "name", "expected"),
    [
        ({"num_hidden_layers": 8}, "num_layers", 8),
        ({"rope_theta": 10000.0}, "rope_theta", 10000.0),
        ({"rope_parameters": {"rope_theta": 5e6, "rope_type": "default"}, "rope_theta": 1.0}, "rope_theta", 5e6),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, "rope_theta", 1e6),
        ({"rope_scaling": {"type": "yarn"}, "rope_theta": 2.0}, "rope_theta", 2.0),
        ({"text_config": {"hidden_size": 64, "model_type": "qwen3"}, "hidden_size": 9}, "hidden_size", 64),
        ({"text_config": {"hidden_size": 64}, "tie_word_embeddings": True}, "tied", True),
        ({"n_routed_experts": 256}, "experts", 256),
        ({"num_local_experts": 128}, "experts", 128),
        ({"num_nextn_predict_layers": 1}, "mtp", 1),
        ({"num_key_value_heads": None}, "kv_groups", None),
        ({"tie_word_embeddings": False}, "tied", False),
    ],
)
def test_one_name_for_every_spelling(tmp_path: Path, config: dict[str, Any], name: str, expected: Any) -> None:
    """Fields are found under each family's key, nested or not; null and absent are None."""
    assert value(tmp_path, config, name) == expected


def test_a_field_is_cited_at_its_line(tmp_path: Path) -> None:
    """The citation names the line of the value that was used, also when an outer part has the same key."""
    text = '{\n  "hidden_size": 9,\n  "text_config": {\n    "hidden_size": 64\n  }\n}\n'
    write(tmp_path, "config.json", text)
    config = read_config(str(tmp_path))
    assert config is not None
    found = field(config, "hidden_size")
    assert found is not None
    assert (found.citation.line, found.citation.excerpt.strip()) == (4, '"hidden_size": 64')


@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(
                        ["text_config", "rope_parameters", "rope_theta", "full_attention", "architectures"]
                    ),
                    inner,
                )
            ),
            max_leaves=12,
        ).map(lambda tree: json.dumps(tree).encode()),
    )
)
def test_no_file_raises(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Rubbish and odd shapes give None or a config without the field."""
    folder = tmp_path_factory.mktemp("hf")
    write(folder, "config.json", data)
    config = read_config(str(folder))
    if config is not None:
        field(config, "rope_theta")
        assert isinstance(config.model_type, str)

"""Keys of a torch_dist checkpoint are sorted into layers, other parameters, and what is not the model's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.readers.torch_dist import Stored, read_metadata
from probes.readers.torch_dist_names import STACKED, sort_keys
from tests.helpers import hostile_text
from tests.probes.readers.pickles import DATA

FC2 = "mlp.linear_fc2.weight"
ONE = Stored((4, 8), "bf16")


def test_a_real_checkpoint_is_stacked() -> None:
    """Eight layers along the first axis of eight tensors, and three tensors outside."""
    named = sort_keys(read_metadata(str(DATA / "ckpt" / "iter_0000000" / ".metadata")).tensors)
    assert set(named.stacked.values()) == {8}
    assert len(named.stacked) == 8
    assert set(named.outer) == {
        "embedding.word_embeddings.weight",
        "decoder.final_layernorm.weight",
        "output_layer.weight",
    }
    assert named.numbered == frozenset()


def test_numbered_and_stacked_layers_stand_side_by_side() -> None:
    """A number behind `layers` is the layer; the whole key is kept."""
    named = sort_keys(
        {f"decoder.layers.12.{FC2}": ONE, f"decoder.layers.{FC2}": ONE, f"module.decoder.layers.3.{FC2}": ONE}
    )
    assert set(named.layers[FC2]) == {12, 3, STACKED}
    assert named.keys[3, FC2] == f"module.decoder.layers.3.{FC2}"
    assert named.stacked == {f"decoder.layers.{FC2}": 4}


def test_what_is_not_the_model_is_left_out() -> None:
    """Optimizer state holds the model's names inside its own; extra state, RNG and scheduler are no parameters."""
    others = (
        f"optimizer.state.exp_avg.decoder.layers.{FC2}", f"chained_0.optimizer.state.fp32_param.decoder.layers.{FC2}",
        "decoder.layers.self_attention.core_attention._extra_state/shard_0_8", "rng_state/shard_0.0_1.1",
        "opt_param_scheduler", "rerun_state_machine_state", "optimizer.distributed.dp_group_idx_0.param_state",
    )  # fmt: skip
    named = sort_keys(dict.fromkeys(others, ONE))
    assert not named.layers
    assert not named.outer


def test_prediction_layers_are_only_noted() -> None:
    """MTP parameters are no layers of the decoder."""
    named = sort_keys({"mtp.layers.0.eh_proj.weight": ONE, "decoder.final_layernorm.weight": ONE})
    assert named.mtp
    assert not named.layers
    assert list(named.outer) == ["decoder.final_layernorm.weight"]


@given(st.dictionaries(st.one_of(hostile_text, hostile_text.map("decoder.layers.".__add__)), st.just(ONE)))
def test_any_key_is_sorted_or_left_out(tensors: dict[str, Stored]) -> None:
    """Whatever keys are called, none raises and each is counted at most once."""
    named = sort_keys(tensors)
    assert len(named.keys) <= len(tensors)
    assert len(named.keys) == len(named.outer) + sum(map(len, named.layers.values()))

"""Tests of the layer × parameter-group picture."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.hf_grid import MISSING, NONFINITE, PACKED, ZERO, build_grid, group_of
from tests.helpers import hostile_text, is_safe


def test_a_cell_shows_the_worst_of_its_tensors() -> None:
    """Missing before non-finite before zero before packed; lower case when only some have it."""
    names = [f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight" for layer in range(4) for expert in range(2)]
    marks = dict.fromkeys(names[:2], ZERO) | {names[2]: NONFINITE, names[3]: ZERO, names[4]: MISSING}
    grid = build_grid(names, marks | dict.fromkeys(names[6:], PACKED))
    assert grid is not None
    assert grid.cells == ("ZnxP",)
    assert {code for code, _, _ in grid.legend} == set("ZnxP")


def test_rows_are_groups_and_columns_layers() -> None:
    """Experts are one row, weight and bias another, norms their own; what a layer has not is blank."""
    names = [
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.2.mlp.experts.0.up_proj.weight",
        "model.layers.2.self_attn.q_proj.weight",
        "lm_head.weight",
    ]
    grid = build_grid(names, {})
    assert grid is not None
    assert (grid.columns, grid.rows, grid.cells) == (
        ("0", "2"),
        ("self_attn.q_proj", "mlp.up_proj", "mlp.experts"),
        ("==", "= ", " ="),
    )


def test_the_largest_stack_is_drawn() -> None:
    """A vision tower or a single prediction layer does not replace the language model."""
    names = [f"model.layers.{layer}.mlp.{part}.weight" for layer in range(3) for part in ("up", "down")]
    names += ["mtp.layers.0.mlp.up.weight", "model.visual.blocks.0.attn.weight"]
    grid = build_grid(names, {})
    assert grid is not None
    assert grid.columns == ("0", "1", "2")


def test_nothing_to_compare_is_no_picture() -> None:
    """No layers, or one alone, are not drawn."""
    assert build_grid(["lm_head.weight"], {}) is None
    assert build_grid(["model.layers.0.a.weight"], {}) is None


def test_groups_fold_experts_and_keep_modules() -> None:
    """Experts, shared experts and the indexer are one group each; a module is its own."""
    assert group_of("mlp.experts.7.up_proj.weight") == "mlp.experts"
    assert group_of("mlp.shared_experts.up_proj.weight") == "mlp.shared_experts"
    assert group_of("self_attn.indexer.wk.weight") == "self_attn.indexer"
    assert group_of("mlp.gate.e_score_correction_bias") == "mlp.gate"


@given(st.lists(st.tuples(st.integers(0, 9), hostile_text), max_size=20))
def test_any_names_are_drawn_safely(parts: list[tuple[int, str]]) -> None:
    """Every row has one cell for each column and no label can move the cursor."""
    grid = build_grid([f"model.layers.{layer}.{rest}" for layer, rest in parts], {})
    if grid is not None:
        assert all(len(cells) == len(grid.columns) for cells in grid.cells)
        assert all(is_safe(row) for row in grid.rows)

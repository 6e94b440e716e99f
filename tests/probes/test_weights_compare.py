"""Tests that received weights are judged right: every fault by its name, trained or not, with or without tensors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from probes.weights_compare import compare
from runbook.finding import Finding, Grid
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.weights_faults import EXACT, FAULTS, PARTLY, Fault
from tests.probes.weights_models import (
    DENSE,
    MOE,
    TINY,
    Size,
    Weights,
    bits,
    checkpoint,
    config,
    layer_of,
    noise,
    record,
    renamed,
    save,
    send,
    stages,
    trained,
    values,
)

RECORDED = Path(__file__).parents[1] / "data" / "weights" / "recorded-moe" / "engine-000" / "Qwen3MoeForCausalLM"
"""Recorded by the real SGLang 0.5.15 on a CPU while tests/sglang_cpu/sender.py updated it."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Size, Weights]]:
    """Return the checkpoints of a dense and an MoE model."""
    root = tmp_path_factory.mktemp("models")
    sizes = {"dense": DENSE, "moe": MOE}
    return {name: (root / name, size, checkpoint(root / name, size)) for name, size in sizes.items()}


def ask(received: Path, reference: Path, *more: tuple[str, object]) -> Finding:
    """Compare, and hold the finding to what holds for every finding."""
    finding = compare.run(evidence_of(("received_weights", received), ("hf_checkpoint", reference), *more), silent)
    check_citations(finding)
    assert finding.answer is None or finding.answer in compare.answers
    assert (finding.answer is not None) == finding.verdict.decides
    for grid in finding.grids:
        assert len(grid.rows) == len(grid.cells)
        assert {len(row) for row in grid.cells} == {len(grid.columns)}
        assert {code for row in grid.cells for code in row} <= {code for code, _, _ in grid.legend}
    return finding


def cases() -> list[object]:
    """Return every fault with every model it applies to and every form in which it is shown."""
    found: list[object] = []
    for name in ("dense", "moe"):
        for fault in (*FAULTS, *EXACT):
            if fault.moe is not None and fault.moe != (name == "moe"):
                continue
            forms = ("exact", "recorded") if fault in EXACT else ("exact", "recorded", "trained")
            found += [pytest.param(name, fault, form, id=f"{name}-{fault.name}-{form}") for form in forms]
    return found


@pytest.mark.parametrize(("name", "fault", "form"), cases())
def test_a_fault_is_called_by_its_name(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path, name: str, fault: Fault, form: str
) -> None:
    """Every fault gets its answer and its words, also after a step of training and from fingerprints alone."""
    reference, size, weights = models[name]
    sent = fault.change(trained(weights) if form == "trained" else weights, size)
    if form == "recorded":
        finding = ask(record(tmp_path / "engine-000" / "M" / "update-0001", sent), reference)
    else:
        finding = ask(send(tmp_path, stages(sent, size.layers)), reference)
    assert word(finding) == f"problem:{fault.answer}"
    assert re.search(fault.says, finding.summary.en, re.IGNORECASE), finding.summary.en


@pytest.mark.parametrize("after", [False, True], ids=["exact", "trained"])
@pytest.mark.parametrize("name", ["dense", "moe"])
def test_a_few_wrong_rows_are_found_in_the_tensors(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path, name: str, after: bool
) -> None:
    """Four rows of other content in one matrix are found and named, among trained rows too."""
    reference, size, weights = models[name]
    sent = PARTLY.change(trained(weights) if after else weights, size)
    finding = ask(send(tmp_path, stages(sent, size.layers)), reference)
    assert word(finding) == f"problem:{PARTLY.answer}"
    assert "right in part and wrong in part" in finding.summary.en


def test_a_few_changed_rows_without_tensors_are_only_told(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """Fingerprints cannot tell a few other rows from trained ones, so this is a warning that names the rows."""
    reference, size, weights = models["moe"]
    sent = PARTLY.change(weights, size)
    finding = ask(record(tmp_path, sent), reference)
    assert word(finding) == "warning:trained"
    assert "layers.3.self_attn.q_proj.weight (2/32 blocks of rows changed, within rows 20-23)" in finding.summary.en


@pytest.mark.parametrize("name", ["dense", "moe"])
def test_what_is_right_is_equal(models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path, name: str) -> None:
    """Tensors that are those of the checkpoint are equal, and the picture of the layers is a diagonal."""
    reference, size, weights = models[name]
    finding = ask(send(tmp_path, stages(weights, size.layers)), reference)
    assert word(finding) == "ok:equal"
    (grid,) = finding.grids
    assert grid.cells == tuple("." * row + "#" + "." * (size.layers - row - 1) for row in range(size.layers))


@pytest.mark.parametrize("step", [2e-6, 2e-5, 2e-4])
def test_training_is_no_fault(models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path, step: float) -> None:
    """A small step of every weight is called trained, or equal when rounding swallowed all of it."""
    reference, size, weights = models["dense"]
    finding = ask(send(tmp_path, stages(trained(weights, step=step), size.layers)), reference)
    assert word(finding) in ("ok:trained", "ok:equal")


def test_a_lot_of_training_is_doubted_but_no_problem(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """Weights that all moved by a tenth of their spread are still the same model: a warning, never a problem."""
    reference, size, weights = models["moe"]
    finding = ask(send(tmp_path, stages(trained(weights, step=2e-3), size.layers)), reference)
    assert word(finding) == "warning:trained"


def test_norms_that_move_together_are_trained(models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path) -> None:
    """Norm weights that all grew by one percent are no scaled tensors."""
    reference, size, weights = models["dense"]
    grown = {name: bits(values(t) * 1.01) if t.ndim == 1 else t for name, t in trained(weights).items()}
    assert word(ask(send(tmp_path, stages(grown, size.layers)), reference)) in ("ok:trained", "warning:trained")


def test_a_stage_without_its_offset_is_a_shifted_diagonal(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """Stage 1 sends layers 4-7 as 0-3: both stages' rows are told apart and the second diagonal starts at column 4."""
    reference, size, weights = models["dense"]
    first, second = stages(weights, size.layers)
    second = renamed(second, lambda name: re.sub(r"layers\.(\d)", lambda at: f"layers.{int(at[1]) - 4}", name))
    finding = ask(send(tmp_path, [first, second]), reference)
    assert word(finding) == "problem:pp-layer-ids"
    assert finding.summary.en == "Stage 1 sent layers 4-7 as 0-3; layers 4-7 never came."
    grid = _layers(finding)
    assert grid.rows[4:] == ("stage 1: 0", "stage 1: 1", "stage 1: 2", "stage 1: 3")
    assert grid.cells[4:] == ("....>...", ".....>..", "......>.", ".......>")


def test_virtual_stages_out_of_order_are_layer_ids(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """With VPP, stage 0 holds layers 0, 1, 4, 5; numbered without the virtual stage, every name arrives."""
    reference, _, weights = models["dense"]
    held = {0: (0, 1, 4, 5), 1: (2, 3, 6, 7)}
    sent: list[Weights] = [{}, {}]
    for name, tensor in weights.items():
        layer = layer_of(name)
        if layer is None:
            sent[0][name] = tensor
            continue
        stage = 0 if layer in held[0] else 1
        id = held[stage].index(layer) + 4 * stage
        sent[stage][name.replace(f"layers.{layer}.", f"layers.{id}.")] = tensor
    finding = ask(send(tmp_path, sent), reference)
    assert word(finding) == "problem:pp-layer-ids"
    assert finding.summary.en == "Stage 0 sent layers 4-5 as 2-3; stage 1 sent layers 2-3 as 4-5."


@pytest.mark.parametrize("stale", ["layers.3.", "layers.3.self_attn.o_proj.weight"])
def test_an_old_copy_among_trained_weights_is_stale(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path, stale: str
) -> None:
    """A layer or a matrix that did not change while all others did was not sent anew."""
    reference, size, weights = models["dense"]
    sent = {name: weights[name] if stale in name else tensor for name, tensor in trained(weights).items()}
    assert word(ask(send(tmp_path, stages(sent, size.layers)), reference)) == "problem:stale"


def test_a_copy_of_the_update_before_is_stale(models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path) -> None:
    """A tensor that is not the checkpoint's but that of the previous update is stale all the same."""
    reference, _, weights = models["dense"]
    once = trained(weights)
    twice = trained(once, seed=900)
    held = "model.layers.6.mlp.down_proj.weight"
    record(tmp_path / "engine-000" / "M" / "update-0001", once, version="1")
    record(tmp_path / "engine-000" / "M" / "update-0002", {**twice, held: once[held]}, version="2")
    finding = ask(tmp_path, reference)
    assert word(finding) == "problem:stale"
    assert held in finding.summary.en


def test_parameters_frozen_on_purpose_are_no_proof(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """When the launch script freezes parameters, unchanged ones are only a warning; a frozen kind is none at all."""
    reference, size, weights = models["dense"]
    script = tmp_path / "run.sh"
    script.write_text("python3 train.py --freeze-params-name-list layers.3\n")
    after = trained(weights)
    layer = {name: weights[name] if "layers.3." in name else tensor for name, tensor in after.items()}
    sent = send(tmp_path / "layer", stages(layer, size.layers))
    assert word(ask(sent, reference, ("launch", script))) == "warning:stale"
    kind = {name: weights[name] if "o_proj" in name else tensor for name, tensor in after.items()}
    assert word(ask(send(tmp_path / "kind", stages(kind, size.layers)), reference)) == "ok:trained"


def test_ids_sent_twice_while_others_never_came(models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path) -> None:
    """Where the first of two tensors of a name was kept, the list of what was sent shows the lost offset."""
    reference, _, weights = models["moe"]
    kept = {name: tensor for name, tensor in weights.items() if not re.search(r"experts\.[4-7]\.", name)}
    send(tmp_path, [kept])
    names = [name for name in kept for _ in range(2 if ".experts." in name else 1)]
    bucket = [[name, "torch.bfloat16", list(kept[name].shape)] for name in names]
    (tmp_path / "stage0.sent.json").write_text(json.dumps({"group_name": "slime-pp_0", "buckets": [bucket]}))
    finding = ask(tmp_path, reference)
    assert word(finding) == "problem:ep-expert-ids"
    assert "experts 0-3 were sent twice and experts 4-7 never" in finding.summary.en.lower()


def test_another_checkpoint_is_no_wrong_parameter(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """Weights without any relation to the checkpoint say that the two do not belong together, and prove no more."""
    reference, size, weights = models["dense"]
    other = {name: bits(noise(t.shape, 5000 + n) * 0.02) for n, (name, t) in enumerate(weights.items())}
    assert word(ask(send(tmp_path, stages(other, size.layers)), reference)) == "warning:unrelated"


def test_another_dtype_with_the_same_values_is_equal(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """SGLang casts what it loads: bfloat16 values sent as float32 are the same values."""
    reference, _, weights = models["dense"]
    save(tmp_path / "stage0.safetensors", {name: values(tensor) for name, tensor in weights.items()}, "F32")
    finding = ask(tmp_path, reference)
    assert word(finding) == "ok:equal"
    assert "in another dtype" in finding.summary.en


def test_quantised_weights_are_not_judged_by_a_plain_checkpoint(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """FP8 weights with their scales beside a bfloat16 checkpoint cannot be compared, which is no fault."""
    reference, _, weights = models["dense"]
    matrices = {name: tensor.astype(np.uint8) for name, tensor in weights.items() if tensor.ndim == 2}
    save(tmp_path / "stage0.safetensors", matrices, "F8_E4M3")
    save(tmp_path / "stage1.safetensors", {name: t for name, t in weights.items() if t.ndim == 1})
    scales = {f"{name}_scale_inv": np.ones((1, 1), np.float32) for name in matrices}
    save(tmp_path / "stage2.safetensors", scales, "F32")
    assert word(ask(tmp_path, reference)) == "unknown"


def test_what_may_stay_away_is_not_missed(tmp_path: Path) -> None:
    """lm_head of tied embeddings and a prediction layer that the trainer lacks are not parameters never sent."""
    size = Size(layers=3)
    weights = checkpoint(tmp_path / "hf", size)
    about = config(size) | {"tie_word_embeddings": True, "num_hidden_layers": 2}
    (tmp_path / "hf" / "config.json").write_text(
        str(about).replace("'", '"').replace("True", "true").replace("False", "false")
    )
    sent = {name: t for name, t in weights.items() if "layers.2." not in name and name != "lm_head.weight"}
    assert word(ask(send(tmp_path / "sent", [sent]), tmp_path / "hf")) == "ok:equal"


def test_fused_experts_are_compared_one_by_one(tmp_path: Path) -> None:
    """A checkpoint with fused experts is what single experts are compared with: equal, and an exchange is found."""
    size = Size(layers=4, ffn=32, experts=4)
    weights = checkpoint(tmp_path / "plain", size)
    fused = {name: tensor for name, tensor in weights.items() if ".experts." not in name}
    for layer in range(size.layers):
        head = f"model.layers.{layer}.mlp.experts"
        every = [{part: weights[f"{head}.{e}.{part}_proj.weight"] for part in ("gate", "up", "down")} for e in range(4)]
        fused[f"{head}.gate_up_proj"] = np.stack([np.concatenate([one["gate"], one["up"]]) for one in every])
        fused[f"{head}.down_proj"] = np.stack([one["down"] for one in every])
    (tmp_path / "hf").mkdir()
    save(tmp_path / "hf" / "model.safetensors", fused)
    (tmp_path / "hf" / "config.json").write_bytes((tmp_path / "plain" / "config.json").read_bytes())
    assert word(ask(send(tmp_path / "right", [weights]), tmp_path / "hf")) == "ok:equal"
    turned = renamed(weights, lambda name: re.sub(r"experts\.(\d)", lambda at: f"experts.{(int(at[1]) + 2) % 4}", name))
    assert word(ask(send(tmp_path / "turned", [turned]), tmp_path / "hf")) == "problem:ep-expert-ids"


def test_the_real_engine_drops_an_unknown_name_without_a_word(tmp_path: Path) -> None:
    """Recorded in SGLang: the router came under another name, which load_weights dropped; the engine shows it."""
    checkpoint(tmp_path, TINY)
    finding = ask(RECORDED, tmp_path)
    assert word(finding) == "problem:unknown-name"
    assert "model.layers.1.mlp.router.weight" in finding.summary.en
    assert "dropped it without a word" in finding.summary.en
    assert finding.citations[0].line == 34


@pytest.mark.parametrize(
    ("update", "wanted"),
    [
        ("update-0000", "unknown"),
        ("update-0001", "unknown"),
        ("update-0004", "ok:equal"),
        ("update-0005", "problem:not-taken"),
    ],
)
def test_single_updates_of_the_real_engine(tmp_path: Path, update: str, wanted: str) -> None:
    """The load at the start proves nothing about the trainer, a torn-off update nothing is missed from, and so on."""
    checkpoint(tmp_path, TINY)
    assert word(ask(RECORDED / update / "received.jsonl", tmp_path)) == wanted


def test_an_update_that_has_ended_counts(tmp_path: Path) -> None:
    """The first updates of the real engine are whole because the next one began, and are in the engine to the bit."""
    checkpoint(tmp_path, TINY)
    for number in range(4):
        (tmp_path / "r" / f"update-{number:04}").mkdir(parents=True)
        for file in (RECORDED / f"update-{number:04}").iterdir():
            if number < 3 or file.name == "received.jsonl":
                lines = file.read_bytes().splitlines(keepends=True)
                (tmp_path / "r" / f"update-{number:04}" / file.name).write_bytes(
                    b"".join(lines[: 3 if number == 3 else None])
                )
    finding = ask(tmp_path / "r", tmp_path)
    assert word(finding) == "ok:trained"
    assert "45 are in the engine bit by bit" in finding.summary.en


def test_an_exception_of_load_weights_is_reported(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """What load_weights raised is the answer when nothing else is wrong."""
    reference, _, weights = models["dense"]
    folder = record(tmp_path, weights)
    text = (folder / "received.jsonl").read_text().replace('"error": null', '"error": "KeyError: \'x\'"')
    (folder / "received.jsonl").write_text(text)
    assert word(ask(folder, reference)) == "problem:load-failed"


def test_nothing_is_missed_from_a_recording_that_stopped(
    models: dict[str, tuple[Path, Size, Weights]], tmp_path: Path
) -> None:
    """Half an update, not known to have ended, is unknown; what is wrong in it is wrong all the same."""
    reference, size, weights = models["dense"]
    half = dict(list(weights.items())[:40])
    assert word(ask(record(tmp_path / "a", half, idle=False), reference)) == "unknown"
    wrong = FAULTS[2].change(half, size)
    assert word(ask(record(tmp_path / "b", wrong, idle=False), reference)) == "problem:values-wrong"


def _layers(finding: Finding) -> Grid:
    return next(grid for grid in finding.grids if "Received layer" in grid.title.en)

"""Tests of what an engine's own parameters say about what it was sent."""

from __future__ import annotations

from pathlib import Path

import torch

from probes.readers.received_weights import Parameter, Update, read_updates
from probes.recorder.slime_runbook_recorder.fingerprint import fingerprint
from probes.weights_fingerprint import Print
from probes.weights_places import Judged
from probes.weights_reference import address, print_of_sent
from probes.weights_relation import Relation
from probes.weights_taken import homes, taken
from tests.probes.weights_models import TINY, Weights, build, record, trained


def judge(update: Update) -> tuple[list[Judged], dict[int, Print]]:
    """Return the tensors of an update without a checkpoint."""
    judged = [Judged(sent, Relation("near", sent.name), address(sent.name)) for sent in update.sent]
    prints = {number: own for number, sent in enumerate(update.sent) if (own := print_of_sent(sent)) is not None}
    return judged, prints


def sent(folder: Path, weights: Weights) -> Update:
    """Return an update of these weights."""
    return read_updates([str(record(folder, weights))])[0][0]


def parameter(name: str, *parts: torch.Tensor) -> Parameter:
    """Return an engine's parameter that holds the parts one below the other."""
    facts = fingerprint(torch.cat(list(parts)) if len(parts) > 1 else parts[0])
    return Parameter(name, 0, tuple(facts["shape"]), facts["dtype"], facts["hash"], facts["rows"])


def tensor(weights: Weights, name: str) -> torch.Tensor:
    """Return one of the weights as torch has it."""
    return torch.from_numpy(weights[name].view("int16").copy()).view(torch.bfloat16)


def test_fused_parameters_prove_their_parts(tmp_path: Path) -> None:
    """q, k and v are in qkv_proj in any order; a part that was replaced proves nothing."""
    weights = build(TINY)
    names = [f"model.layers.0.self_attn.{part}_proj.weight" for part in "qkv"]
    update = sent(tmp_path, {name: weights[name] for name in names})
    fused = parameter("model.layers.0.self_attn.qkv_proj.weight", *(tensor(weights, name) for name in reversed(names)))
    update.after = {fused.name: fused}
    found = taken(update, *judge(update))
    assert found is not None
    assert (found.proven, found.homeless, found.kept) == (3, (), ())
    update.after = {fused.name: parameter(fused.name, *(tensor(trained(weights), name) for name in names))}
    found = taken(update, *judge(update))
    assert found is not None
    assert found.proven == 0


def test_a_parameter_that_kept_its_content_was_not_taken(tmp_path: Path) -> None:
    """Of two tensors one arrived; the other's parameter is as before and not as sent."""
    weights = build(TINY)
    after = trained(weights)
    names = ("model.layers.0.self_attn.o_proj.weight", "model.layers.1.self_attn.o_proj.weight")
    update = sent(tmp_path, {name: after[name] for name in names})
    update.before = {name: parameter(name, tensor(weights, name)) for name in names}
    update.after = {names[0]: parameter(names[0], tensor(after, names[0])), names[1]: update.before[names[1]]}
    found = taken(update, *judge(update))
    assert found is not None
    assert (found.kept, found.proven) == ((names[1],), 1)


def test_nothing_is_claimed_where_no_parameter_shows_what_was_sent(tmp_path: Path) -> None:
    """An engine that keeps everything in another form gives no ground to say that a tensor was not taken."""
    weights = build(TINY)
    name = "model.layers.0.self_attn.o_proj.weight"
    update = sent(tmp_path, {name: trained(weights)[name]})
    update.before = update.after = {name: parameter(name, tensor(weights, name))}
    found = taken(update, *judge(update))
    assert found is not None
    assert found.kept == ()


def test_without_the_engines_parameters_nothing_is_said(tmp_path: Path) -> None:
    """A recording without engine.jsonl says nothing about what was taken."""
    update = sent(tmp_path, build(TINY))
    assert taken(update, *judge(update)) is None


def test_the_names_an_engine_may_use() -> None:
    """A part of a fused parameter is looked for under its own name first, then under the fused one."""
    assert homes("model.layers.3.mlp.experts.7.up_proj.weight") == [
        "model.layers.3.mlp.experts.7.up_proj.weight",
        "model.layers.3.mlp.experts.7.gate_up_proj.weight",
        "model.layers.3.mlp.experts.w13_weight",
    ]
    assert homes("model.norm.weight") == ["model.norm.weight"]

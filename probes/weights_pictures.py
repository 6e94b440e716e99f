"""Pictures of a comparison: which layer holds which layer's content, and how each parameter of each layer fared.

In the first a right update is a diagonal; a stage that lost its offset is a diagonal that starts at the wrong
column. The second shows a hole or a wrong parameter at a glance. Codes are plain letters, so that they read the same
without colour.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from probes.weights_places import Judged, layer_votes, sender
from probes.weights_reference import address
from probes.weights_verdict import Compared
from runbook.finding import Grid
from runbook.text import Text, sanitise

LIMIT = 200
"""Rows or columns of a picture; no model here has more layers."""

_CODES: dict[str, tuple[str, Text, str]] = {
    "equal": ("=", Text("equal to the checkpoint", "与 ckpt 相同"), "good"),
    "near": ("~", Text("trained", "经过训练"), "good"),
    "elsewhere": (">", Text("content of another one", "内容属于别处"), "bad"),
    "zero": ("0", Text("zeros", "全零"), "bad"),
    "wrong": ("x", Text("other values", "数值不对"), "bad"),
    "missing": ("-", Text("never came", "从未送达"), "bad"),
    "open": ("?", Text("cannot be told", "无法判断"), "dim"),
    "none": (".", Text("not in this layer", "该层没有"), "dim"),
}
_WORST = ("missing", "zero", "wrong", "elsewhere", "open", "near", "equal", "none")


def layer_grid(compared: Compared) -> Grid | None:
    """Draw received layers against the checkpoint's layers; None when there are no layers to draw."""
    votes = layer_votes(compared.judged)
    stacks = Counter(stack for _, stack, _ in votes)
    if not stacks:
        return None
    stack = stacks.most_common(1)[0][0]
    rows = sorted((source, layer) for source, name, layer in votes if name == stack)[:LIMIT]
    gone = [place.layer for name in compared.missing if (place := address(name)).stack == stack]
    columns = sorted({layer for _, layer in rows}.union(*votes.values(), (n for n in gone if n is not None)))[:LIMIT]
    cells, labels = [], []
    for source, layer in rows:
        counts = votes[source, stack, layer]
        most = counts.most_common(1)[0][0]
        cells.append("".join(_match_code(layer, column, counts, most) for column in columns))
        labels.append(sanitise(f"{sender(source)[0]}: {layer}"))
    legend = (
        ("#", Text("this layer's own content", "该层自己的内容"), "good"),
        (">", Text("another layer's content", "其他层的内容"), "bad"),
        ("+", Text("some tensors of it", "其中部分张量"), "warn"),
        (".", Text("none of it", "没有"), "dim"),
    )
    used = {code for row in cells for code in row}
    return Grid(
        Text(
            "Received layer (row) × layer of the checkpoint whose content it has (column)",
            "收到的 layer（行）× 内容所属的 ckpt layer（列）",
        ),
        tuple(labels),
        tuple(str(column) for column in columns),
        tuple(cells),
        tuple(each for each in legend if each[0] in used),
    )


def _match_code(layer: int, column: int, counts: Counter[int], most: int) -> str:
    if column not in counts:
        return "."
    if column != most:
        return "+"
    return "#" if column == layer else ">"


def parameter_grid(compared: Compared) -> Grid | None:
    """Draw each layer's parameters: right, trained, wrong, never came."""
    state: dict[tuple[int, str], set[str]] = defaultdict(set)
    for each in compared.judged:
        if each.place.layer is not None and each.expected:
            state[each.place.layer, _column(each.place.kind)].add(_state(each))
    for name in compared.missing if compared.whole else ():
        place = address(name)
        if place.layer is not None:
            state[place.layer, _column(place.kind)].add("missing")
    if not state:
        return None
    layers = sorted({layer for layer, _ in state})[:LIMIT]
    columns = sorted({column for _, column in state})[:LIMIT]
    worst = {key: next(code for code in _WORST if code in found) for key, found in state.items()}
    cells = ["".join(_CODES[worst.get((layer, column), "none")][0] for column in columns) for layer in layers]
    used = {code for row in cells for code in row}
    return Grid(
        Text(f"Layer × parameter ({', '.join(columns)})", f"layer × 参数（{', '.join(columns)}）"),
        tuple(str(layer) for layer in layers),
        tuple(columns),
        tuple(cells),
        tuple(each for each in _CODES.values() if each[0] in used),
    )


def _column(kind: str) -> str:
    """Return a short name of a kind of parameter, such as "q_proj" or "experts.up_proj"."""
    parts = [part for part in kind.rpartition("#.")[2].split(".") if part != "weight"]
    short = ".".join(parts[-1:]) if parts else kind
    return sanitise(f"experts.{short}" if ".experts." in kind else short, 24)


def _state(each: Judged) -> str:
    kind = each.relation.kind
    if kind in ("equal", "cast"):
        return "equal"
    if kind in ("near", "drifted"):
        return "near"
    if kind in ("opaque", "named"):
        return "open"
    return kind if kind in ("zero", "elsewhere") else "wrong"

"""Draws a checkpoint's tensors as layers × parameter groups, so that a hole is seen at a glance.

Columns are layers, rows what a layer is made of (`self_attn.q_proj`, `mlp.experts`, …), one character a cell. A cell
stands for several tensors (weight and bias, all experts); it shows the worst of their marks, in lower case when only
some of them have it. Whoever judges tensors passes the names it knows and a mark for each that is not simply there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runbook.finding import Grid
from runbook.text import Text, sanitise

MISSING, NONFINITE, ZERO, PACKED, PRESENT, ABSENT = "X", "N", "Z", "P", "=", " "

LEGEND: dict[str, tuple[Text, str]] = {
    MISSING: (Text("missing", "缺失"), "bad"),
    NONFINITE: (Text("NaN or Inf", "NaN 或 Inf"), "bad"),
    ZERO: (Text("all zero", "全零"), "bad"),
    PACKED: (Text("packed", "量化打包"), "accent"),
    PRESENT: (Text("present", "存在"), "good"),
}
"""Marks, gravest first, with their words and colour roles."""

MAX_ROWS = 40
MAX_COLUMNS = 512

_LAYER = re.compile(r"(?P<stack>(?:.*?\.)?(?:layers|h|blocks|mtp_layers))\.(?P<layer>\d{1,6})\.(?P<rest>.+)\Z")
_GROUP = re.compile(r"(?P<group>(?:.*?\.)?(?:experts|shared_experts|shared_expert|indexer))\.")
_TAIL = re.compile(r"\.(weight|bias|e_score_correction_bias)\Z")


def group_of(rest: str) -> str:
    """Return the parameter group of a name behind its layer: experts together, else the module."""
    match = _GROUP.match(rest)
    return match["group"] if match else _TAIL.sub("", rest)


def build_grid(names: Iterable[str], marks: Mapping[str, str]) -> Grid | None:
    """Return the picture of these names, or None when fewer than two layers are among them.

    names: every tensor that is there or should be, under its plain name. marks: MISSING, NONFINITE, ZERO or PACKED of
    the names that are not simply present. Only the stack of layers with the most names is drawn, with prediction
    layers as its last columns when they are numbered after it; tensors outside layers are not drawn.
    """
    stacks: dict[str, dict[int, dict[str, dict[str, int]]]] = {}
    sizes: dict[str, int] = {}
    for name in names:
        match = _LAYER.match(name)
        if match is None:
            continue
        stack = match["stack"]
        sizes[stack] = sizes.get(stack, 0) + 1
        cell = stacks.setdefault(stack, {}).setdefault(int(match["layer"]), {}).setdefault(group_of(match["rest"]), {})
        mark = marks.get(name, PRESENT)
        cell[mark] = cell.get(mark, 0) + 1
    if not sizes:
        return None
    stack = max(sizes, key=lambda one: sizes[one])
    layers = stacks[stack]
    if len(layers) < 2 or len(layers) > MAX_COLUMNS:
        return None
    columns = sorted(layers)
    rows = list(dict.fromkeys(group for layer in columns for group in layers[layer]))[:MAX_ROWS]
    cells = tuple("".join(_code(layers[layer].get(group)) for layer in columns) for group in rows)
    drawn = set("".join(cells))
    legend = tuple((code, words, role) for code, (words, role) in LEGEND.items() if code in drawn)
    legend += tuple(
        (code.lower(), Text(f"some {words.en}", f"部分{words.zh}"), role)
        for code, (words, role) in LEGEND.items()
        if code.lower() != code and code.lower() in drawn
    )
    return Grid(
        Text(f"{sanitise(stack, 60)}: parameter groups × layers", f"{sanitise(stack, 60)}：参数组 × 层"),
        tuple(sanitise(row, 40) for row in rows),
        tuple(map(str, columns)),
        cells,
        legend,
    )


def _code(cell: Mapping[str, int] | None) -> str:
    """Return the gravest mark of a cell, in lower case when only some of its tensors have it."""
    if not cell:
        return ABSENT
    worst = next((code for code in LEGEND if code in cell), PRESENT)
    whole = cell[worst] == sum(cell.values()) if worst in cell else True
    return worst if whole or worst == PACKED else worst.lower()

"""How the distance of actor and reference at step one is told, from dumps and from metrics alike (debug guide 1.2)."""

from __future__ import annotations

from runbook.text import Text

ORDER = ("equal", "close", "differ", "far")
"""Answers, from harmless to grave."""
WORDS = {
    "equal": Text("Actor and reference are exactly equal at step one", "第一步 actor 与 reference 完全相等"),
    "close": Text("Actor and reference are equal but for rounding", "第一步 actor 与 reference 仅有舍入差异"),
    "differ": Text("Actor and reference differ at step one", "第一步 actor 与 reference 不相等"),
    "far": Text(
        "Actor and reference are far apart at step one: not the same weights or not the same model",
        "第一步 actor 与 reference 相差很大：权重或模型不同",
    ),
}
EXPECTED = Text(
    " (expected if they were loaded from different checkpoints)", "（若两者加载自不同的 checkpoint 则属预期）"
)
"""What is added where nothing shows that both were loaded from the same place."""

"""Where DeepEP is on: in Megatron, in SGLang, in both or nowhere (guide, illegal memory access, 3).

Megatron: `--moe-enable-deepep`, or `--moe-flex-dispatcher-backend deepep`, with the flex dispatcher. SGLang:
`--sglang-moe-a2a-backend deepep`; the older `--sglang-enable-deepep-moe` was removed in 0.5.5 and is then ignored
without a word.
"""

from __future__ import annotations

from probes.readers.settings import Settings, given, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found, unknown
from runbook.probe import Progress, probe

_WORDS = {
    "train": ("in training only", "仅训练"),
    "rollout": ("in rollout only", "仅 rollout"),
    "both": ("in training and rollout", "训练和 rollout"),
    "off": ("nowhere", "均未开启"),
}


@probe(
    "launch.deepep",
    needs="launch|log",
    answers=("train", "rollout", "both", "off"),
    en="Where is DeepEP on?",
    zh="DeepEP 在哪里开启？",
)
def deepep(evidence: Evidence, report: Progress) -> Finding:
    """Read the flags of both sides."""
    del report
    settings = read_settings(evidence)
    lines: list[Citation] = []
    train, rollout = _train(settings, lines), _rollout(settings, lines)
    if train is None or rollout is None:
        return unknown(
            "Whether DeepEP is on is not known for both sides.",
            "不知道两侧是否都开启了 DeepEP。",
            settle_en="attach the launch script or a log with the arguments table",
            settle_zh="附上启动脚本或含参数表的日志",
            slots=("launch", "log"),
            citations=tuple(lines),
        )
    answer = {(True, True): "both", (True, False): "train", (False, True): "rollout"}.get((train, rollout), "off")
    en, zh = _WORDS[answer]
    return found(
        Verdict.OK,
        answer,
        f"DeepEP is on {en}." if answer != "off" else "DeepEP is off.",
        f"DeepEP：{zh}。",
        citations=tuple(lines),
    )


def _train(settings: Settings, lines: list[Citation]) -> bool | None:
    enabled, line = switched(settings, "moe-enable-deepep")
    backend = given(settings, "moe-flex-dispatcher-backend")
    dispatcher = given(settings, "moe-token-dispatcher-type")
    flex = dispatcher is not None and dispatcher.value == "flex"
    by_backend = flex and backend is not None and backend.value == "deepep"
    if enabled and line is not None:
        lines.append(line.citation)
        return True
    if by_backend and backend is not None:
        lines.append(backend.citation)
        return True
    return enabled


def _rollout(settings: Settings, lines: list[Citation]) -> bool | None:
    backend = given(settings, "sglang-moe-a2a-backend")
    if backend is not None:
        lines.append(backend.citation)
        return backend.value == "deepep" if backend.value is not None and backend.sure else None
    old, line = switched(settings, "sglang-enable-deepep-moe")
    if old and line is not None:
        lines.append(line.citation)
    return old

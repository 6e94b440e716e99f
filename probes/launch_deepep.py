"""Where DeepEP is on: in Megatron, in SGLang, in both or nowhere (guide, illegal memory access, 3).

Megatron: `--moe-enable-deepep`, or `--moe-flex-dispatcher-backend deepep`, with the flex dispatcher. SGLang:
`--sglang-moe-a2a-backend deepep`; the older `--sglang-enable-deepep-moe` was removed in 0.5.5 and is then ignored
without a word.
"""

from __future__ import annotations

from probes.settings import Settings, given, read_settings, switched
from probes.two_switches import two_switches
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding
from runbook.probe import Progress, probe
from runbook.text import Text

_ANSWERS = (
    ("both", Text("DeepEP is on in training and rollout.", "DeepEP：训练和 rollout。")),
    ("train", Text("DeepEP is on in training only.", "DeepEP：仅训练。")),
    ("rollout", Text("DeepEP is on in rollout only.", "DeepEP：仅 rollout。")),
    ("off", Text("DeepEP is off.", "DeepEP：均未开启。")),
)
_UNKNOWN = Text("Whether DeepEP is on is not known for both sides.", "不知道两侧是否都开启了 DeepEP。")


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
    return two_switches(train, rollout, _ANSWERS, lines, _UNKNOWN)


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

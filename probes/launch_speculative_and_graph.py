"""Which of speculative decoding and CUDA graphs SGLang runs with.

They are the two axes of the guide's experiment on illegal memory accesses. CUDA graphs are on unless they are disabled.
"""

from __future__ import annotations

from probes.settings import Settings, given, read_settings, switched
from probes.two_switches import two_switches
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, not_applicable
from runbook.probe import Progress, probe
from runbook.text import Text

_ANSWERS = (
    ("both", Text("SGLang runs with speculative decoding and CUDA graphs.", "SGLang 运行时：投机采样和 CUDA graph。")),
    (
        "speculative-only",
        Text(
            "SGLang runs with speculative decoding without CUDA graphs.", "SGLang 运行时：投机采样，不用 CUDA graph。"
        ),
    ),
    (
        "graph-only",
        Text("SGLang runs with CUDA graphs without speculative decoding.", "SGLang 运行时：CUDA graph，不用投机采样。"),
    ),
    (
        "neither",
        Text(
            "SGLang runs with neither speculative decoding nor CUDA graphs.",
            "SGLang 运行时：既不用投机采样也不用 CUDA graph。",
        ),
    ),
)
_UNKNOWN = Text(
    "Whether speculative decoding and CUDA graphs are on is not known.", "不知道是否开启了投机采样和 CUDA graph。"
)


@probe(
    "launch.speculative_and_graph",
    needs="launch|log",
    answers=("both", "speculative-only", "graph-only", "neither"),
    en="Does SGLang run with speculative decoding, CUDA graphs, or both?",
    zh="SGLang 运行时用了投机采样、CUDA graph，还是两者都用？",
)
def speculative_and_graph(evidence: Evidence, report: Progress) -> Finding:
    """Read the SGLang flags."""
    del report
    settings = read_settings(evidence)
    if switched(settings, "debug-train-only")[0]:
        return not_applicable("SGLang is not started (--debug-train-only).", "没有启动 SGLang（--debug-train-only）。")
    lines: list[Citation] = []
    speculative, graphs = _speculative(settings, lines), _graphs(settings, lines)
    return two_switches(speculative, graphs, _ANSWERS, lines, _UNKNOWN)


def _speculative(settings: Settings, lines: list[Citation]) -> bool | None:
    algorithm = given(settings, "sglang-speculative-algorithm")
    if algorithm is None:
        return False if settings.whole else None
    lines.append(algorithm.citation)
    return True if algorithm.sure else None


def _graphs(settings: Settings, lines: list[Citation]) -> bool | None:
    disabled, line = switched(settings, "sglang-disable-cuda-graph")
    decode = given(settings, "sglang-cuda-graph-backend-decode")
    lines.extend(one.citation for one in (line if disabled else None, decode) if one is not None)
    if disabled or (decode is not None and decode.value == "disabled"):
        return False
    return None if disabled is None else True

"""Whether SGLang gives its GPU memory back between rollouts: only then can a buffer be lost on release.

slime/utils/arguments.py: `--colocate` turns on both offloads unless `--no-offload-rollout` says otherwise,
`--offload` turns on both, and `--debug-rollout-only` turns both off.
"""

from __future__ import annotations

from probes.settings import not_told, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found
from runbook.probe import Progress, probe


@probe(
    "launch.offload",
    needs="launch|log",
    answers=("released", "kept"),
    en="Does SGLang release its GPU memory between rollouts?",
    zh="SGLang 在两次 rollout 之间会释放显存吗？",
)
def offload(evidence: Evidence, report: Progress) -> Finding:
    """Follow the offload flags as slime does."""
    del report
    settings = read_settings(evidence)
    lines: list[Citation] = []

    def state(flag: str) -> bool | None:
        on, line = switched(settings, flag)
        if on and line is not None:
            lines.append(line.citation)
        return on

    table = settings.table
    if table is not None and table.value("offload_rollout") in ("True", "False"):
        released: bool | None = state("offload-rollout")
    elif state("debug-rollout-only") or state("no-offload-rollout"):
        released = False
    elif state("offload-rollout") or state("offload") or state("colocate"):
        released = True
    else:
        released = False if settings.whole else None
    if released is None:
        return not_told("Whether the engines are offloaded is not known.", "不知道引擎是否会被 offload。")
    words = (
        ("SGLang releases its memory and takes it back", "SGLang 会释放并收回显存")
        if released
        else ("SGLang keeps its memory", "SGLang 不释放显存")
    )
    return found(
        Verdict.OK, "released" if released else "kept", f"{words[0]}.", f"{words[1]}。", citations=tuple(lines[-2:])
    )

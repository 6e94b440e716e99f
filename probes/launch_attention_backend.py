"""Whether Megatron is made to use Flash Attention.

The guide (1.2): some versions of Transformer Engine need `--attention-backend flash`, because fused attention is
numerically unstable under context parallelism; slime's scripts say that models with multi-head latent attention
cannot take it. The table prints `AttnBackend.flash`.
"""

from __future__ import annotations

from probes.settings import given, not_told, number, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe


@probe(
    "launch.attention_backend",
    needs="launch|log",
    answers=("flash", "not-flash", "latent-attention"),
    en="Is Flash Attention enforced with --attention-backend flash?",
    zh="是否用 --attention-backend flash 强制使用 Flash Attention？",
)
def attention_backend(evidence: Evidence, report: Progress) -> Finding:
    """Read the backend, context parallelism and whether the model has latent attention."""
    del report
    settings = read_settings(evidence)
    backend = given(settings, "attention-backend")
    value = (backend.value or "").rsplit(".", 1)[-1] if backend is not None and backend.sure else ""
    if value == "flash" and backend is not None:
        return found(
            Verdict.OK,
            "flash",
            "--attention-backend flash is set.",
            "已设置 --attention-backend flash。",
            citations=(backend.citation,),
        )
    latent, latent_line = switched(settings, "multi-latent-attention", of_model=True)
    if latent and latent_line is not None:
        return found(
            Verdict.OK,
            "latent-attention",
            "The model has multi-head latent attention, for which slime's scripts leave --attention-backend flash out.",
            "该模型使用 MLA，slime 的脚本对这类模型不设 --attention-backend flash。",
            citations=(latent_line.citation,),
        )
    if (backend is not None and not value) or (backend is None and not settings.whole) or latent is None:
        return not_told("The attention backend is not known.", "不知道 attention backend。")
    parallel, line = number(settings, "context-parallel-size", 1)
    beside = f" with context parallel size {int(parallel)}" if parallel and parallel > 1 else ""
    beside_zh = f"，且 context parallel 为 {int(parallel)}" if parallel and parallel > 1 else ""
    return found(
        Verdict.WARNING,
        "not-flash",
        f"Attention backend is {value or 'auto (the default)'}{beside}, not flash.",
        f"attention backend 为 {value or 'auto（默认）'}{beside_zh}，不是 flash。",
        citations=tuple(one.citation for one in (backend, line) if one is not None),
    )

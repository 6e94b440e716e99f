"""Whether an MoE model trains with `--moe-permute-fusion`, which the guide (1.3) asks for."""

from __future__ import annotations

from probes.readers.hf_config import field, read_config
from probes.settings import given, read_settings, switched
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, found, unknown
from runbook.probe import Progress, probe


@probe(
    "launch.moe_permute_fusion",
    needs="launch|log",
    answers=("on", "missing", "dense"),
    en="Does an MoE model train with --moe-permute-fusion?",
    zh="MoE 模型训练时是否开启了 --moe-permute-fusion？",
)
def moe_permute_fusion(evidence: Evidence, report: Progress) -> Finding:
    """Tell from --num-experts (or config.json) and the switch."""
    del report
    settings = read_settings(evidence)
    experts = given(settings, "num-experts")
    config = next((one for path in evidence.paths("hf_checkpoint") if (one := read_config(path))), None)
    counted = field(config, "experts") if config is not None else None
    proof: tuple[Citation, ...] = tuple(one.citation for one in (experts, counted) if one is not None)[:1]
    if not proof and (settings.whole_model or config is not None):
        return found(Verdict.OK, "dense", "The model has no experts.", "该模型没有 expert。")
    fused, line = switched(settings, "moe-permute-fusion", of_model=True)
    if proof and fused and line is not None:
        return found(
            Verdict.OK,
            "on",
            "--moe-permute-fusion is set.",
            "已设置 --moe-permute-fusion。",
            citations=(line.citation, *proof),
        )
    if proof and fused is False:
        return found(
            Verdict.WARNING,
            "missing",
            "An MoE model trains without --moe-permute-fusion.",
            "MoE 模型训练时没有 --moe-permute-fusion。",
            citations=proof,
        )
    return unknown(
        "Whether --moe-permute-fusion applies is not known.",
        "不知道 --moe-permute-fusion 是否生效。",
        settle_en="attach the launch script with its model script, or a log with the arguments table",
        settle_zh="附上启动脚本及其模型脚本，或含参数表的日志",
        slots=("launch", "log"),
    )

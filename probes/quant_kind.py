"""Whether the Hugging Face checkpoint is quantised, and how (debug guide, int4).

slime reads the same quantization_config at every weight update; a quant_method that it does not know silently passes
through in BF16 (slime/backends/megatron_utils/megatron_to_hf/processors/__init__.py).
"""

from __future__ import annotations

import os

from probes.quant_plan import Plan, open_plan
from probes.readers.quant_config import QuantConfig
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, unknown
from runbook.probe import Progress, probe
from runbook.text import sanitise

KINDS = ("compressed-tensors", "fp8")


@probe(
    "quant.kind",
    needs="hf_checkpoint",
    answers=("compressed-tensors", "fp8", "other", "none"),
    en="Is the Hugging Face checkpoint quantised, and how?",
    zh="HF ckpt 是否量化？是哪种？",
    deadline=180.0,
)
def kind(evidence: Evidence, report: Progress) -> Finding:
    """Read quantization_config and the layout of the tensors."""
    plan = open_plan(evidence, report)
    if isinstance(plan, Finding):
        return plan
    packed = [matrix for matrix in plan.matrices if matrix.packed]
    if plan.quant is None:
        return _without_config(plan, [matrix.name for matrix in packed])
    return _by_config(plan.quant, len(packed), len(plan.matrices))


def _without_config(plan: Plan, packed: list[str]) -> Finding:
    config = plan.checkpoint.config
    if config is None and not packed:
        return unknown(
            "There is no readable config.json beside the weights.",
            "权重旁没有可读取的 config.json。",
            settle_en="Give the whole folder of --hf-checkpoint.",
            settle_zh="提供完整的 --hf-checkpoint 目录。",
            slots=("hf_checkpoint",),
        )
    if not packed:
        path = config.path if config is not None else plan.checkpoint.path
        return found(
            Verdict.OK,
            "none",
            f"Not quantised: no quantization_config, and all {len(plan.matrices)} matrices are plain.",
            f"未量化：没有 quantization_config，{len(plan.matrices)} 个矩阵均为普通格式。",
            citations=(cite(path, "no quantization_config"),),
        )
    parts = plan.weights[packed[0]].parts
    answer = "compressed-tensors" if "weight_packed" in parts else "other" if "qweight" in parts else "fp8"
    return found(
        Verdict.WARNING,
        answer,
        f"The files hold quantised tensors such as {packed[0]}, and config.json has no quantization_config.",
        f"文件中有量化的 tensor（例如 {packed[0]}），但 config.json 没有 quantization_config。",
        citations=(_holder(plan, packed[0]),),
    )


def _holder(plan: Plan, name: str) -> Citation:
    path = os.path.join(plan.checkpoint.path, plan.weights[name].file)
    return cite(path, f"{name}: {', '.join(plan.weights[name].parts)}")


def _by_config(quant: QuantConfig, packed: int, matrices: int) -> Finding:
    answer = quant.kind if quant.kind in KINDS else "other"
    shown = sanitise(quant.kind, 40) or "no quant_method"
    group = quant.group()
    detail = quant.format
    if group is not None and group.num_bits:
        detail = f"{quant.format or group.type}, {group.num_bits} bits, group {group.group_size}"
    if quant.block:
        detail = f"blocks of {quant.block[0]}×{quant.block[1]}"
    detail = f" ({sanitise(detail, 60)})" if detail else ""
    known = answer != "other"
    passes = "" if known else "; slime does not know it and sends plain BF16 at every update"
    passes_zh = "" if known else "；slime 不认识它，每次更新都发送普通 BF16"
    return found(
        Verdict.OK if known else Verdict.WARNING,
        answer,
        f"{shown}{detail}: {packed} of {matrices} matrices are quantised in the files{passes}.",
        f"{shown}{detail}：文件中 {matrices} 个矩阵里有 {packed} 个已量化{passes_zh}。",
        citations=(quant.cite("quant_method"),),
    )

"""Whether the other matrices that are no quantisable Linear stay plain (debug guide, int4 2).

Embeddings, lm_head, gates of shared experts, `eh_proj`, `mtp.fc` and convolutions are built by SGLang without
quantisation, so packed ones are dropped at load: a fault of the files. When the files are right and slime's online
quantiser would treat a matrix differently from how the engine holds it, the checkpoint itself is sound and only a
weight update can show the fault; that is an answer of its own, never a proof.
"""

from __future__ import annotations

import os

from probes import quant_patch
from probes.hf_checkpoint import shorten
from probes.quant_plan import LOADED_PACKED, Matrix, Plan, in_prediction_layer, open_plan
from probes.readers.quant_config import QuantConfig
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Table, Verdict, cite, found, not_applicable
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

NEVER_PACKED = ("embedding", "head", "norm", "conv", "plain")
"""Kinds that SGLang builds without quantisation, apart from routers, which `quant.router` judges."""

ROWS = 40


@probe(
    "quant.nonlinear",
    needs="hf_checkpoint",
    answers=("covered", "not-covered", "update-differs"),
    en="Do all other matrices that are no quantisable Linear stay plain?",
    zh="其他不可量化的 2D 权重是否都保持未量化？",
    deadline=180.0,
)
def nonlinear(evidence: Evidence, report: Progress) -> Finding:
    """Compare files, slime's rule and SGLang's for every matrix but the routers."""
    plan = open_plan(evidence, report)
    if isinstance(plan, Finding):
        return plan
    if not plan.quantised:
        return not_applicable("The checkpoint is not quantised.", "该 ckpt 没有量化。")
    packed = [matrix for matrix in plan.of(*NEVER_PACKED) if matrix.packed and _sure(plan, matrix)]
    if packed:
        return _packed(plan, packed)
    quant = plan.quant
    if quant is not None and quant.kind == "compressed-tensors":
        differing = [matrix for matrix in plan.matrices if _differs(plan, matrix)]
        if differing:
            return _update_differs(plan, quant, differing)
    return found(
        Verdict.OK,
        "covered",
        f"Embeddings, lm_head and all other matrices that are no quantisable Linear are plain ({_plain(plan)}).",
        f"embedding、lm_head 以及其他不可量化的矩阵都未量化（共 {_plain(plan)} 个）。",
        citations=(_cite_ignore(plan),),
        tables=(_groups(plan),),
    )


def _sure(plan: Plan, matrix: Matrix) -> bool:
    """Return whether the engine is known to drop it packed: lm_head of GPTQ and AWQ may be quantised."""
    other = plan.quant is not None and plan.quant.kind not in ("compressed-tensors", "fp8")
    return plan.known if other and matrix.kind != "embedding" else matrix.kind != "head" or not other


def _differs(plan: Plan, matrix: Matrix) -> bool:
    """Return whether slime would send a matrix in another form than the engine holds it."""
    if matrix.kind in ("router", "vision") or in_prediction_layer(plan, matrix.name):
        return False
    if matrix.kind in NEVER_PACKED:
        return matrix.slime
    return plan.known and matrix.kind in LOADED_PACKED and matrix.sglang is not None and matrix.slime != matrix.sglang


def _packed(plan: Plan, packed: list[Matrix]) -> Finding:
    first, quant = packed[0], plan.quant
    path = os.path.join(plan.checkpoint.path, plan.weights[first.name].file)
    parts = ", ".join(sanitise(part, 40) for part in plan.weights[first.name].parts)
    add = quant_patch.rules_for(one.name for one in packed if one.slime) if _is_ct(quant) else ()
    advice = quant_patch.advise(quant, add)
    return found(
        Verdict.PROBLEM,
        "not-covered",
        f"{shorten((one.name for one in packed), 2)} is quantised in the files, and SGLang holds it plain: it is "
        f"dropped at load.{advice.words.en} Convert it again, leaving it plain.",
        f"文件中 {shorten((one.name for one in packed), 2)} 已被量化，而 SGLang 按未量化构建：加载时会被丢弃。"
        f"{advice.words.zh}重新转换并保持其不被量化。",
        citations=(cite(path, f"{first.module}: {parts}"), *advice.citations),
        tables=(*advice.tables, _groups(plan)),
        proposals=advice.proposals,
    )


def _update_differs(plan: Plan, quant: QuantConfig, differing: list[Matrix]) -> Finding:
    sent = [one for one in differing if one.slime]
    first = differing[0]
    advice = quant_patch.advise(quant, quant_patch.rules_for(one.name for one in sent))
    if sent:
        first = sent[0]
        en = f"slime would pack {shorten((one.name for one in sent), 2)} at a weight update, and SGLang holds it plain"
        zh = f"权重更新时 slime 会量化 {shorten((one.name for one in sent), 2)}，而 SGLang 按未量化持有"
        fix, fix_zh = advice.words.en, advice.words.zh
    else:
        en = f"slime would send {shorten((one.name for one in differing), 2)} plain, and SGLang holds it packed"
        zh = f"slime 会以未量化形式发送 {shorten((one.name for one in differing), 2)}，而 SGLang 按量化持有"
        fix = " An ignore entry without re: is a prefix in slime: write the one that covers it as a full re: pattern."
        fix_zh = "没有 re: 的条目在 slime 中是前缀匹配：请把覆盖它的那一条写成完整的 re: 模式。"
    return found(
        Verdict.WARNING,
        "update-differs",
        f"The files are right, but {en}.{fix}",
        f"文件没有问题，但{zh}。{fix_zh}",
        citations=advice.citations,
        tables=(*advice.tables, quant_patch.rules_table(quant, (first,)), _groups(plan)),
        proposals=advice.proposals,
    )


def _groups(plan: Plan) -> Table:
    """Show each kind of matrix once: how many, how the files hold it, and what the three programs would do."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in plan.matrices:
        engine = "unsure" if one.sglang is None else "packed" if one.sglang else "plain"
        key = (
            one.kind,
            *("packed" if flag else "plain" for flag in (one.packed, one.slime)),
            engine,
            "packed" if one.library else "plain",
        )
        groups.setdefault(key, []).append(one.name)
    ct = _is_ct(plan.quant)
    rows = tuple(
        (key[0], str(len(names)), key[1], *(key[2:] if ct else ("", "", "")), sanitise(names[0], 100))
        for key, names in list(groups.items())[:ROWS]
    )
    title = Text("Matrices: in the files, and as each program would have them", "矩阵：文件中的形式，以及各程序的处理")
    return Table(title, ("kind", "count", "files", "slime", "SGLang", "compressed-tensors", "such as"), rows)


def _plain(plan: Plan) -> int:
    return sum(not one.packed for one in plan.of(*NEVER_PACKED))


def _is_ct(quant: QuantConfig | None) -> bool:
    return quant is not None and quant.kind == "compressed-tensors"


def _cite_ignore(plan: Plan) -> Citation:
    if plan.quant is None:
        return cite(plan.checkpoint.path, "no quantization_config")
    return plan.quant.cite(plan.quant.ignore_key)

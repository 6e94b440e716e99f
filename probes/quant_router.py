"""Whether the MoE router is kept from being quantised (debug guide, int4 1).

SGLang builds routers without quantisation, so packed names for one are dropped and the router stays at zero. It is a
fault when the files hold the router packed, and equally when they hold it plain but slime's rule (full tensor name
with .weight) would pack it at the first weight update: `re:.*mlp.gate$` protects it in SGLang and compressed-tensors
and not in slime.
"""

from __future__ import annotations

import os

from probes import quant_patch
from probes.hf_names import LAYER
from probes.quant_plan import Matrix, Plan, open_plan
from probes.quant_rules import sglang_ignores
from probes.readers.quant_config import QuantConfig
from runbook.evidence import Evidence
from runbook.finding import Citation, Finding, Verdict, cite, found, not_applicable, unknown
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise


@probe(
    "quant.router",
    needs="hf_checkpoint",
    answers=("ignored", "not-ignored", "no-router"),
    en="Does the ignore list keep the MoE router from being quantised?",
    zh="ignore list 能否保证 MoE 路由不被量化？",
    deadline=180.0,
)
def router(evidence: Evidence, report: Progress) -> Finding:
    """Look at the router as the files hold it, and as slime's online quantiser would treat it."""
    plan = open_plan(evidence, report)
    if isinstance(plan, Finding):
        return plan
    if not plan.quantised:
        return not_applicable("The checkpoint is not quantised.", "该 ckpt 没有量化。")
    return _judged(plan, plan.of("router"))


def _judged(plan: Plan, routers: tuple[Matrix, ...]) -> Finding:
    packed = [matrix for matrix in routers if matrix.packed]
    exposed = [matrix for matrix in routers if matrix.slime]
    if not routers:
        return _none(plan)
    if packed and not plan.known and (plan.quant is None or plan.quant.kind != "compressed-tensors"):
        return _unsure(plan, packed[0])
    if packed:
        return _packed(plan, packed)
    if exposed and plan.quant is not None:
        return _exposed(plan.quant, exposed)
    return found(
        Verdict.OK,
        "ignored",
        f"All {len(routers)} routers are plain in the files, and slime's quantiser leaves them so.",
        f"{len(routers)} 个路由在文件中均未量化，slime 的量化器也不会动它们。",
        citations=(_cite_ignore(plan),),
    )


def _none(plan: Plan) -> Finding:
    if any(".experts." in name for name in plan.weights):
        return unknown(
            "The checkpoint has experts, and no tensor is recognised as their router.",
            "ckpt 有 expert，但没有识别出路由 tensor。",
            settle_en="See hf.shards and hf.expected_names: the router may be missing or under another name.",
            settle_zh="见 hf.shards 与 hf.expected_names：路由可能缺失或用了别的名字。",
        )
    return found(
        Verdict.OK,
        "no-router",
        "The model has no experts, hence no router.",
        "模型没有 expert，因此没有路由。",
        citations=(_cite_ignore(plan),),
    )


def _unsure(plan: Plan, first: Matrix) -> Finding:
    """Engines load a quantised router for some families of other formats."""
    return unknown(
        f"{first.name} is quantised in the files, and whether SGLang loads it so is not known for this family.",
        f"文件中 {first.name} 已量化；不清楚 SGLang 对该系列是否这样加载。",
        settle_en="Look for 'not found in params_dict' when SGLang loads the checkpoint.",
        settle_zh="看 SGLang 加载该 ckpt 时是否打印 'not found in params_dict'。",
        slots=("log",),
        citations=(_cite_ignore(plan),),
    )


def _packed(plan: Plan, packed: list[Matrix]) -> Finding:
    """Say that the files hold the router packed."""
    first, quant = packed[0], plan.quant
    parts = ", ".join(sanitise(part, 40) for part in plan.weights[first.name].parts)
    path = os.path.join(plan.checkpoint.path, plan.weights[first.name].file)
    proof = cite(path, f"{first.module}: {parts}")
    add = _additions(quant, packed)
    advice = quant_patch.advise(quant, add)
    return found(
        Verdict.PROBLEM,
        "not-ignored",
        f"The router is quantised in the files, in {_layers(packed).en}: SGLang drops {first.module}.weight_packed and "
        f"the router stays at zero.{advice.words.en} Then convert again from BF16: the files must hold {first.name}.",
        f"文件中路由已被量化（{_layers(packed).zh}）：SGLang 会丢弃 {first.module}.weight_packed，路由保持为零。"
        f"{advice.words.zh}然后从 BF16 重新转换：文件中应为 {first.name}。",
        citations=(proof, *advice.citations),
        tables=advice.tables,
        proposals=advice.proposals,
    )


def _exposed(quant: QuantConfig, exposed: list[Matrix]) -> Finding:
    """Say that the files are right, and slime would pack the router at the first update."""
    first = exposed[0]
    advice = quant_patch.advise(quant, _additions(quant, exposed))
    engine = sglang_ignores(first.module, quant.ignore)
    but = ", though it does in SGLang (which matches the name without .weight)" if engine else ""
    but_zh = "，尽管在 SGLang 中有效（它匹配不带 .weight 的名字）" if engine else ""
    return found(
        Verdict.PROBLEM,
        "not-ignored",
        f"No ignore rule covers {first.name} for slime{but}: the first weight update packs the router of "
        f"{_layers(exposed).en}, SGLang drops it and it is zero.{advice.words.en} The files themselves are right.",
        f"ignore 中没有规则能在 slime 里覆盖 {first.name}{but_zh}："
        f"第一次权重更新就会量化路由（{_layers(exposed).zh}），SGLang 丢弃它，路由变为零。"
        f"{advice.words.zh}文件本身没有问题。",
        citations=advice.citations,
        tables=(*advice.tables, quant_patch.rules_table(quant, (first,))),
        proposals=advice.proposals,
    )


def _additions(quant: QuantConfig | None, matrices: list[Matrix]) -> tuple[str, ...]:
    """Return the rules to add; none when the list already covers them and only the files are wrong."""
    if quant is None or quant.kind != "compressed-tensors":
        return ()
    return quant_patch.rules_for(matrix.name for matrix in matrices if matrix.slime)


def _layers(matrices: list[Matrix]) -> Text:
    numbers = [match["layer"] for match in (LAYER.match(matrix.name) for matrix in matrices) if match]
    if not numbers:
        return Text(sanitise(matrices[0].name, 80), sanitise(matrices[0].name, 80))
    if len(numbers) == 1:
        return Text(f"layer {numbers[0]}", f"第 {numbers[0]} 层")
    span = f"{len(numbers)} layers ({numbers[0]} to {numbers[-1]})"
    return Text(span, f"第 {numbers[0]} 到 {numbers[-1]} 层，共 {len(numbers)} 层")


def _cite_ignore(plan: Plan) -> Citation:
    if plan.quant is None:
        return cite(plan.checkpoint.path, "no quantization_config")
    return plan.quant.cite(plan.quant.ignore_key)

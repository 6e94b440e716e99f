"""Whether quantization_config is complete, can be read by slime, and fits the files (debug guide, int4 1)."""

from __future__ import annotations

import os

from probes import quant_patch
from probes.quant_faults import Flaw, flaws
from probes.quant_plan import Plan, open_plan
from probes.quant_rules import slime_rule_matches
from probes.readers.json_places import bad_json
from runbook.evidence import Evidence
from runbook.finding import Finding, Table, Verdict, cite, found, not_applicable
from runbook.probe import Progress, probe
from runbook.text import Text, sanitise

CONFIG_LIMIT = 8 << 20
"""Bytes of a config.json that are read."""


@probe(
    "quant.config",
    needs="hf_checkpoint",
    answers=("valid", "invalid"),
    en="Is quantization_config complete, and does it fit the files?",
    zh="quantization_config 是否完整，与文件是否一致？",
    deadline=180.0,
)
def config(evidence: Evidence, report: Progress) -> Finding:
    """Check the config by itself, its ignore rules, and every packed tensor's pieces."""
    plan = open_plan(evidence, report)
    if isinstance(plan, Finding):
        return plan
    if plan.checkpoint.config is None:
        return _unreadable(plan)
    if not plan.quantised:
        return not_applicable("The checkpoint is not quantised.", "该 ckpt 没有量化。")
    every = flaws(plan)
    sure = [flaw for flaw in every if flaw.sure]
    tables = _tables(plan, every)
    if sure:
        more = len(sure) - 1
        return found(
            Verdict.PROBLEM,
            "invalid",
            f"quantization_config: {sure[0].words.en}" + (f" (and {more} more)." if more > 0 else "."),
            f"quantization_config：{sure[0].words.zh}" + (f"（另有 {more} 处）。" if more > 0 else "。"),
            citations=tuple(dict.fromkeys(flaw.citation for flaw in sure[:8])),
            tables=tables,
        )
    place = (
        plan.quant.cite("quant_method")
        if plan.quant is not None
        else cite(plan.checkpoint.path, "no quantization_config")
    )
    if every:
        return found(
            Verdict.WARNING,
            "valid",
            f"quantization_config fits the files; mind that {every[0].words.en}.",
            f"quantization_config 与文件一致；注意：{every[0].words.zh}。",
            citations=(every[0].citation,),
            tables=tables,
        )
    return found(
        Verdict.OK,
        "valid",
        "quantization_config is complete and fits every quantised tensor of the files.",
        "quantization_config 完整，且与文件中所有量化 tensor 一致。",
        citations=(place,),
        tables=tables,
    )


def _unreadable(plan: Plan) -> Finding:
    """Say why config.json cannot be read, when it is there."""
    path = os.path.join(plan.checkpoint.path, "config.json")
    try:
        with open(path, "rb") as file:
            data = file.read(CONFIG_LIMIT)
    except OSError:
        return not_applicable("There is no config.json beside the weights.", "权重旁没有 config.json。")
    fault = bad_json(path, data)
    if fault is None:
        return not_applicable("config.json is not an object.", "config.json 不是 JSON 对象。")
    hint = "; a regex needs its backslashes doubled in JSON" if "escape" in fault.what.lower() else ""
    return found(
        Verdict.PROBLEM,
        "invalid",
        f"config.json is not JSON: line {fault.line}, {fault.what}{hint}.",
        f"config.json 不是合法 JSON：第 {fault.line} 行，{fault.what}"
        + ("；正则里的反斜杠在 JSON 中要写两个。" if hint else "。"),
        citations=(fault.citation,),
    )


def _tables(plan: Plan, every: list[Flaw]) -> tuple[Table, ...]:
    """Show the lines to change, and the rules that cover nothing of this checkpoint."""
    quant, found_tables = plan.quant, []
    if quant is None:
        return ()
    replace = dict(flaw.replace for flaw in every if flaw.replace is not None)
    table = quant_patch.table(quant, (), replace) if replace else None
    if table:
        found_tables.append(table)
    idle = [
        (str(quant.line(quant.ignore_key, number) or ""), sanitise(quant_patch.written(rule), 160))
        for number, rule in enumerate(quant.ignore)
        if not any(slime_rule_matches(rule, name) for name in plan.weights)
    ]
    if idle and quant.kind == "compressed-tensors":
        title = Text(
            "Ignore rules that cover nothing of this checkpoint (no fault)",
            "对该 ckpt 不起作用的 ignore 规则（不是错误）",
        )
        found_tables.append(Table(title, ("line", "rule"), tuple(idle[:20])))
    return tuple(found_tables)

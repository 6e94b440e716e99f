"""What is wrong with a quantization_config by itself and against the files: pure functions for `quant.config`.

Two weights: a fault breaks a load or an update whatever the run does; an oddity is only worth knowing. Facts: slime
reads nothing but config_groups.group_0.weights.{group_size, symmetric} and packs 4 bits
(quantizer_compressed_tensors.py); pack-quantized stores weight_packed (32/bits values a word along the last axis),
weight_scale by group, weight_shape, and weight_zero_point when asymmetric; FP8 blocks have weight_scale_inv by block
(per tensor: weight_scale).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from probes import quant_patch
from probes.hf_checkpoint import SMALL_FLOATS
from probes.quant_plan import LOADED_PACKED, Plan, in_prediction_layer
from probes.quant_rules import compiled, repaired, slime_ignores, slime_rule_matches
from probes.readers.quant_config import Group, QuantConfig
from probes.readers.safetensors_header import Entry
from runbook.finding import Citation, cite
from runbook.text import Text, sanitise

SCALES = ("weight_scale", "weight_scale_inv", "scales")


@dataclass(frozen=True)
class Flaw:
    """One flaw. sure: it breaks something. words: a clause. replace: position in the ignore list and its repair."""

    sure: bool
    words: Text
    citation: Citation
    replace: tuple[int, str] | None = None


def flaws(plan: Plan) -> list[Flaw]:
    """Return every flaw of a quantised checkpoint, sure ones first; at most one of a sort."""
    quant = plan.quant
    if quant is None:
        return list(_no_config(plan))
    found = [*_partners(plan)] if plan.whole else []
    if quant.kind == "compressed-tensors":
        found += [*_broken_rules(plan, quant), *_groups(quant), *_sizes(plan, quant), *_against_engine(plan)]
    elif quant.kind == "fp8":
        found += _fp8(plan, quant)
    return sorted(found, key=lambda flaw: not flaw.sure)


def cite_tensor(plan: Plan, name: str) -> Citation:
    """Cite the file that holds a tensor, with the parts it has there."""
    weight = plan.weights[name]
    parts = ", ".join(
        f"{part} {entry.dtype} {'×'.join(map(str, entry.shape)) or 'scalar'}" if entry else part
        for part, entry in weight.parts.items()
    )
    return cite(os.path.join(plan.checkpoint.path, weight.file), f"{name.removesuffix('.weight')}: {parts}")


def _no_config(plan: Plan) -> Iterator[Flaw]:
    packed = [matrix.name for matrix in plan.matrices if matrix.packed]
    if packed:
        names = plan.weights[packed[0]].parts
        sure = "weight_packed" in names or "qweight" in names
        words = Text(
            f"the files hold {len(packed)} quantised tensors and config.json has no quantization_config",
            f"文件中有 {len(packed)} 个量化 tensor，但 config.json 没有 quantization_config",
        )
        yield Flaw(sure, words, cite_tensor(plan, packed[0]))


def _broken_rules(plan: Plan, quant: QuantConfig) -> Iterator[Flaw]:
    """Yield rules that do not compile, and rules whose escaping keeps them from matching what they were meant for."""
    matrices = plan.matrices
    for number, rule in enumerate(quant.ignore):
        line = quant.line(quant.ignore_key, number)
        shown = sanitise(quant_patch.written(rule), 120)
        place = quant.cite(quant.ignore_key, number)
        if rule.startswith("re:") and compiled(rule[3:]) is None:
            words = Text(
                f"line {line}: {shown} is not a regular expression", f"第 {line} 行：{shown} 不是合法的正则表达式"
            )
            yield Flaw(True, words, place)
            continue
        fixed = repaired(rule)
        if fixed is None or any(slime_rule_matches(rule, one.name) for one in matrices):
            continue
        meant = [one.name for one in matrices if slime_rule_matches(fixed, one.name)]
        exposed = [name for name in meant if not slime_ignores(name, quant.ignore)]
        if meant:
            better = sanitise(quant_patch.written(fixed), 120)
            words = Text(
                f"line {line}: {shown} matches nothing; {better} would match {len(meant)} tensors",
                f"第 {line} 行：{shown} 不匹配任何 tensor；{better} 会匹配 {len(meant)} 个",
            )
            yield Flaw(bool(exposed), words, place, (number, fixed))


def _partners(plan: Plan) -> Iterator[Flaw]:
    """Yield packed values without scales, scales without values, and values stored twice."""
    for name, weight in plan.weights.items():
        parts = weight.parts
        if not name.endswith(".weight") or (len(parts) == 1 and "weight" in parts):
            continue
        values = [part for part in ("weight_packed", "qweight", "weight") if part in parts]
        if not values:
            words = Text(f"{name} has {', '.join(parts)} and no values", f"{name} 有 {', '.join(parts)} 却没有数值")
        elif len(values) > 1:
            words = Text(f"{name} is stored both plain and packed", f"{name} 同时有未量化和量化两份")
        elif values[0] != "weight" and not any(scale in parts for scale in SCALES):
            words = Text(f"{name} is packed and has no scale", f"{name} 已打包但没有 scale")
        else:
            continue
        yield Flaw(True, words, cite_tensor(plan, name))
        return


def _groups(quant: QuantConfig) -> Iterator[Flaw]:
    """Yield what slime's quantiser cannot read of config_groups."""
    group = quant.group()
    if not quant.groups:
        yield Flaw(True, Text("there are no config_groups", "没有 config_groups"), quant.cite("config_groups"))
    elif group is None:
        names = ", ".join(sanitise(one.name, 30) for one in quant.groups)
        words = Text(
            f"there is no group_0 ({names}), the only one slime reads", f"没有 group_0（{names}），而 slime 只读它"
        )
        yield Flaw(True, words, quant.cite("config_groups"))
    elif _is_int4(quant, group):
        lacks = [
            key for key, value in (("group_size", group.group_size), ("symmetric", group.symmetric)) if value is None
        ]
        if lacks and group.strategy in (None, "group"):
            words = Text(
                f"group_0.weights has no {lacks[0]}, which slime reads", f"group_0.weights 没有 slime 要读的 {lacks[0]}"
            )
            yield Flaw(True, words, quant.cite("config_groups", "group_0"))
        elif group.num_bits != 4 or group.strategy not in (None, "group"):
            words = Text(
                f"slime's updates pack 4 bits by group; this is {group.num_bits} bits by {group.strategy}",
                f"slime 更新时按组打包 4 bit；这里是 {group.num_bits} bit，策略 {group.strategy}",
            )
            yield Flaw(False, words, quant.cite("config_groups", "group_0", "weights"))
    else:
        words = Text(
            f"{quant.format or 'this format'} is not INT4, and slime's updates pack INT4 whatever it says",
            f"{quant.format or '该格式'} 不是 INT4，而 slime 更新时一律打包 INT4",
        )
        yield Flaw(False, words, quant.cite("format"))
    if len(quant.groups) > 1 and group is not None:
        words = Text(
            "slime reads only group_0; the other groups count for SGLang alone",
            "slime 只读 group_0；其他组只对 SGLang 有效",
        )
        yield Flaw(False, words, quant.cite("config_groups"))


def _is_int4(quant: QuantConfig, group: Group) -> bool:
    return quant.format == "pack-quantized" or (not quant.format and group.type == "int")


def _sizes(plan: Plan, quant: QuantConfig) -> Iterator[Flaw]:
    """Yield packed tensors whose pieces do not fit group_0, and matrices that its group size does not divide."""
    group = quant.group()
    if group is None or not _is_int4(quant, group) or len(quant.groups) > 1:
        return
    bits, size, whole = group.num_bits or 4, group.group_size, plan.whole
    if not 0 < bits <= 32:
        yield Flaw(
            True,
            Text(f"num_bits {bits} is impossible", f"num_bits {bits} 不可能成立"),
            quant.cite("config_groups", "group_0"),
        )
        return
    for matrix in plan.matrices:
        parts = plan.weights[matrix.name].parts
        packed, scale = parts.get("weight_packed"), parts.get("weight_scale")
        words = None
        if isinstance(packed, Entry):
            words = _misfit(matrix.name, parts, (packed, scale), group, whole=whole)
        elif matrix.slime and matrix.kind in LOADED_PACKED and size and size > 0:
            shape = plan.weights[matrix.name].shape
            if shape and shape[-1] % size:
                words = Text(
                    f"group_size {size} does not divide the {shape[-1]} columns of {matrix.name}",
                    f"group_size {size} 不能整除 {matrix.name} 的 {shape[-1]} 列",
                )
        if words is not None:
            yield Flaw(True, words, cite_tensor(plan, matrix.name))
            return


def _misfit(
    name: str, parts: dict[str, Entry | None], pair: tuple[Entry, Entry | None], group: Group, *, whole: bool
) -> Text | None:
    """Say how the pieces of one packed tensor contradict each other or the config. pair: packed values and scales."""
    if group.symmetric is True and "weight_zero_point" in parts:
        return Text(f"symmetric is true and {name} has zero points", f"symmetric 为 true，但 {name} 带有 zero_point")
    if group.symmetric is False and whole and "weight_zero_point" not in parts:
        return Text(
            f"symmetric is false and {name} has no zero points", f"symmetric 为 false，但 {name} 没有 zero_point"
        )
    packed, scale, size = *pair, group.group_size
    if scale is None or len(packed.shape) != 2 or len(scale.shape) != 2 or size is None or size <= 0:
        return None
    values = 32 // (group.num_bits or 4)
    most = packed.shape[1] * values
    fewest = most - values + 1
    if packed.dtype != "I32" or (
        packed.shape[0] == scale.shape[0] and ceil(fewest / size) <= scale.shape[1] <= ceil(most / size)
    ):
        return None
    shown = f"{scale.shape[0]}×{scale.shape[1]}"
    return Text(
        f"{name} has {packed.shape[0]}×{most} values and scales of {shown}: not groups of {size}",
        f"{name} 有 {packed.shape[0]}×{most} 个值，scale 为 {shown}：不是每组 {size} 个",
    )


def _against_engine(plan: Plan) -> Iterator[Flaw]:
    """Yield where the files hold a Linear in another form than the config makes SGLang build it."""
    if not plan.known:
        return
    for matrix in plan.of(*LOADED_PACKED):
        if in_prediction_layer(plan, matrix.name) or matrix.sglang == matrix.packed:
            continue
        place = cite_tensor(plan, matrix.name)
        if matrix.sglang is None:
            words = Text(
                f"the ignore list treats {matrix.module} apart from what SGLang fuses it with, which may raise",
                f"ignore 对 {matrix.module} 与 SGLang 会融合的其他投影处理不一致，可能报错",
            )
        elif matrix.packed:
            words = Text(
                f"{matrix.name} is packed in the files, and an ignore rule makes SGLang hold it plain",
                f"文件中 {matrix.name} 已打包，但 ignore 规则使 SGLang 按未量化持有",
            )
        else:
            words = Text(
                f"{matrix.name} is plain in the files, and no ignore rule says so: SGLang waits for it packed",
                f"文件中 {matrix.name} 未量化，但没有 ignore 规则：SGLang 期待打包形式",
            )
        yield Flaw(matrix.sglang is not None, words, place)
        return


def _fp8(plan: Plan, quant: QuantConfig) -> Iterator[Flaw]:
    """Yield FP8 tensors without the scales that the config speaks of, and a config of FP8 over plain files."""
    small = [
        name
        for name, weight in plan.weights.items()
        if (own := weight.parts.get("weight")) and own.dtype in SMALL_FLOATS
    ]
    plain = all(header.readable for header in plan.checkpoint.headers.values())
    if not small and plan.checkpoint.headers and plain:
        words = Text(
            "config.json says FP8 and no tensor of the files is FP8", "config.json 为 FP8，但文件中没有 FP8 tensor"
        )
        yield Flaw(True, words, quant.cite("quant_method"))
    block = quant.block
    for name in small if plan.whole else ():
        parts = plan.weights[name].parts
        weight = parts["weight"]
        scale = parts.get("weight_scale_inv") or parts.get("weight_scale")
        if scale is None:
            wanted = "weight_scale_inv" if block else "weight_scale"
            words = Text(f"{name} is FP8 and has no {wanted}", f"{name} 是 FP8，但没有 {wanted}")
        elif block and weight and len(weight.shape) == 2 and len(scale.shape) == 2:
            shape = (ceil(weight.shape[0] / block[0]), ceil(weight.shape[1] / block[1]))
            if scale.shape == shape:
                continue
            has, block_size = f"{scale.shape[0]}×{scale.shape[1]}", f"{block[0]}×{block[1]}"
            wants = f"{shape[0]}×{shape[1]}"
            words = Text(
                f"the scales of {name} are {has}, blocks of {block_size} need {wants}",
                f"{name} 的 scale 为 {has}，{block_size} 分块需要 {wants}",
            )
        else:
            continue
        yield Flaw(True, words, cite_tensor(plan, name))
        return

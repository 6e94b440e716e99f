"""Words, tables and the plot of `dump.join`: what the joined dumps show, token by token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from probes.dump_where import Place, Tokens
from probes.thresholds import metrics
from runbook.finding import Curve, Plot, Table
from runbook.text import Text, counted

if TYPE_CHECKING:
    from probes.dump_join import Told

BINS = 40
_WORST = 20
_PLACES = 12


@dataclass(frozen=True)
class Worst:
    """One token: sample index, place in the response, token id, and the two log-probs."""

    index: int
    place: int
    token: int | None
    trainer: float
    engine: float


def worst_tokens(tokens: Tokens, most: int) -> list[Worst]:
    """Return the tokens that are furthest apart."""
    import numpy as np

    rows = []
    for at in np.argsort(-tokens.diff, kind="stable")[:most]:
        pair, place = tokens.twins[int(tokens.sample[at])].pair, int(tokens.held[at])
        if pair.trainer is None or pair.engine is None:
            continue
        token = None if pair.tokens is None else int(pair.tokens[place])
        rows.append(Worst(pair.index, place, token, float(pair.trainer[place]), float(pair.engine[place])))
    return rows


def words(told: Told) -> tuple[str, str]:
    """Return the main sentence, without its full stop."""
    rollout = told.sides.whole.rollout
    name = "the train dump" if rollout is None else f"rollout {rollout}"
    name_zh = "train dump" if rollout is None else f"rollout {rollout}"
    mean, place, answer = told.tokens.mean, told.place, told.answer
    if answer == "misaligned" and told.shift:
        late, late_zh = ("later", "后移") if told.shift > 0 else ("earlier", "前移")
        return (
            (
                f"In {name} log_probs fit rollout_log_probs one token {late}: one side is shifted "
                f"({mean:.3g} nat/token as they stand)"
            ),
            f"{name_zh} 中 log_probs {late_zh}一个 token 才与 rollout_log_probs 吻合（现差 {mean:.3g} nat/token）",
        )
    if place is not None:
        return (
            (
                f"In {name} {place.share:.0%} of the difference sits {place.detail[0]} ({place.tokens} tokens of "
                f"{counted(place.samples, 'sample')}): {place.inside:.3g} nat/token there, "
                f"{place.outside:.3g} elsewhere"
            ),
            (
                f"{name_zh} 中 {place.share:.0%} 的差异集中在{place.detail[1]}（{place.samples} 个样本、"
                f"{place.tokens} 个 token）：该处 {place.inside:.3g} nat/token，其余 {place.outside:.3g}"
            ),
        )
    return _elsewhere(answer, mean, name, name_zh, told.tokens)


def _elsewhere(answer: str, mean: float, name: str, name_zh: str, tokens: Tokens) -> tuple[str, str]:
    """Return the sentence of a difference that has no place, or of none."""
    facts = f"{mean:.3g} nat/token over {len(tokens.diff)} tokens of {counted(len(tokens.twins), 'sample')}"
    facts_zh = f"{len(tokens.twins)} 个样本、{len(tokens.diff)} 个 token 上平均 {mean:.3g} nat/token"
    texts = {
        "everywhere": (
            f"In {name} trainer and engine differ everywhere, at no place more than at others: {facts}",
            f"{name_zh} 中差异遍布各处，没有集中的位置：{facts_zh}",
        ),
        "misaligned": (
            f"In {name} fields do not have the length of their response",
            f"{name_zh} 中有字段与 response 长度不符",
        ),
        "other-tokens": (
            f"In {name} samples were trained on other tokens than were generated",
            f"{name_zh} 中有样本训练所用的 token 与生成的不同",
        ),
    }
    if answer in texts:
        return texts[answer]
    if mean > metrics.GAP_AGREE.value:
        return (
            f"Trainer and engine differ in {name} by what fp8 or MoE explains, at no place more: {facts}",
            f"{name_zh} 中差异在 fp8 或 MoE 可解释的范围内，且没有集中的位置：{facts_zh}",
        )
    return f"Trainer and engine agree in {name}, and at every place: {facts}", f"{name_zh} 各处均一致：{facts_zh}"


def remarks(told: Told) -> tuple[str, str]:
    """Return what else is told: other tokens, misfits, partners and shards that are missing."""
    joined, en, zh = told.sides.joined, "", ""
    if joined.strangers:
        first = joined.strangers[0].pair
        verb = "holds" if len(joined.strangers) == 1 else "hold"
        en += f"; {counted(len(joined.strangers), 'sample')} {verb} other tokens"
        en += f" (sample {first.index} from token {first.first_other})"
        zh += f"；{len(joined.strangers)} 个样本 token 不同（样本 {first.index} 自第 {first.first_other} 个起）"
    misfits = [twin.pair for twin in joined.twins if twin.pair.troubles and twin.pair.first_other is None]
    if misfits:
        trouble = misfits[0].troubles[0]
        what = f"{trouble.field} has {trouble.length} for {trouble.wanted} tokens"
        if not trouble.of_length:
            what = f"{trouble.field} differs between the dumps"
        verb = "does" if len(misfits) == 1 else "do"
        en += f"; {counted(len(misfits), 'sample')} {verb} not fit (sample {misfits[0].index}: {what})"
        zh += f"；{len(misfits)} 个样本字段不符（样本 {misfits[0].index}：{trouble.field}）"
    for missing in told.sides.whole.missing:
        en, zh = f"{en}; missing: {missing.en}", f"{zh}；缺失：{missing.zh}"
    if joined.alone:
        en, zh = (
            f"{en}; {counted(joined.alone, 'train sample')} without a rollout sample",
            f"{zh}；{joined.alone} 个训练样本没有对应的 rollout 样本",
        )
    if told.sides.whole.unordered:
        en, zh = (
            f"{en}; joined by tokens, since the train dump holds no sample index",
            f"{zh}；train dump 无样本编号，按 token 匹配",
        )
    return en, zh


def pictures(told: Told, all_told: list[Told]) -> tuple[tuple[Table, ...], tuple[Plot, ...]]:
    """Return the tables and the plot."""
    tables = [_places(told.places), _worst(told.tokens), _samples(told.tokens)]
    if len(all_told) > 1:
        tables.append(_rollouts(all_told))
    return tuple(table for table in tables if table.rows), _plot(told)


def _places(places: list[Place]) -> Table:
    rows = tuple(
        (
            place.detail[0], str(place.tokens), str(place.samples), f"{place.inside:.3g}", f"{place.outside:.3g}",
            f"{place.share:.1%}", "yes" if place.tells else "",
        )
        for place in places[:_PLACES]
    )  # fmt: skip
    columns = ("place", "tokens", "samples", "mean |diff| there", "elsewhere", "share", "stands out")
    return Table(Text("Where the difference sits", "差异的位置"), columns, rows)


def _worst(tokens: Tokens) -> Table:
    rows = tuple(
        (
            str(row.index), str(row.place), "" if row.token is None else str(row.token), f"{row.trainer:.4f}",
            f"{row.engine:.4f}", f"{abs(row.trainer - row.engine):.4f}",
        )
        for row in worst_tokens(tokens, _WORST)
    )  # fmt: skip
    columns = ("sample", "token", "id", "log_probs", "rollout_log_probs", "|diff|")
    return Table(Text("Tokens furthest apart", "差异最大的 token"), columns, rows)


def _samples(tokens: Tokens) -> Table:
    import numpy as np

    count = len(tokens.twins)
    sums = np.bincount(tokens.sample, tokens.diff, count)
    sizes = np.bincount(tokens.sample, minlength=count)
    means = sums / np.maximum(sizes, 1)
    rows = []
    for at in np.argsort(-means, kind="stable")[:_WORST]:
        twin = tokens.twins[int(at)]
        first = twin.pair.first_disagreement(metrics.GAP_CI.value)
        rows.append(
            (
                str(twin.pair.index),
                str(int(sizes[at])),
                f"{means[at]:.3g}",
                "" if first is None else str(first),
                "" if twin.truncated is None else "yes" if twin.truncated else "",
                "" if twin.rank is None else str(twin.rank),
            )
        )
    columns = ("sample", "tokens", "mean |diff|", f"first over {metrics.GAP_CI.value:g}", "truncated", "DP rank")
    return Table(Text("Samples by distance", "各样本的差距"), columns, tuple(rows))


def _rollouts(told: list[Told]) -> Table:
    rows = tuple(
        (
            "" if one.sides.whole.rollout is None else str(one.sides.whole.rollout),
            str(len(one.tokens.twins)),
            f"{one.tokens.mean:.3g}",
            one.answer,
        )
        for one in told
    )
    return Table(Text("Rollouts", "各 rollout"), ("rollout", "samples", "mean |diff|", "where"), rows)


def _plot(told: Told) -> tuple[Plot, ...]:
    """Return mean |diff| over the relative position in the response."""
    import numpy as np

    tokens = told.tokens
    known = tokens.response >= 0
    if int(known.sum()) < BINS:
        return ()
    length = (tokens.response + tokens.left + 1)[known]
    bins = np.minimum((tokens.response[known] * BINS) // np.maximum(length, 1), BINS - 1).astype(int)
    sums, counts = np.bincount(bins, tokens.diff[known], BINS), np.bincount(bins, minlength=BINS)
    points = tuple((100.0 * (at + 0.5) / BINS, float(sums[at] / counts[at])) for at in range(BINS) if counts[at])
    limits = (
        (metrics.GAP_AGREE.value, Text("usual in bf16", "bf16 常见")),
        (metrics.GAP_CI.value, Text("slime's CI limit", "slime CI 上限")),
    )
    title = Text("Mean |diff| along the response", "沿 response 的平均差异")
    return (Plot(title, "% of the response", "nat/token", (Curve("mean |diff|", points),), (), limits),)

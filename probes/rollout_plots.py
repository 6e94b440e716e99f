"""Draws the rollouts of a run over their numbers: shares, log-probs and lengths, the first bad one marked.

Invariants: three rollouts or more, for two make no course; numbers as slime gives them; where one has none, no plot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probes.samples import Verdicts
from probes.thresholds import samples as limit
from probes.thresholds import text as text_limit
from runbook.finding import Curve, Plot
from runbook.text import Text

LEAST = 3


def rollout_plots(rollouts: Sequence[tuple[int | None, Verdicts]], bad: int | None) -> tuple[Plot, ...]:
    """Return the plots of these rollouts (number, judged samples). bad: number of the first bad one."""
    known = sorted(((number, verdicts) for number, verdicts in rollouts if number is not None), key=lambda one: one[0])
    if len(known) < LEAST or len(known) != len(rollouts) or len({number for number, _ in known}) < len(known):
        return ()
    marks = () if bad is None else ((float(bad), Text("first bad rollout", "首个异常 rollout")),)

    def curve(name: str, value: Callable[[Verdicts], float | None]) -> Curve:
        points = ((float(number), value(verdicts)) for number, verdicts in known)
        return Curve(name, tuple((x, y) for x, y in points if y is not None))

    shares = (
        curve("garbled", lambda verdicts: verdicts.garbled_share),
        curve("truncated", lambda verdicts: verdicts.truncated_share),
    )
    partly = ((limit.PARTLY_SHARE.value, Text("partly garbled from here", "由此起为部分乱码")),)
    log_prob = curve("mean rollout log-prob", lambda verdicts: verdicts.log_prob)
    random = ((text_limit.DRAWN_AT_RANDOM.value, Text("drawn at random below", "低于此值近乎随机")),)
    length = curve("mean response length", lambda verdicts: verdicts.mean_length)
    plots = [
        Plot(
            Text("Garbled and truncated samples", "乱码与截断样本"), "rollout", "of the samples", shares, marks, partly
        )
    ]
    if len(log_prob.points) >= LEAST:
        low = min(y for _, y in log_prob.points if y is not None) <= text_limit.DRAWN_AT_RANDOM.value
        title = Text("Log-prob of the engine's own tokens", "引擎对自身词元的 log-prob")
        plots.append(Plot(title, "rollout", "nat/token", (log_prob,), marks, random if low else ()))
    if any(y for _, y in length.points):
        plots.append(Plot(Text("Response length", "回复长度"), "rollout", "token", (length,), marks))
    return tuple(plots)

"""What the logs print over the steps: how many runs, which steps are missing, where a run was resumed; judges nothing.

A run that begins at the step behind another's last, or goes back into its steps, resumed it; one that begins at 0 again
is another run. What one log repeats of another (a worker's own log beside the driver's) counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from probes import logs, metric_runs
from probes.metric_plots import plot
from probes.readers import metrics
from probes.readers.metrics import Record, Run
from probes.thresholds import metrics as limits
from runbook.evidence import Evidence
from runbook.finding import Finding, Plot, Table, Verdict, found
from runbook.probe import Progress, probe
from runbook.text import Text, counted, sanitise

_COLUMNS = (
    "train/kl_loss", "train/ppo_kl", "train/grad_norm", "train/train_rollout_logprob_abs_diff", "rollout/log_probs",
    "rollout/ref_log_probs", "rollout/rollout_log_probs", "rollout/raw_reward", "rollout/response_lengths",
    "rollout/truncated",
)  # fmt: skip
_ROWS = 16


@probe(
    "metrics.overview",
    needs="log",
    answers=("complete", "gaps", "resumed", "several-runs"),
    en="Which steps do the logs print, of how many runs?",
    zh="日志打印了哪些步，属于几次运行？",
    deadline=logs.DEADLINE,
)
def overview(evidence: Evidence, report: Progress) -> Finding:
    """Lay the main numbers of the furthest run side by side, and tell runs, resumes and missing steps apart."""
    read = metric_runs.read(evidence, report, _COLUMNS)
    runs = [run for run in _distinct(read.runs) if run.steps or run.rollouts]
    if not runs:
        return metric_runs.no_metrics(read)
    links = [_link(before, after) for before, after in pairwise(runs)]
    gaps = [gap for run in runs for gap in _gaps(run)]
    shown = max(runs, key=metric_runs.reach)
    answer, en, zh = _words(runs, links, gaps)
    if read.cut:
        en += f" {read.cut} further metric lines were left out: too many."
        zh += f" 另有 {read.cut} 行指标因过多未读入。"
    cited = [gaps[0][1]] if gaps else [run.edges[0] for run in runs[-2:]]
    return found(
        Verdict.WARNING if answer == "gaps" else Verdict.OK,
        answer,
        en,
        zh,
        citations=tuple(metrics.citation(each) for each in cited),
        tables=(_runs_table(runs, links), _table(shown)),
        plots=_plots(shown),
    )


def _distinct(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the runs but for those whose steps and numbers another log has printed as well."""
    seen: set[tuple[tuple[int, tuple[tuple[str, float], ...]], ...]] = set()
    for run in runs:
        records = run.steps or run.rollouts
        mark = tuple((each.number, tuple(sorted(each.values.items()))) for each in records[:3])
        if mark and mark in seen:
            continue
        seen.add(mark)
        yield run


def _link(before: Run, after: Run) -> str:
    """Return how a run follows another: "resumed" or "new"."""
    kind = "step" if before.steps and after.steps else "rollout"
    ends, starts = before.of(kind), after.of(kind)
    if not ends or not starts:
        return "new"
    return "resumed" if 0 < starts[0].number <= ends[-1].number + 1 else "new"


def _gaps(run: Run) -> Iterator[tuple[str, Record]]:
    """Yield the steps and rollouts that are missing between printed ones, with the record behind the hole."""
    for kind in ("step", "rollout"):
        records = run.of(kind)
        for before, after in pairwise(records):
            first, last = before.number + 1, after.number - 1
            if first <= last:
                yield f"{kind} {first}" if first == last else f"{kind} {first}-{last}", after


def _words(runs: Sequence[Run], links: Sequence[str], gaps: Sequence[tuple[str, Record]]) -> tuple[str, str, str]:
    """Return the answer and what is said."""
    spans = "; ".join(_span(run) for run in runs[-4:])
    resumed, new = links.count("resumed"), links.count("new")
    en, zh = f"The logs print {spans}.", f"日志打印了 {spans}。"
    if gaps:
        names = ", ".join(name for name, _ in gaps[: int(limits.GAPS_SHOWN.value)])
        return "gaps", f"{en} Missing between printed lines: {names}.", f"{zh} 中间缺少：{names}。"
    if new:
        return "several-runs", f"{en} They are of {new + 1} runs.", f"{zh} 共 {new + 1} 次运行。"
    if resumed:
        return "resumed", f"{en} The run was resumed {counted(resumed, 'time')}.", f"{zh} 该任务续训了 {resumed} 次。"
    return "complete", f"{en} None is missing in between.", f"{zh} 中间没有缺失。"


def _span(run: Run) -> str:
    parts = [f"{kind} {each[0].number}-{each[-1].number}" for kind in ("rollout", "step") if (each := run.of(kind))]
    return ", ".join(parts)


def _runs_table(runs: Sequence[Run], links: Sequence[str]) -> Table:
    """List the runs with where they begin."""
    rows = tuple(
        (sanitise(run.edges[0].file.path, 80), str(run.edges[0].line or ""), _span(run), link)
        for run, link in zip(runs, ("first", *links), strict=True)
    )
    return Table(Text("Runs", "运行"), ("log", "line", "printed", "follows as"), rows[-_ROWS:])


def _table(run: Run) -> Table:
    """Lay the main numbers of some steps side by side: the first, the last, and evenly between them."""
    numbers: dict[int, dict[str, float]] = {}
    for each in [*run.rollouts, *run.managers, *run.steps]:
        numbers.setdefault(each.number, {}).update(each.values)
    keys = [key for key in _COLUMNS if any(key in values for values in numbers.values())]
    order = sorted(numbers)
    picked = sorted({round(place * (len(order) - 1) / (_ROWS - 1)) for place in range(_ROWS)}) if order else []
    rows = tuple(
        (
            str(order[place]),
            *(f"{numbers[order[place]][key]:.4g}" if key in numbers[order[place]] else "" for key in keys),
        )
        for place in picked
    )
    return Table(
        Text("Main numbers by step or rollout number", "各步（rollout）主要指标"),
        ("number", *(key.partition("/")[2] for key in keys)),
        rows,
    )


def _plots(run: Run) -> tuple[Plot, ...]:
    """Return the main numbers over steps and rollouts, each unit a plot of its own."""
    return (
        *plot(Text("KL divergence", "KL 散度"), run.steps, _COLUMNS[:2], unit="nat/token"),
        *plot(Text("Gradient norm", "梯度范数"), run.steps, _COLUMNS[2:3]),
        *plot(Text("Trainer against engine", "训练侧与推理侧之差"), run.steps, _COLUMNS[3:4], unit="nat/token"),
        *plot(Text("Mean log-prob per token", "每 token 平均 log-prob"), run.rollouts, _COLUMNS[4:7], x="rollout",
              unit="nat/token"),
        *plot(Text("Mean raw reward", "平均 raw_reward"), run.rollouts, _COLUMNS[7:8], x="rollout"),
        *plot(Text("Response length", "回复长度"), run.rollouts, _COLUMNS[8:9], x="rollout", unit="tokens"),
        *plot(Text("Truncated responses", "被截断的回复"), run.rollouts, _COLUMNS[9:], x="rollout"),
    )  # fmt: skip

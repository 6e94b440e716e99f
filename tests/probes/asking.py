"""Ask a probe, and check what holds for every finding; and the lines of which small logs are made."""

from __future__ import annotations

from pathlib import Path

from runbook.evidence import Evidence
from runbook.finding import Finding
from runbook.probe import Probe, silent
from tests.helpers import check_citations, evidence_of

DATA = Path(__file__).parents[1] / "data" / "logs"
"""Logs of real programs, most of them cut to what matters."""

STAMP = "[2026-08-21 10:00:00] "
HEALTHY = ("healthy", "ray-ok", "two-jobs")
"""Logs in which no probe may find a problem."""


def ask(probe: Probe, *paths: Path, **more: Path | str) -> Finding:
    """Run a probe over logs and, by slot, other evidence."""
    return ask_of(probe, evidence_of(*(("log", path) for path in paths), *more.items()))


def ask_of(probe: Probe, evidence: Evidence) -> Finding:
    """Run a probe; the citations of its finding must be true and its answer declared."""
    finding = probe.run(evidence, silent)
    check_citations(finding)
    assert finding.answer is None or finding.answer in probe.answers
    assert (finding.answer is not None) == finding.verdict.decides
    assert finding.summary.en
    assert finding.summary.zh
    return finding


def ask_text(probe: Probe, folder: Path, *lines: str) -> Finding:
    """Run a probe over a log of these lines, set in an ordinary log before and after."""
    ordinary = f"(RolloutManager pid=3) {STAMP}rollout.py:1 - Router launched at 10.0.0.1:3000\n"
    path = folder / "job.log"
    path.write_text(ordinary + "\n".join(lines) + "\n" + ordinary)
    return ask(probe, path)


def word(finding: Finding) -> str:
    """Return verdict and answer in one word, such as "problem:nan" or "unknown"."""
    return finding.verdict.value + (f":{finding.answer}" if finding.answer else "")


def step(number: int, **values: float) -> str:
    """Return a step line; keys are those behind "train/"."""
    return f"{STAMP}model.py:918 - step {number}: " + repr({f"train/{key}": value for key, value in values.items()})


def rollout(number: int, **values: float) -> str:
    """Return a rollout line; keys are those behind "rollout/"."""
    body = repr({f"rollout/{key}": value for key, value in values.items()})
    return f"{STAMP}train_metric_utils.py:135 - rollout {number}: {body}"


def manager(number: int, **values: float) -> str:
    """Return the rollout manager's perf line."""
    body = {"rollout/response_len/mean": 300.0, **{f"rollout/{key}": value for key, value in values.items()}}
    return f"{STAMP}rollout_metrics.py:268 - perf {number}: {body!r}"


def table(**values: object) -> list[str]:
    """Return an arguments table as Megatron prints it."""
    rows = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in values.items()]
    return [f"{'-' * 24} arguments {'-' * 24}", *rows, f"{'-' * 20} end of arguments {'-' * 21}"]

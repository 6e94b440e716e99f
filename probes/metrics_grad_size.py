"""Whether the gradient norm is beyond what any healthy backward pass gives (debug guide 1.3).

`metrics.grad_norm` says what is unusual; this says what is proof. A norm of tens may come from data, loss or batch.
"""

from __future__ import annotations

from probes import logs
from probes.metrics_grad_norm import grad_norm
from runbook.evidence import Evidence
from runbook.finding import Finding, Verdict, found
from runbook.probe import Progress, probe

_ORDER = ("explainable", "impossible")


@probe(
    "metrics.grad_size",
    needs="log",
    answers=_ORDER,
    en="Is the gradient norm beyond any healthy backward pass?",
    zh="grad_norm 是否超出任何正常 backward 的范围？",
    deadline=logs.DEADLINE,
)
def grad_size(evidence: Evidence, report: Progress) -> Finding:
    """Take the proof that the first steps of a run give, else say that what is large is no proof."""
    told = grad_norm.run(evidence, report)
    if told.answer is None:
        return told
    sure = told.verdict is Verdict.PROBLEM
    return found(
        told.verdict,
        "impossible" if sure else "explainable",
        told.summary.en,
        told.summary.zh,
        citations=told.citations,
        measurements=told.measurements,
        plots=told.plots,
    )

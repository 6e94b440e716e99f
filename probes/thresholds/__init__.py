"""Every number that a probe judges by, one module a topic, each with its unit and its source.

`metrics`: what logs print, and log-probs of dumps. `text`: when one response is garbage. `samples`: when a rollout is.
`evidence`: when a file or a list counts as what it looks like. `tensors`: when contents of weights are remarkable.
`memory`: what the numbers of a failed allocation come to, and when memory drifts.
`template`: when prompts or loss masks break the tokenizer's chat template.
`places`: when a difference of log-probs sits at one place. `browse`: which tokens are marked for who reads them.
Budgets (how many bytes, files or rows a probe reads or shows) are no judgement and stand beside the code that spends
them.

Invariant: the source says who fixed the number. One that no program and no published run fixes begins with "chosen: "
and proves nothing alone: a verdict that rests on it is a warning; one that was counted on our own samples begins with
"measured: ", says on how many, and proves as little alone. One of ours from which on no healthy run is
conceivable begins with "beyond doubt: " and the reason, and may carry a problem. `tests/helpers.py` holds every finding
of every test to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from runbook.finding import Measurement

CHOSEN = "chosen: "
MEASURED = "measured: "
BEYOND_DOUBT = "beyond doubt: "


@dataclass(frozen=True)
class Threshold:
    """A limit, its unit and where it comes from."""

    value: float
    unit: str
    source: str

    @property
    def proves(self) -> bool:
        """Return whether a verdict `problem` may rest on it."""
        return not self.source.startswith((CHOSEN, MEASURED))

    def measure(self, name: str, value: float) -> Measurement:
        """Return `value` as a measurement that is judged by this threshold."""
        return Measurement(name, value, self.unit, self.value, self.source)

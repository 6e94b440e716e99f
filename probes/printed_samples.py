"""The samples that slime prints into its log, by rollout, as judged responses.

The rollout manager prints `First rollout sample: [...]` when the first group of a rollout is done and `Finish rollout:
[...]` when the last is, then its own `perf N:` line (slime/rollout/sglang_rollout.py, slime/observability/
rollout_metrics.py). Rollouts follow one another, so a `First` line begins a new one and the `perf` line behind it says
its number; without that line the rollout is named by its place in the log. Invariant: the same sample in two logs (the
driver's and the worker's own) counts once.
"""

from __future__ import annotations

import ast
import hashlib
import re
from dataclasses import dataclass, field

from probes import logs
from probes.readers import metrics
from probes.readers.logscan import Coverage, Hit, signature
from probes.samples import Judged
from probes.text_quality import judge
from runbook.evidence import Evidence
from runbook.probe import Progress

PRINTED = signature(
    "sample", ("First rollout sample: [", "Finish rollout: ["), r"(First rollout sample|Finish rollout): (\[.*)"
)
MAX_ROLLOUTS = 1000
"""Rollouts whose samples are kept; a log holds as many when a run has gone on for weeks."""
_LABEL = re.compile(r"\], label: ", re.DOTALL)
_ASSISTANT = re.compile(
    r"<\|im_start\|>assistant\n?|<\|assistant\|>\n?|<｜Assistant｜>|\[/INST\]|<start_of_turn>model\n?"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>\n*|<\|message\|>|\n(?:Assistant|ASSISTANT): ?"
)


@dataclass
class PrintedRollout:
    """The samples printed of one rollout.

    place: 1-based, among the rollouts that its log prints. number: as the manager's metrics say, None when they do not.
    hits: the line of each sample.
    """

    place: int
    number: int | None = None
    samples: list[Judged] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    ended: bool = False


def printed_rollouts(evidence: Evidence, report: Progress) -> list[PrintedRollout]:
    """Return the rollouts of which the logs print samples, in the order of logs and lines."""
    found: list[PrintedRollout] = []
    open_in: dict[str, PrintedRollout] = {}
    places: dict[str, int] = {}
    seen: dict[bytes, str] = {}
    for hit in logs.stream(evidence, report, (PRINTED, metrics.METRIC), Coverage()):
        log = hit.file.path
        current = open_in.get(log)
        if hit.label == metrics.METRIC.label:
            if current is not None and current.number is None and (number := _number(hit)) is not None:
                current.number = number
                del open_in[log]
            continue
        begins, text = hit.groups[0] == b"First rollout sample", hit.groups[1] or b""
        if seen.setdefault(hashlib.blake2b(text, digest_size=16).digest(), log) != log:
            continue
        if current is None or begins or current.ended:
            if len(found) >= MAX_ROLLOUTS:
                break
            places[log] = places.get(log, 0) + 1
            current = open_in[log] = PrintedRollout(places[log])
            found.append(current)
        current.ended = not begins
        current.samples.append(_sample(len(current.samples), text))
        current.hits.append(hit)
    return found


def _number(hit: Hit) -> int | None:
    """Return the rollout's number when a metric line is the manager's."""
    record = metrics.record(hit, frozenset((metrics.MANAGER_KEY,)))
    return record.number if record.kind == "perf" and record.values else None


def _sample(place: int, raw: bytes) -> Judged:
    """Judge one printed sample: the repr of a list with prompt and response in one string."""
    written = raw.decode("utf-8", "replace")
    ends = list(_LABEL.finditer(written))
    end = ends[-1] if ends else None
    text = written[: end.start() + 1] if end else written
    try:
        whole = "".join(map(str, ast.literal_eval(text))) if end else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        whole = text.replace("\\n", "\n")
    starts = [match.end() for match in _ASSISTANT.finditer(whole)]
    response = whole[starts[0] :] if starts else whole
    return Judged(place, place, response, "", 0, None, judge(response))

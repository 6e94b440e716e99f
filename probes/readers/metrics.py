"""Read the metric lines that slime prints: `step 3: {...}`, `rollout 3: {...}`, `perf`, `eval` and their kin.

The dictionary is a Python repr that no safe evaluator takes (nan, inf, np.float64(...), tensor(...)), so its numbers
are read by a small grammar and anything else in it is passed over; nothing is ever evaluated. Keys and formats:
slime v0.1.0 to v0.3.1 and after (slime/backends/megatron_utils/model.py, slime/observability/*_metrics.py); v0.1.0
prints the lines bare, later versions through a logger. A record holds its place, not its line, so that a long run
stays small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from probes.readers import joblog
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Coverage, Hit, signature
from runbook.finding import Citation, cite

METRIC = signature(
    "metric",
    ": {'",
    r"(?:^|[\s\]m>|])((?:critic-)?step|rollout|perf|eval|multi_turn|passrate) (\d{1,12}): \{'",
    reach=29,
)
ASSERTED = signature("asserted", "log_dict={", r"AssertionError: (?:threshold=\S+ )?log_dict=\{'")
"""A CI run checks before it logs, so a failing step shows its metrics only in the assertion (slime model.py)."""

MANAGER_KEY = "rollout/response_len/mean"
"""Tells the rollout manager's `perf` line from the trainer's (slime rollout_metrics.py)."""

_KEY = r"[^'\\\n]{1,200}"
_VALUE = (
    r"': (?:(?:np\.\w{1,20}|numpy\.\w{1,20}|tensor|array)\()?"
    r"(?P<number>[-+]?(?:nan|inf|(?:\d[\d_]{0,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?))(?=[,)}\s]|$)"
)
_LOGGER = re.compile(rb"([\w<>-]+\.pyx?):\d+ - $")
_PID = re.compile(rb"\([A-Za-z_]\w* pid=(\d{1,10})")


@dataclass(frozen=True)
class Record:
    """The numbers of one metric line.

    kind: "step", "critic-step", "rollout", "perf", "eval", "multi_turn", "passrate" or "asserted". number: rollout
    id or step, -1 for an asserted line. values: by full key ("train/kl_loss"). logger: base name of the file that
    logged it, "" for a bare print. pid: of the process, where Ray's prefix says it. file, line, offset: where.
    """

    kind: str
    number: int
    values: dict[str, float]
    logger: str
    pid: int | None
    file: LogFile
    line: int
    offset: int


@dataclass
class Run:
    """The records of one start of a job, in order: a log may hold several, one after the other.

    managers: the `perf` lines of the rollout manager (lengths, truncation), not those of the trainer.
    """

    steps: list[Record] = field(default_factory=list)
    rollouts: list[Record] = field(default_factory=list)
    managers: list[Record] = field(default_factory=list)
    asserted: list[Record] = field(default_factory=list)

    def of(self, kind: str) -> list[Record]:
        """Return the list that a kind belongs to."""
        lists = {"step": self.steps, "rollout": self.rollouts, "manager": self.managers}
        return lists.get(kind, self.asserted)


@lru_cache(maxsize=64)
def _items(keys: frozenset[str] | None) -> re.Pattern[str]:
    """Return the pattern of an item of the dictionary: of any key, or of these."""
    key = _KEY if keys is None else "|".join(map(re.escape, sorted(keys)))
    return re.compile(f"'(?P<key>{key}){_VALUE}")


def numbers(text: str, keys: frozenset[str] | None = None) -> dict[str, float]:
    """Return the numbers of a dictionary's repr by key, all or only `keys`.

    What is no number is left out, and the text may be cut anywhere.
    """
    return {match["key"]: float(match["number"].replace("_", "")) for match in _items(keys).finditer(text)}


def record(hit: Hit, keys: frozenset[str] | None = None) -> Record:
    """Turn a hit of METRIC or ASSERTED into its record, with all numbers or only those of `keys`."""
    kind, number = "asserted", -1
    if hit.label == METRIC.label:
        kind, number = (hit.groups[0] or b"").decode(), int(hit.groups[1] or b"-1")
    text = hit.text.decode("utf-8", "replace")
    before = hit.raw[: hit.start + 1].rstrip(b" ") + b" "
    logger, pid = _LOGGER.search(before[-200:]), _PID.search(hit.raw[:200])
    name = logger[1].decode() if logger else ""
    values = numbers(text[text.find("{") :], keys)
    return Record(kind, number, values, name, int(pid[1]) if pid else None, hit.file, hit.line, hit.offset)


def records(
    files: Iterable[LogFile], coverage: Coverage, *, progress: Callable[[float], None] | None = None
) -> Iterator[Record]:
    """Yield the metric records of job logs in order."""
    for hit in joblog.scan_job(files, (METRIC, ASSERTED), coverage, progress=progress):
        yield record(hit)


def runs(found: Iterable[Record]) -> list[Run]:
    """Sort records into the runs that printed them.

    A new run begins where a step or rollout number does not rise, where the log changes, and for lines printed bare
    apart from those of a logger: they come from another program. A line that repeats the one before it word for word
    is dropped.
    """
    current: dict[bool, Run] = {}
    last: dict[tuple[bool, str], Record] = {}
    found_runs: list[Run] = []
    stream = ""
    for each in found:
        if each.file.stream != stream:
            stream = each.file.stream
            current.clear()
            last.clear()
        kind = "manager" if each.kind == "perf" and MANAGER_KEY in each.values else each.kind
        if kind not in ("step", "rollout", "manager", "asserted"):
            continue
        bare = not each.logger and kind != "asserted"
        before = last.get((bare, kind))
        if before and kind != "asserted" and each.number <= before.number:
            if each.number == before.number and each.values == before.values:
                continue
            current.pop(bare, None)
            for key in [key for key in last if key[0] == bare]:
                del last[key]
        if bare not in current:
            current[bare] = Run()
            found_runs.append(current[bare])
        current[bare].of(kind).append(each)
        last[bare, kind] = each
    return found_runs


def citation(each: Record, count: int = 1) -> Citation:
    """Return the citation of a record; its line is read again, and quoted from the metric on where it is long."""
    raw = window(each.file, each.offset, joblog.PARSE_LIMIT).partition(b"\n")[0].rstrip(b"\r")
    time = joblog.parse(raw).time
    if joblog.is_long(raw):
        raw = raw[max(raw.find(f"{each.kind} {each.number}: {{".encode()), 0) :]
    return cite(each.file.path, raw, line=each.line, offset=each.offset, count=count, time=time)

"""Read the metric lines that slime prints: `step 3: {...}`, `rollout 3: {...}`, `perf`, `eval` and their kin.

The dictionary is a Python repr that no safe evaluator takes (nan, inf, np.float64(...), tensor(...)), so its numbers
are read by a small grammar and anything else in it is passed over; nothing is ever evaluated. A dictionary of plain
numbers, which most are, is also JSON but for its quotes and is read as that, with the same outcome. Keys and formats:
slime v0.1.0 to v0.3.1 and after (slime/backends/megatron_utils/model.py, slime/observability/*_metrics.py); v0.1.0
prints the lines bare, later versions through a logger. A record holds its place, not its line, so that a long run
stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from probes.readers import joblog
from probes.readers.logfiles import LogFile, window
from probes.readers.logscan import Hit, signature
from runbook.finding import Citation, cite

METRIC = signature(
    "metric",
    ": {'",
    r"(?:^|[\s\]m>|])((?:critic-)?step|rollout|perf|eval|multi_turn|passrate) (\d{1,12}): \{'",
    reach=29,
)
ASSERTED = signature("asserted", "log_dict={", r"AssertionError: (?:threshold=\S+ )?log_dict=\{'")
"""A CI run checks before it logs, so a failing step shows its metrics only in the assertion (slime model.py)."""

ABORT = signature(
    "nan-abort",
    ("found NaN in ", "found Inf in ", "Unexpected result nan", "Unexpected result inf"),
    r"Unexpected result (?:nan|-?inf)|(?<!message=')found (?:NaN|Inf) in (?:local|the) (?:grad|loss|norm)",
)
"""The line with which Megatron stops a run on a NaN (core/rerun_state_machine.py)."""

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

    kind: "step", "critic-step", "rollout", "perf", "eval", "multi_turn", "passrate" or "asserted"; also "started",
    a line that tells of a new start of the job. number: rollout id or step, -1 where there is none. values: by full
    key ("train/kl_loss"). logger: base name of the file that logged it, "" for a bare print. pid: of the process,
    where Ray's prefix says it. file, line, offset: where; line 0 in a file that has no lines.
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

    managers: the `perf` lines of the rollout manager (lengths, truncation); trainers: those of the trainer (timers).
    critics: of `critic-step`. others: of `eval`, `multi_turn` and `passrate`.
    """

    steps: list[Record] = field(default_factory=list)
    rollouts: list[Record] = field(default_factory=list)
    managers: list[Record] = field(default_factory=list)
    asserted: list[Record] = field(default_factory=list)
    trainers: list[Record] = field(default_factory=list)
    critics: list[Record] = field(default_factory=list)
    others: list[Record] = field(default_factory=list)

    def of(self, kind: str) -> list[Record]:
        """Return the list that a kind belongs to."""
        lists = {
            "step": self.steps,
            "rollout": self.rollouts,
            "manager": self.managers,
            "asserted": self.asserted,
            "perf": self.trainers,
            "critic-step": self.critics,
        }
        return lists.get(kind, self.others)

    @property
    def records(self) -> list[Record]:
        """Return all records in the order of their lines."""
        lists = (
            self.steps, self.rollouts, self.managers, self.asserted, self.trainers, self.critics, self.others,
        )  # fmt: skip
        return sorted((each for one in lists for each in one), key=place)

    @property
    def edges(self) -> tuple[Record, Record]:
        """Return the first and the last record; a run has at least one."""
        ends = [each for one in (self.steps, self.rollouts, self.managers, self.asserted, self.trainers, self.critics,
                                 self.others) if one for each in (one[0], one[-1])]  # fmt: skip
        return min(ends, key=place), max(ends, key=place)


def place(each: Record) -> tuple[int, int]:
    """Return where a record stands in its log: the part of a rotated one, and the byte."""
    return (each.file.part, each.offset)


@lru_cache(maxsize=64)
def _items(keys: frozenset[str] | None) -> re.Pattern[str]:
    """Return the pattern of an item of the dictionary: of any key, or of these."""
    key = _KEY if keys is None else "|".join(map(re.escape, sorted(keys)))
    return re.compile(f"'(?P<key>{key}){_VALUE}")


def numbers(text: str, keys: frozenset[str] | None = None) -> dict[str, float]:
    """Return the numbers of a dictionary's repr by key, all or only `keys`.

    What is no number is left out, and the text may be cut anywhere.
    """
    if keys is None and (quick := _as_json(text)) is not None:
        return quick
    return {match["key"]: float(match["number"].replace("_", "")) for match in _items(keys).finditer(text)}


_plain = msgspec.json.Decoder(dict[str, float])


def _as_json(text: str) -> dict[str, float] | None:
    """Read a dictionary of plain finite numbers at once; None for any other, which the grammar is for."""
    if '"' in text or "\\" in text:
        return None
    try:
        found = _plain.decode(text.replace("'", '"'))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    if not all(0 < len(key) <= 200 and abs(value) < 1e40 for key, value in found.items()):
        return None
    return found


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


def runs(found: Iterable[Record]) -> list[Run]:
    """Sort records into the runs that printed them.

    A new run begins where a number of one kind does not rise, where a line tells of a start of the job
    (`attempts.STARTED`), where the log changes, and for lines printed bare apart from those of a logger: they come from
    another program. A line that repeats the one before it word for word is dropped. Evaluations and the like are put
    to the run that they stand in; alone they make none.
    """
    current: dict[bool, Run] = {}
    last: dict[tuple[bool, str], Record] = {}
    found_runs: list[Run] = []
    stream = ""
    for each in found:
        if each.file.stream != stream or each.kind == "started":
            stream = each.file.stream
            current.clear()
            last.clear()
        if each.kind == "started":
            continue
        kind = "manager" if each.kind == "perf" and MANAGER_KEY in each.values else each.kind
        bare = not each.logger and kind != "asserted"
        if kind not in ("step", "rollout", "manager", "asserted", "critic-step"):
            if bare in current:
                current[bare].of(kind).append(each)
            continue
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
    """Return the citation of a record; its line is read again, and quoted from the metric on where it is long.

    A file without lines is cited by the byte, with the values as they were read.
    """
    if not each.line:
        shown = ", ".join(f"{key} = {value:.6g}" for key, value in list(each.values.items())[:4])
        return cite(each.file.path, f"{each.kind} {each.number}: {shown}", offset=each.offset, count=count)
    raw = window(each.file, each.offset, joblog.PARSE_LIMIT).partition(b"\n")[0].rstrip(b"\r")
    time = joblog.parse(raw).time
    if joblog.is_long(raw):
        raw = raw[max(raw.find(f"{each.kind} {each.number}: {{".encode()), 0) :]
    return cite(each.file.path, raw, line=each.line, offset=each.offset, count=count, time=time)

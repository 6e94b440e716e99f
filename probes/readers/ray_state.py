"""Reads what a Ray dashboard tells: jobs, and lists of its state API, each record with the place where it stands.

The state API answers `{result, msg, data: {result: {total, num_after_truncation, num_filtered, result: [...],
partial_failure_warning}}}` (Ray 2.40 to 2.60). A list that the server cut, that a part of the cluster did not answer
for, or that says `result: false` is no whole list, and says so in `gap`. An answer is kept with one record a line, so
that a citation has a line that people can read. Invariants: a field of another type than Ray's counts as not there; an
answer that is no such list raises RefusedError.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from probes.readers import ray_keep
from probes.readers.ray_http import Address, Answer, RefusedError, get, is_page
from runbook.finding import Citation, cite
from runbook.text import Text, sanitise

LIMIT = 10_000
"""Records of one list: the most that Ray gives (RAY_MAX_LIMIT_FROM_API_SERVER)."""
MANY_JOBS = 2000
Filter = tuple[str, str, str]
"""What the server itself chooses by: a field, "=" or "!=", and a value."""
_OTHER = Text(
    "give the address of the dashboard itself; look at it with `curl ADDRESS/api/version`",
    "请提供 dashboard 自身的地址；可用 `curl ADDRESS/api/version` 查看",
)


@dataclass(frozen=True)
class Record:
    """One record of a list. path, line, offset: where it is kept; line None where it is not."""

    fields: Mapping[str, Any]
    path: str
    line: int | None
    offset: int | None
    raw: str

    def text(self, name: str) -> str:
        """Return a field that is text, "" where it is none."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float:
        """Return a field that is a number, also one written as text as Ray's protobuf does; 0 where it is none."""
        return number(self.fields.get(name))

    def inner(self, name: str) -> Mapping[str, Any]:
        """Return a field that holds fields, empty where it does not."""
        value = self.fields.get(name)
        return value if isinstance(value, dict) else {}

    def cite(self, count: int = 1) -> Citation:
        """Cite the record."""
        return cite(self.path, self.raw, line=self.line, offset=self.offset, count=count)


@dataclass(frozen=True)
class Listed:
    """A list. total: how many there are, by the server. gap: why it is not all of them, None for a whole list."""

    records: tuple[Record, ...]
    total: int
    gap: Text | None = None


def number(value: object) -> float:
    """Return a number, also one written as text; 0 for anything else."""
    if isinstance(value, str) and len(value) < 40:
        try:
            value = float(value)
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if abs(value) < 1e21 else 0.0


def listed(address: Address, kind: str, *filters: Filter) -> Listed:
    """Return a list of the state API. kind: "actors", "nodes", ...; raises RefusedError."""
    query = [("detail", "1"), ("limit", str(LIMIT)), ("timeout", "20")]
    for key, predicate, value in filters:
        query += [("filter_keys", key), ("filter_predicates", predicate), ("filter_values", value)]
    ends = (f"-{key}-{'not-' * (predicate != '=')}{ray_keep.plain(value)}" for key, predicate, value in filters)
    name = f"{kind}{''.join(ends)}.json"
    return _read(address, *_content(address, f"/api/v0/{kind}?{urlencode(query)}", name, _envelope))


def usage(address: Address) -> tuple[dict[str, tuple[float, float]], float]:
    """Return how much of each resource is in use and is there, and the cluster's own time, as its autoscaler tells.

    Empty and 0 where it tells neither (its second version does not). Raises RefusedError.
    """
    listed_ = _read(address, *_content(address, "/api/cluster_status", "cluster_status.json", _status))
    status = listed_.records[0].inner("clusterStatus") if listed_.records else {}
    report = status.get("loadMetricsReport")
    used = report.get("usage") if isinstance(report, dict) else None
    pairs = used.items() if isinstance(used, dict) else ()
    known = {
        name: (number(pair[0]), number(pair[1])) for name, pair in pairs if isinstance(pair, list) and len(pair) == 2
    }
    return known, number(status.get("time"))


def _status(value: Any, address: Address) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, dict):
        raise _foreign(address)
    return {"total": 1}, [data]


def jobs(address: Address) -> Listed:
    """Return the jobs, submitted ones and drivers; raises RefusedError."""
    return _read(address, *_content(address, "/api/jobs/", "jobs.json", _plain_list))


def _content(address: Address, path: str, name: str, open_: Any) -> tuple[str, bytes]:
    """Return where an answer is kept (its address where it is not) and its lines; asked where none is of now."""
    now = time.time()
    place = ray_keep.fresh(address.cluster, name, now)
    if place:
        try:
            with open(place, "rb") as file:
                return place, file.read()
        except OSError:
            pass
    head, records = open_(_parsed(address, get(address, path)), address)
    if head.pop("fewer", False) and "filter_keys" not in path:  # a filter that the source itself applied leaves fewer
        head["gap"] = head["gap"] or _cut(len(records), head["total"])
    try:
        lines = [json.dumps(record) for record in records]
    except RecursionError:
        raise _foreign(address) from None
    content = (json.dumps(head) + "\n" + "".join(f"{line}\n" for line in lines)).encode()
    return ray_keep.keep(address.cluster, name, content, now) or f"{address.url}{path}", content


def _read(address: Address, place: str, content: bytes) -> Listed:
    """Return the list that was kept as `content`: a line about the answer, then a line for each record."""
    kept = not place.startswith((f"{address.scheme}://", "http"))
    lines = content.decode().split("\n")
    records = []
    offset = len(lines[0]) + 1
    for place_in, line in enumerate(lines[1:], 2):
        if line:
            fields = json.loads(line)
            records.append(Record(fields, place, place_in if kept else None, offset if kept else None, line))
        offset += len(line) + 1
    head = json.loads(lines[0])
    gap = head.get("gap")
    return Listed(tuple(records), int(head["total"]), Text(gap[0], gap[1]) if gap else None)


def _parsed(address: Address, answer: Answer) -> Any:
    where = f"{address.netloc}{answer.path.partition('?')[0]}"
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        page = is_page(answer.body)
        en = f"{where} sends {'a page for people, as a proxy or login does' if page else 'what is no JSON'}"
        zh = f"{where} 返回的{'是网页（可能是代理或登录页）' if page else '不是 JSON'}"
        raise RefusedError(Text(en, zh), _OTHER) from None


def _plain_list(value: Any, address: Address) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _foreign(address)
    kept = sorted(value, key=lambda each: -number(each.get("start_time")))[:MANY_JOBS]
    gap = None
    if len(kept) < len(value):
        gap = (
            f"only the newest {len(kept)} of {len(value)} are read",
            f"只读取 {len(value)} 个中最新的 {len(kept)} 个",
        )
    return {"total": len(value), "gap": gap}, kept


def _envelope(value: Any, address: Address) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if isinstance(value, dict) and value.get("result") is False:
        said = sanitise(str(value.get("msg", "")).strip()[:4000], 200)
        raise RefusedError(Text(f"Ray could not answer: {said}", f"Ray 无法应答：{said}"))
    data = value.get("data") if isinstance(value, dict) else None
    inner = data.get("result") if isinstance(data, dict) else None
    records = inner.get("result") if isinstance(inner, dict) else None
    if inner is None or not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        raise _foreign(address)
    total, after = max(int(number(inner.get("total"))), len(records)), int(number(inner.get("num_after_truncation")))
    return {"total": total, "gap": _gap(inner, len(records)), "fewer": after < total}, records


def _gap(inner: Mapping[str, Any], count: int) -> tuple[str, str] | None:
    """Return why a list is not all that there is."""
    warning = inner.get("partial_failure_warning")
    if isinstance(warning, str) and warning.strip():
        said = sanitise(warning.strip()[:4000], 160)
        return f"a part of the cluster did not answer: {said}", f"集群的一部分没有应答：{said}"
    after, filtered = int(number(inner.get("num_after_truncation"))), int(number(inner.get("num_filtered")))
    if count < filtered:
        return _cut(count, filtered)
    return (
        _cut(count, int(number(inner.get("total")))) if after >= LIMIT and after < number(inner.get("total")) else None
    )


def _cut(count: int, total: int) -> tuple[str, str]:
    return f"the list is cut: {count} of {total}", f"列表被截断：共 {total} 个，只有 {count} 个"


def _foreign(address: Address) -> RefusedError:
    return RefusedError(
        Text(
            f"{address.netloc} answers, but not as Ray's dashboard does", f"{address.netloc} 的应答不像 Ray dashboard"
        ),
        _OTHER,
    )

"""When, who and in which block: read from a hit's own line and from what stands around it."""

from __future__ import annotations

from calendar import timegm
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.logfiles import expand
from probes.readers.logplace import Whereabouts, in_time_order, whereabouts
from probes.readers.logscan import Coverage, Hit, scan, signature
from tests.helpers import hostile_bytes

MARK = signature("mark", "MARK")
NOON = float(timegm((2026, 8, 21, 12, 0, 0)))
STAMP = "[2026-08-21 12:00:00] x.py:1 - "


def _hits(folder: Path, content: str | bytes, name: str = "job.log") -> list[Hit]:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(scan(expand([str(path)])[0], (MARK,), Coverage()))


def _where(folder: Path, content: str, name: str = "job.log") -> Whereabouts:
    (hit,) = _hits(folder, content, name)
    return whereabouts(hit)


def test_a_line_with_everything_tells_everything(tmp_path: Path) -> None:
    """Ray's prefix and SGLang's stamp give time, actor, pid, address and rank."""
    found = _where(tmp_path, "(SGLangEngine pid=9, ip=10.0.0.7) [2026-08-21 12:00:00 DP0 TP1] MARK\n")
    assert found == Whereabouts(NOON, "SGLangEngine", 9, "10.0.0.7", "DP0 TP1", None)


def test_a_line_of_a_traceback_belongs_to_its_block(tmp_path: Path) -> None:
    """Time, rank and extent come from the traceback around it, among the lines of other processes."""
    found = _where(
        tmp_path,
        "(A pid=1) [2026-08-21 11:59:00 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        f"(B pid=2) {STAMP}other\n"
        '(A pid=1)   File "x.py", line 3, in f\n'
        "(A pid=1) RuntimeError: MARK\n"
        f"(A pid=1) {STAMP}after\n",
    )
    assert (found.time, found.actor, found.pid, found.rank) == (NOON - 60, "A", 1, "TP3")
    assert found.span is not None
    assert (found.span.kind, found.span.first.number, found.span.last.number) == ("traceback", 1, 4)


CHAIN = (
    "Traceback (most recent call last):",
    '  File "a.py", line 1, in f',
    "KeyError: 1",
    "",
    "During handling of the above exception, another exception occurred:",
    "",
    "Traceback (most recent call last):",
    '  File "b.py", line 2, in g',
    "ray.exceptions.RayTaskError(KeyError): ray::A.f() (pid=1, ip=10.0.0.1, actor_id=2, repr=<x>)",
    '  File "c.py", line 3, in h',
    "KeyError: MARK",
)
"""A chained traceback with one that crossed an actor."""
STACKS = (
    ("Thread 7 (active): MARK", "    all_gather (megatron/a.py:7)", "    forward (megatron/b.py:9)"),
    ("#0 0x00007f in kernel<<<(1,1,1),(1,1,1)>>> MARK", "#1  0x00007f in f () from /x.so", "#2  0x00007f in main ()"),
    ("[rank3]:[E1] what():  CUDA error: MARK", "frame #0: c10::Error::Error(x)", "frame #1: c10d::Work::check()"),
)
"""Stacks of py-spy, cuda-gdb and NCCL's watchdog."""


@given(st.lists(st.integers(0, 3), min_size=len(CHAIN), max_size=len(CHAIN)))
def test_a_chained_traceback_is_one_block_among_any_other_lines(
    tmp_path_factory: pytest.TempPathFactory, between: list[int]
) -> None:
    """However many lines of other processes Ray puts between, the block is all lines of its own and no other."""
    lines = [f"(A pid=1) {STAMP}before"]
    own = []
    for words, others in zip(CHAIN, between, strict=True):
        lines += [f"(B pid=2) {STAMP}other", "(A pid=3) Traceback (most recent call last):", "no prefix"][:others]
        lines.append(f"(A pid=1) {words}")
        own.append(len(lines))
    lines += ["(B pid=2) other", f"(A pid=1) {STAMP}after"]
    found = _where(tmp_path_factory.mktemp("log"), "\n".join(lines) + "\n").span
    assert found is not None
    assert (found.kind, found.first.number, found.last.number) == ("traceback", own[0], own[-1])


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_is_a_block(tmp_path: Path, stack: tuple[str, ...]) -> None:
    """Frames of py-spy, gdb and c10 belong together, among the lines of another process."""
    lines = [f"(A pid=1) {STAMP}before", *(f"(A pid=1) {line}" for line in stack), f"(A pid=1) {STAMP}after"]
    lines.insert(2, "(B pid=2) #0 other")
    found = _where(tmp_path, "\n".join(lines) + "\n").span
    assert found is not None
    assert (found.kind, found.first.number, found.last.number) == ("stack", 2, 2 + len(stack))


def test_a_block_has_a_limit(tmp_path: Path) -> None:
    """A traceback of megabytes is looked at near the hit only."""
    frames = '  File "x.py", line 3, in f\n' * 50_000
    found = _where(tmp_path, f"Traceback (most recent call last):\n{frames}RuntimeError: MARK\n{frames}")
    assert found.span is None or found.span.last.offset - found.span.first.offset < 64 * 1024


def test_a_time_is_that_of_the_nearest_line_of_any_process_when_its_own_has_none(tmp_path: Path) -> None:
    """Without a stamp of the same process, the last one before the line is a bound; before any, there is none."""
    assert _where(tmp_path, f"(B pid=2) {STAMP}x\n(A pid=1) MARK\n").time == NOON
    assert _where(tmp_path, f"(A pid=1) MARK\n(B pid=2) {STAMP}x\n").time is None


def test_a_worker_s_own_log_names_its_process(tmp_path: Path) -> None:
    """Head and name of a Ray worker's file stand in for a prefix."""
    name = "worker-" + "ab" * 28 + "-02000000-4711.err"
    found = _where(tmp_path, ":job_id:02000000\n:actor_name:MegatronTrainRayActor\nMARK\n", name)
    assert (found.actor, found.pid) == ("MegatronTrainRayActor", 4711)


ROWS = "".join(f"(A pid=1)   name_{number} {'.' * 30} {number}\n(B pid=2) noise\n" for number in range(50))


@pytest.mark.parametrize("marked", ["row", "ruler"])
def test_a_row_belongs_to_its_arguments_table(tmp_path: Path, marked: str) -> None:
    """The table reaches from its ruler to its last row, whatever stands between."""
    rows = ROWS.replace("name_31 ....", "MARK_31 ....") if marked == "row" else ROWS
    mark = " MARK" if marked == "ruler" else ""
    begin, end = f"{'-' * 24} arguments {'-' * 24}{mark}", f"{'-' * 20} end of arguments {'-' * 21}"
    content = f"(A pid=1) before\n(A pid=1) {begin}\n{rows}(A pid=1) {end}\n"
    span = _where(tmp_path, content).span
    assert span is not None
    assert (span.kind, span.first.number, span.last.number) == ("arguments", 2, 101)
    assert content.encode()[span.first.offset :].startswith(span.first.raw)
    assert content.encode()[span.last.offset :].startswith(span.last.raw)


def test_what_looks_like_a_row_behind_the_table_stands_alone(tmp_path: Path) -> None:
    """A table that has ended holds nothing more."""
    ruler = "-" * 24
    content = f"{ruler} arguments {ruler}\n  a ..... 1\n{ruler} end of arguments {ruler}\n  MARK ........ 2\n"
    assert _where(tmp_path, content).span is None


def test_the_server_arguments_are_a_block_of_one_line(tmp_path: Path) -> None:
    """SGLang prints them as one repr."""
    span = _where(tmp_path, "[2026-08-21 12:00:00] server_args=ServerArgs(model_path='/MARK', tp_size=2)\n").span
    assert span is not None
    assert (span.kind, span.first.number, span.last.number) == ("server-args", 1, 1)


@given(st.lists(hostile_bytes, min_size=1, max_size=6))
def test_any_bytes_have_a_place(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Nothing that stands around a hit makes it fail, and no time is invented."""
    content = b"\n".join(line + (b"MARK" if number % 2 else b"") for number, line in enumerate(lines)) + b"\nMARK"
    for hit in _hits(tmp_path_factory.mktemp("log"), content):
        assert whereabouts(hit).time is None


def test_logs_are_merged_by_time_and_keep_their_own_order(tmp_path: Path) -> None:
    """Hits of two logs come in the order of their times; one that tells none leaves all as they were given."""
    one = _hits(tmp_path, "[2026-08-21 12:00:03] MARK\nMARK\n[2026-08-21 12:00:09] MARK\n", "one.log")
    two = _hits(tmp_path, "[2026-08-21 12:00:01] MARK\n[2026-08-21 12:00:05] MARK\n", "two.log")
    merged = in_time_order([*one, *two])
    assert merged == [two[0], one[0], one[1], two[1], one[2]]
    untold = _hits(tmp_path, "MARK\n", "three.log")
    assert in_time_order([*one, *two, *untold]) == [*one, *two, *untold]

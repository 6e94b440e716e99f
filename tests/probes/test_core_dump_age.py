"""Whether core dumps are of the run in hand: times are worked out by hand from the logs' stamps, taken as UTC."""

from __future__ import annotations

import calendar
from pathlib import Path

import pytest

from probes.core_dump_age import by_age
from probes.core_dumps import Case, Dumps
from probes.cuda_core_dump import core_dump
from probes.cuda_ima_frames import ima_frames
from probes.readers.cuda_coredump import CoreDump, Fault
from runbook.evidence import Evidence, Item
from runbook.finding import Verdict
from runbook.probe import silent
from runbook.text import Text
from tests.probes.asking import ask_of
from tests.probes.test_cuda_core_dump import unpack

BEGUN = calendar.timegm((2026, 3, 2, 12, 0, 0))
FIRST = "[2026-03-02 12:00:00] actor.py:12 - start\n"
FAULT = "[2026-03-02 12:10:00] torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
HOUR = 3600


def evidence(tmp_path: Path, *logs: str, dump: Path | None = None) -> Evidence:
    """Return evidence with logs that say these texts, and a dump."""
    why = Text("given", "给定")
    items = []
    for number, text in enumerate(logs):
        path = tmp_path / f"job{number}.log"
        path.write_text(text)
        items.append(Item("log", str(path), why))
    if dump is not None:
        items.append(Item("cuda_coredump", str(dump), why))
    return Evidence(tuple(items))


def dumps(*times: int | None) -> Dumps:
    """Return dumps of one fault each, written at these times."""
    fault = Fault(0, 14, None, None, None, 3)
    return Dumps(tuple(Case(CoreDump(f"/d/{at}", (), (), (fault,), time=at), fault) for at in times), (), (), 0)


@pytest.mark.parametrize(
    ("ahead", "older", "doubted"),
    [(-15 * HOUR, True, False), (-13 * HOUR, False, True), (-60, False, True), (60, False, False)],
)
def test_age_against_one_log(tmp_path: Path, ahead: int, older: bool, doubted: bool) -> None:
    """A dump is of another run when no zone (UTC+14 at most) lets it be newer, doubted when UTC makes it older."""
    aged = by_age(dumps(BEGUN + ahead), evidence(tmp_path, FIRST), silent)
    assert (bool(aged.older), aged.doubted) == (older, doubted)
    assert len(aged.dumps.cases) == (0 if older else 1)


def test_a_fault_in_the_log_takes_the_doubt(tmp_path: Path) -> None:
    """Where the log itself shows a CUDA fault, or a dump being written, its clock may well be ahead of UTC."""
    assert not by_age(dumps(BEGUN - 8 * HOUR), evidence(tmp_path, FIRST + FAULT), silent).doubted
    written = "[12:10:01.000000] coredump: Writing ELF file to /d/x\n"
    assert not by_age(dumps(BEGUN - 8 * HOUR), evidence(tmp_path, FIRST + written), silent).doubted


def test_nothing_is_older_than_what_does_not_tell_its_time(tmp_path: Path) -> None:
    """Without a log, with a log without times beside it, or without a time in the dump, nothing is taken out."""
    long_ago = BEGUN - 1000 * HOUR
    for given in (evidence(tmp_path), evidence(tmp_path, FIRST, "no time here\n")):
        aged = by_age(dumps(long_ago), given, silent)
        assert (len(aged.dumps.cases), aged.older, aged.doubted) == (1, (), False)
    assert len(by_age(dumps(None), evidence(tmp_path, FIRST), silent).dumps.cases) == 1


def test_one_new_dump_among_old_ones(tmp_path: Path) -> None:
    """Old dumps in a shared folder are taken out, and the run's own is not doubted for them."""
    aged = by_age(dumps(BEGUN - 40 * HOUR, BEGUN - HOUR, BEGUN + HOUR), evidence(tmp_path, FIRST), silent)
    assert (len(aged.older), len(aged.dumps.cases), aged.doubted) == (1, 2, False)


def test_a_healthy_run_beside_an_old_dump(tmp_path: Path) -> None:
    """A run that began long after the dump is not accused by it; the finding says whose it is not."""
    given = evidence(tmp_path, FIRST.replace("2026", "2096"), dump=unpack(tmp_path, "misaligned"))
    finding = ask_of(core_dump, given)
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.summary.en.startswith("The core dump is from before the log begins, so it is of another run: ")
    assert ask_of(ima_frames, given).verdict is Verdict.NOT_APPLICABLE

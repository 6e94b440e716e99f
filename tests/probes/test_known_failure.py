"""Which known failure ended the job: what counts, what is only shown, what is explained, and what is none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from probes.known import Asked
from probes.known.model import Entry, Role
from probes.known_failure import ASKED, CAUSES, known_in_log
from probes.readers import joblog
from tests.probes.asking import DATA, HEALTHY, STAMP, ask, ask_text, rollout, table, word

ENTRIES = list(ASKED.entries().values())
ROOTS = [entry for entry in ENTRIES if entry.role is Role.ROOT]
ENGINE, MANAGER, TRAINER = "(SGLangEngine pid=9) ", "(RolloutManager pid=3) ", "(MegatronTrainRayActor pid=7) "
HEAD = "Traceback (most recent call last):"
FRAME = '  File "/root/slime/slime/a.py", line 10, in read'
FULL = "OSError: [Errno 28] No space left on device"
SYMBOL = "ImportError: /x/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
CUDNN = "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found (8, 9, 2)."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."


def _by_id(entry: Entry) -> str:
    return entry.id


def test_every_cause_that_an_entry_speaks_for_is_an_answer() -> None:
    """No root is without an answer, and no answer without a root."""
    assert {entry.cause for entry in ROOTS} == set(CAUSES)


@pytest.mark.parametrize("entry", ROOTS, ids=_by_id)
def test_what_ends_its_program_counts_alone_and_the_rest_does_not(entry: Entry, tmp_path: Path) -> None:
    """A line that its program stops at names its cause; of any other it must be shown that it ended something."""
    for sample in entry.positive:
        expected = f"problem:{entry.cause}" if entry.fatal else "unknown"
        assert word(ask_text(known_in_log, tmp_path, sample)) == expected, sample


@pytest.mark.parametrize(
    "entry", [one for one in ROOTS if joblog.parse(one.positive[0].encode()).time is None], ids=_by_id
)
def test_an_exception_that_nobody_caught_counts(entry: Entry, tmp_path: Path) -> None:
    """At the end of the driver's traceback, with no word of it behind, every root names its cause with the proof."""
    (tmp_path / "job.log").write_text(
        "\n".join((f"{STAMP}placement_group.py:1 - Router launched at x", HEAD, FRAME, entry.positive[0])) + "\n"
    )
    finding = ask(known_in_log, tmp_path / "job.log")
    assert word(finding) == f"problem:{entry.cause}"
    assert finding.citations[0].line == 4
    assert entry.means.en in finding.summary.en
    assert entry.means.zh in finding.summary.zh


@pytest.mark.parametrize("entry", ENTRIES, ids=_by_id)
def test_near_misses_are_none(entry: Entry, tmp_path: Path) -> None:
    """A line that only resembles an entry changes no answer."""
    for sample in entry.negative:
        assert not word(ask_text(known_in_log, tmp_path, sample)).startswith("problem"), sample


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if entry.role is Role.BENIGN], ids=_by_id)
def test_what_only_alarms_is_explained(entry: Entry, tmp_path: Path) -> None:
    """A harmless line is no finding; a table says why it is harmless."""
    finding = ask_text(known_in_log, tmp_path, f"{STAMP}x.py:1 - {entry.positive[0]}", entry.positive[0])
    assert word(finding) == "ok:none"
    (table,) = finding.tables
    assert [(row[0], row[2], row[3]) for row in table.rows] == [("2", "2", entry.means.en)]
    chinese = table.said("zh")
    assert chinese.columns == ("行号", "内容", "次数", "为什么无害")
    assert chinese.rows[0][3] == entry.means.zh


@pytest.mark.parametrize(
    "above",
    [
        f"{ENGINE}[2026-08-21 10:00:00 TP0] Scheduler hit an exception: {HEAD}",
        f"{ENGINE}Process SpawnProcess-1:",
    ],
)
def test_what_ended_an_engines_process_counts(above: str, tmp_path: Path) -> None:
    """SGLang's own word of the end, and multiprocessing's, are the proof that is cited beside the line."""
    lines = (above, f"{ENGINE}{HEAD}", f'{ENGINE}  File "/x/sglang/srt/a.py", line 7, in f', f"{ENGINE}{FULL}")
    finding = ask_text(known_in_log, tmp_path, *lines)
    assert word(finding) == "problem:storage-failed"
    assert [citation.line for citation in finding.citations] == [5, 2]
    assert finding.summary.en.endswith(f": {FULL}")


@pytest.mark.parametrize(
    "lines",
    [
        (HEAD, '  File "/root/slime/train.py", line 10, in <module>', FRAME, FULL),
        ("ray.exceptions.RayTaskError(OSError): ray::MegatronTrainRayActor.save_model() (pid=7)", FRAME, FULL),
    ],
)
def test_what_reached_the_driver_counts_whoever_speaks_on(lines: tuple[str, ...], tmp_path: Path) -> None:
    """A traceback from the driver's script on, and a task's error raised there, were caught by nobody."""
    finding = ask_text(known_in_log, tmp_path, *lines, f"{STAMP}x.py:3 - another line without a prefix")
    assert word(finding) == "problem:storage-failed"
    assert word(ask_text(known_in_log, tmp_path, *(f"{MANAGER}{line}" for line in lines))) != "problem:storage-failed"


def test_what_may_have_been_caught_is_only_shown(tmp_path: Path) -> None:
    """An actor's traceback, and a driver's behind which it speaks on, leave the question open with the line."""
    for lines in (
        (f"{MANAGER}{HEAD}", f'{MANAGER}  File "/root/slime/slime/a.py", line 7, in f', f"{MANAGER}{FULL}"),
        (HEAD, FRAME, FULL, f"{STAMP}train.py:3 - goes on"),
    ):
        finding = ask_text(known_in_log, tmp_path, *lines)
        assert word(finding) == "unknown"
        assert finding.citations[0].line == 4


def test_a_consequence_of_memory_or_of_another_exception_is_none(tmp_path: Path) -> None:
    """What stands behind a fault that explains it is not told as the cause."""
    crash = f"{ENGINE}[2026-08-21 10:00:00 TP0] Scheduler hit an exception: {HEAD}"
    for before in ((f"{TRAINER}{OOM}",), (crash, f"{ENGINE}ValueError: x")):
        assert word(ask_text(known_in_log, tmp_path, *before, f"{TRAINER}{CUDNN}")) == "ok:none"
    assert word(ask_text(known_in_log, tmp_path, f"{TRAINER}{CUDNN}", f"{TRAINER}{OOM}")) != "ok:none"


def test_an_import_that_failed_counts_only_where_nobody_caught_it(tmp_path: Path) -> None:
    """Programs try packages that need not be there and print why one was not: the line alone ended nothing."""
    assert word(ask_text(known_in_log, tmp_path, SYMBOL)) == "unknown"
    assert word(ask_text(known_in_log, tmp_path, "Process P-1:", HEAD, FRAME, SYMBOL)) == "problem:environment-broken"


def test_another_exception_before_leaves_a_lone_line_open(tmp_path: Path) -> None:
    """A line without a traceback of its own is not the cause where an earlier exception may be."""
    other = (f"{TRAINER}{HEAD}", f"{TRAINER}{FRAME}", f"{TRAINER}ValueError: something else")
    assert word(ask_text(known_in_log, tmp_path, *other, f"{ENGINE}{CUDNN}")) == "unknown"
    assert word(ask_text(known_in_log, tmp_path, f"{ENGINE}{CUDNN}", *other)) == "problem:environment-broken"


def test_the_first_of_two_is_the_root(tmp_path: Path) -> None:
    """What comes later is not reported, whatever its cause."""
    gone = "FileNotFoundError: Prompt dataset path '/data/x.jsonl' does not exist."
    assert word(ask_text(known_in_log, tmp_path, gone, CUDNN)) == "problem:data-invalid"
    assert word(ask_text(known_in_log, tmp_path, CUDNN, gone)) == "problem:environment-broken"


def test_of_two_entries_in_one_line_the_one_that_says_more_counts(tmp_path: Path) -> None:
    """A stale handle in a compile cache is the cache's matter, elsewhere the file system's."""
    stale = "OSError: [Errno 116] Stale file handle: '{}'"
    for path, cause in (("/home/me/.triton/cache/A/x.so", "inductor-cache-race"), ("/ckpt/iter_1", "storage-failed")):
        lines = ("Process P-1:", HEAD, FRAME, stale.format(path))
        assert word(ask_text(known_in_log, tmp_path, *lines)) == f"problem:{cause}"


def test_an_entry_counts_only_where_it_may_stand(tmp_path: Path) -> None:
    """A frame of the reward function in an engine's process is not the reward function's failure."""
    frame = '  File "/root/slime/slime/rollout/rm_hub/__init__.py", line 77, in async_rm'
    for prefix, expected in ((ENGINE, "ok:none"), ("", "problem:reward-function-failed")):
        lines = [f"{prefix}Process P-1:", *(f"{prefix}{line}" for line in (HEAD, frame, "KeyError: 'label'"))]
        assert word(ask_text(known_in_log, tmp_path, *lines)) == expected


def test_an_entry_counts_only_under_the_flags_that_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of its flags must be on, and none of those that must not be."""
    entry = ASKED.entries()["env-cudnn"]
    for flags, without, expected in (
        (("colocate", "offload"), (), "problem:environment-broken"),
        (("debug-rollout-only",), (), "ok:none"),
        ((), ("colocate",), "ok:none"),
        ((), ("debug-rollout-only",), "problem:environment-broken"),
    ):
        changed = {**ASKED.entries(), entry.id: msgspec.structs.replace(entry, flags=flags, without=without)}
        monkeypatch.setattr(Asked, "entries", lambda _, changed=changed: changed)
        rows = table(colocate=True, debug_rollout_only=False, offload=False)
        assert word(ask_text(known_in_log, tmp_path, *rows, CUDNN)) == expected
        monkeypatch.undo()


def test_what_the_job_got_past_is_history(tmp_path: Path) -> None:
    """Two further rollouts behind a line make it a warning that confirms nothing."""
    finding = ask_text(known_in_log, tmp_path, CUDNN, *(rollout(number, raw_reward=0.5) for number in range(3)))
    assert word(finding) == "warning:none"


@pytest.mark.parametrize("quote", ["> ", MANAGER, f"{MANAGER}{STAMP}x.py:1 - First rollout sample: ['"])
def test_what_is_only_told_is_none(quote: str, tmp_path: Path) -> None:
    """A mail's quotation, and the words of a model or tool that the manager prints, are no failure."""
    assert word(ask_text(known_in_log, tmp_path, f"{quote}{CUDNN}")) == "ok:none"


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A healthy log answers none."""
    assert word(ask(known_in_log, DATA / f"{name}.log")) == "ok:none"

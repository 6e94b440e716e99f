"""Lines of a job log are taken apart as the programs put them together."""

from __future__ import annotations

from calendar import timegm
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import joblog
from probes.readers.joblog import Line, Placed, context, frames, parse, recognised, scan_job
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit, signature
from runbook.text import sanitise
from tests.helpers import hostile_bytes

NOON = float(timegm((2026, 8, 21, 12, 0, 0)))
ERROR = signature("error", "RuntimeError: bad")


def _hits(path: Path, content: str) -> list[Hit]:
    path.write_text(content)
    return list(scan_job(expand([str(path)])[0], (ERROR,), Coverage()))


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        pytest.param(
            b"\x1b[36m(MegatronTrainRayActor pid=19)\x1b[0m [2026-08-21 12:00:00] model.py:918 - step 0: {}",
            Line("step 0: {}", "MegatronTrainRayActor", 19, None, None, NOON, "model.py:918"),
            id="slime's logger behind a coloured Ray prefix",
        ),
        pytest.param(
            b"(SGLangEngine pid=9, ip=10.0.0.7) [2026-08-21 12:00:00 DP0 TP1 EP1] Load weight begin.",
            Line("Load weight begin.", "SGLangEngine", 9, "10.0.0.7", "DP0 TP1 EP1", NOON),
            id="SGLang's logger on another node",
        ),
        pytest.param(
            b"\x1b[36m(A pid=1)\x1b[0m  loading\x1b[32m [repeated 7x across cluster] (Ray deduplicates logs by default."
            b" Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://x for more options.)\x1b[0m",
            Line(" loading", "A", 1, count=7),
            id="Ray's first note of repetition",
        ),
        pytest.param(
            b"(A pid=1) x [repeated 6x across cluster]",
            Line("x", "A", 1, count=6),
            id="Ray's later notes of repetition",
        ),
        pytest.param(b"[rank3]: RuntimeError: x", Line("RuntimeError: x", rank="rank3"), id="torch's rank prefix"),
        pytest.param(b"(raylet) A worker died", Line("A worker died", "raylet"), id="the raylet"),
        pytest.param(b"(autoscaler +12s) Error: no", Line("Error: no", "autoscaler"), id="the autoscaler"),
        pytest.param(
            b"  [2026-08-21 12:00:00.123456] successfully saved checkpoint",
            Line("successfully saved checkpoint", time=NOON),
            id="Megatron's dated print",
        ),
        pytest.param(
            b"2026-08-21 12:00:00,801\tINFO cli.py:42 -- hello",
            Line("INFO cli.py:42 -- hello", time=NOON),
            id="the job client",
        ),
        pytest.param(
            b"actor train:   0%|          | 0/1 [00:00<?, ?it/s][2026-08-21 12:00:00] model.py:9 - step 1: {}",
            Line("step 1: {}", time=NOON, source="model.py:9"),
            id="a metric behind a progress bar",
        ),
        pytest.param(
            b"bar: 10%|#   | 1/9 [00:01<00:09, 1it/s]\rbar: 20%|##  | 2/9 [00:02<00:08, 1it/s]\r   \rreal text",
            Line("real text"),
            id="text over redrawn bars",
        ),
        pytest.param(b"(paren) is no prefix", Line("(paren) is no prefix"), id="a parenthesis that is no prefix"),
        pytest.param(b"[9999-99-99 12:00:00] x.py:1 - y", Line("y", source="x.py:1"), id="a date that is none"),
    ],
)
def test_parse_takes_a_line_apart(raw: bytes, line: Line) -> None:
    """Who, when, where and what are told apart, and colours are gone."""
    assert parse(raw) == line


@given(hostile_bytes)
def test_parse_takes_any_bytes(raw: bytes) -> None:
    """No bytes make the parser fail, and it invents no text."""
    line = parse(raw)
    assert line.count >= 1
    assert len(line.message) <= len(raw)


def test_a_printed_sample_is_not_an_event(tmp_path: Path) -> None:
    """What the model wrote is no line of the job, whatever it says; a true line is."""
    sample = "[2026-08-21 12:00:00] sglang_rollout.py:420 - First rollout sample: ['RuntimeError: bad'], label: 2\n"
    hits = _hits(tmp_path / "job.log", sample + "RuntimeError: bad\n")
    assert [hit.line for hit in hits] == [2]


TAIL = (
    "2026-08-21 12:00:00,354\tINFO cli.py:88 -- Status message: Job entrypoint command failed with exit code 1,"
    " last available logs (truncated to 20,000 chars):\n"
)


def test_the_tail_that_the_job_client_repeats_is_dropped(tmp_path: Path) -> None:
    """An error printed again after "last available logs" is one error, even where the tail cuts its line."""
    hits = _hits(tmp_path / "job.log", "(A pid=1) RuntimeError: bad\nother\n" + TAIL + "RuntimeError: bad\nother\n")
    assert [hit.line for hit in hits] == [1]


def test_a_tail_that_is_all_there_is_counts(tmp_path: Path) -> None:
    """When only the tail was saved, its lines are the evidence."""
    hits = _hits(tmp_path / "job.log", TAIL + "(A pid=1) RuntimeError: bad\n")
    assert [hit.line for hit in hits] == [2]


def test_context_is_the_traceback_of_the_same_process(tmp_path: Path) -> None:
    """Lines of other processes between those of a traceback are left out, and a stamped line ends it."""
    stamp = "[2026-08-21 12:00:00] x.py:1 - "
    content = (
        f"(A pid=1) {stamp}before\n"
        "(A pid=1) Traceback (most recent call last):\n"
        f"(B pid=2) {stamp}in between\n"
        '(A pid=1)   File "/a/megatron/x.py", line 3, in train_one_step\n'
        "(B pid=2) Traceback (most recent call last):\n"
        "(A pid=1) RuntimeError: bad\n"
        "(A pid=1) hint\n"
        f"(A pid=1) {stamp}after\n"
        "(A pid=1) much later\n"
    )
    (hit,) = _hits(tmp_path / "job.log", content)
    lines = context(hit)
    assert [line.number for line in lines] == [2, 4, 6, 7]
    everything = content.encode()
    assert all(everything[line.offset :].startswith(line.raw + b"\n") for line in lines)
    (frame,) = frames(lines)
    assert (frame.file, frame.line, frame.function) == ("/a/megatron/x.py", 3, "train_one_step")


def test_context_takes_along_the_stamped_line_that_opens_a_traceback(tmp_path: Path) -> None:
    """SGLang's logger stamps the first line of a traceback; it belongs to it."""
    content = (
        "[2026-08-21 12:00:00 TP0] hello\n"
        "[2026-08-21 12:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/a/sglang/x.py", line 3, in run\n'
        "RuntimeError: bad\n"
    )
    (hit,) = _hits(tmp_path / "job.log", content)
    assert [line.number for line in context(hit)] == [2, 3, 4]


def test_frames_of_a_stack_dump_are_read() -> None:
    """py-spy's form names function, file and line as well."""
    (frame,) = frames([Placed(1, 0, b"    save_checkpoint (training/checkpointing.py:573)")])
    assert (frame.file, frame.line, frame.function) == ("training/checkpointing.py", 573, "save_checkpoint")


def test_a_citation_quotes_the_match_of_a_long_line(tmp_path: Path) -> None:
    """Of a line longer than an excerpt, the part that matters is shown, sanitised."""
    (hit,) = _hits(tmp_path / "job.log", "x" * 1000 + " \x1b[31mRuntimeError: bad\x1b[0m end\n")
    citation = joblog.citation(hit)
    assert (citation.line, citation.offset) == (1, 0)
    assert citation.excerpt == sanitise("RuntimeError: bad end")


def test_a_line_that_fits_without_its_colours_is_quoted_whole(tmp_path: Path) -> None:
    """Escape sequences, which are not shown, do not make a line too long to be quoted from its start."""
    line = "start " + "\x1b[36m\x1b[0m" * 60 + "RuntimeError: bad"
    (hit,) = _hits(tmp_path / "job.log", line + "\n")
    assert len(hit.raw) > 400
    assert joblog.citation(hit).excerpt == "start RuntimeError: bad"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[2026-08-21 12:00:00] placement_group.py:125 - Creating placement group with 8 GPUs...\n", True),
        ("(RolloutManager pid=3) x\n", True),
        ("step 0: {'train/loss': 0.0}\n", True),
        ("the quick brown fox\n" * 5, False),
        ("", False),
    ],
)
def test_a_job_log_is_recognised_by_its_lines(tmp_path: Path, content: str, expected: bool) -> None:
    """Only what looks like a log of such a job may prove that something is absent."""
    path = tmp_path / "x.log"
    path.write_text(content)
    assert recognised(expand([str(path)])[0][0]) is expected


@pytest.mark.parametrize(
    ("line", "events"),
    [
        ("(SGLangEngine pid=9) Finish: obj=GenerateReqInput(rid='a', text='explain RuntimeError: bad')", 0),
        ("(RolloutManager pid=3) [reward] response=the RuntimeError: bad means that", 0),
        ("(RolloutManager pid=3) sample metadata {'error': 'RuntimeError: bad'}", 0),
        ("(RolloutManager pid=3) answer: RuntimeError: bad", 0),
        ("+ grep -c 'RuntimeError: bad' old.log", 0),
        ("(RolloutManager pid=3) RuntimeError: bad", 1),
        ("(RolloutManager pid=3) Error: RuntimeError: bad, retrying... (response=None)", 1),
        ("(MegatronTrainRayActor pid=3) answer: RuntimeError: bad", 1),
    ],
)
def test_quoted_text_is_no_event(tmp_path: Path, line: str, events: int) -> None:
    """What a model said, a client asked or a shell traced is not what happened; the programs' own lines are."""
    assert len(_hits(tmp_path / "job.log", line + "\n")) == events


@given(st.text(st.sampled_from("[] 1%|:ab\r/2,x"), max_size=60))
def test_a_line_that_begins_with_a_bracket_has_no_bar(text: str) -> None:
    """The short way for such lines leaves nothing out: no progress bar is found at their beginning."""
    assert joblog._BAR.match(f"[{text}") is None


_BEFORE = (b"First rollout sample: ", b"Finish rollout: ", b" obj=GenerateReqInput(", b"obj=xGenerateReqInput(", b"+ ",
           b"++ ", b"x", b" ", b"rollout", b"\n", b"+")  # fmt: skip


@given(st.lists(st.sampled_from(_BEFORE), max_size=5))
def test_no_quotation_is_missed_by_the_first_look(pieces: list[bytes]) -> None:
    """Wherever quoted text is introduced, the first look finds one of its words."""
    before = b"".join(pieces)
    if joblog._QUOTED.search(before):
        assert before.startswith(b"+") or any(word in before for word in joblog._QUOTED_WORDS)

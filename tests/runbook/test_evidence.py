"""Tests of runbook.evidence and runbook.probe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from runbook.errors import EvidenceError
from runbook.evidence import HEAD_BYTES, Candidate, Evidence, Item, Slot, placed
from runbook.finding import Finding, Verdict, found
from runbook.probe import DEADLINE, Progress, probe, silent
from runbook.text import Text
from tests.helpers import hostile_text

WHY = Text("x", "x")
EVIDENCE = Evidence(
    (
        Item("log", "/a.log", WHY),
        Item("launch", "/run.sh", WHY, missing=True),
        Item("log", "/b.log", WHY),
        Item("log", "/c.log", WHY, run="second"),
    ),
    "/run",
)


def test_paths_are_those_that_exist_in_order() -> None:
    """A slot gives its items in the order they were taken; what is named but not there is asked for separately."""
    assert EVIDENCE.paths("log") == ("/a.log", "/b.log", "/c.log")
    assert EVIDENCE.first("log") == "/a.log"
    assert EVIDENCE.paths("launch") == ()
    assert EVIDENCE.first("launch") is None
    assert [item.path for item in EVIDENCE.missing("launch")] == ["/run.sh"]


def test_a_need_is_met_by_one_of_its_slots() -> None:
    """`a|b` is met by either, a missing item meets nothing."""
    assert EVIDENCE.has("log")
    assert EVIDENCE.has("launch|log")
    assert not EVIDENCE.has("launch")
    assert not EVIDENCE.has("driver|launch")


ADDRESSES = Slot("head_node", Text("address", "地址"), holds="url")
FILES = Slot("log", Text("log", "日志"))


@pytest.mark.parametrize(
    "words", ["10.0.0.1:6379", "head:8265", "[fe80::1]:6379", "http://head:8265", "ray://10.0.0.1:10001", "n-1.a:1"]
)
def test_an_address_stays_as_it_was_written(words: str) -> None:
    """A slot of addresses takes a URL and HOST:PORT as they are; nothing is made of them that looks like a path."""
    assert placed(ADDRESSES, words) == words


@pytest.mark.parametrize("words", ["head", "./job.log", "/tmp/x", "", "a b:80", "http://", ":6379", "fe80::1:6379"])
def test_what_is_no_address_is_refused_with_the_remedy(words: str) -> None:
    """A slot of addresses refuses anything else, and says what to write; the option is named as it is typed."""
    with pytest.raises(EvidenceError, match="--head-node") as refused:
        placed(ADDRESSES, words)
    assert "HOST:PORT" in refused.value.hint


def test_a_path_is_a_path_whatever_it_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot of files takes names with colons as paths below here; a URL in it is refused unless such a file exists."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    assert placed(FILES, "job:1.log") == str(tmp_path / "job:1.log")
    assert placed(FILES, "10.0.0.1:6379") == str(tmp_path / "10.0.0.1:6379")
    assert placed(FILES, "~/job.log") == "/home/ann/job.log"
    with pytest.raises(EvidenceError, match="this is an address"):
        placed(FILES, "http://head/job.log")
    (tmp_path / "http:" / "head").mkdir(parents=True)
    (tmp_path / "http:" / "head" / "job.log").touch()
    assert placed(FILES, "http://head/job.log") == str(tmp_path / "http:" / "head" / "job.log")


@given(hostile_text)
def test_any_words_are_placed_or_refused(words: str) -> None:
    """Whatever is typed for an address, it comes back as it was or is refused; it never becomes a path."""
    try:
        assert placed(ADDRESSES, words) == words
    except EvidenceError:
        return


def test_candidates_read_little_and_never_fail(tmp_path: Path) -> None:
    """A candidate shows the first bytes of a file or the names in a folder, and nothing of what cannot be read."""
    big = tmp_path / "big.log"
    big.write_bytes(b"x" * (HEAD_BYTES * 2))
    assert Candidate(str(big), is_dir=False, size=HEAD_BYTES * 2).head == b"x" * HEAD_BYTES
    assert Candidate(str(tmp_path), is_dir=True).names == {"big.log"}
    assert Candidate(str(tmp_path) + os.sep, is_dir=True).name == tmp_path.name
    assert Candidate(str(tmp_path), is_dir=True).head == b""
    assert Candidate(str(big), is_dir=False).names == frozenset()
    gone = str(tmp_path / "gone")
    assert Candidate(gone, is_dir=False).head == b""
    assert Candidate(gone, is_dir=True).names == frozenset()


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="the kernel's log may not be read here")
def test_a_file_that_would_keep_its_reader_waiting_is_empty() -> None:
    """The kernel's log says that it is a regular file, and has nothing to give or makes its reader wait."""
    assert isinstance(Candidate("/proc/kmsg", is_dir=False).head, bytes)


def test_the_decorator_declares_a_probe() -> None:
    """The function becomes a Probe that still runs, with its needs as a tuple and the usual deadline."""

    @probe("x.y", needs="log", answers=("yes",), en="Is it?", zh="是吗？")
    def ask(evidence: Evidence, report: Progress) -> Finding:
        report(1, None, "line")
        return found(Verdict.OK, "yes", evidence.root, "")

    assert (ask.id, ask.needs, ask.answers, ask.deadline) == ("x.y", ("log",), ("yes",), DEADLINE)
    assert ask.title == Text("Is it?", "是吗？")
    assert ask.run(EVIDENCE, silent).summary.en == "/run"

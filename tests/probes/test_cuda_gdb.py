"""Asking a cuda-gdb: stand-ins on PATH that print what the real one printed, crash, hang or flood."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from probes import cuda_gdb

DATA = Path(__file__).parents[1] / "data" / "coredumps"
CRASH = "kill -ABRT $$\n"


def stand_in(folder: Path, body: str) -> Path:
    """Write an executable cuda-gdb that runs `body` in a shell."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cuda-gdb"
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def ask(folder: Path, body: str, seconds: float = 20.0) -> cuda_gdb.Answer:
    """Ask a stand-in about a dump with a hostile name."""
    dump = folder / "core; touch hacked #'\"$(touch hacked)"
    dump.write_bytes(b"\x7fELF")
    answer = cuda_gdb.ask(str(stand_in(folder / "bin", body)), str(dump), seconds)
    assert answer is not None
    assert not list(folder.rglob("hacked"))
    return answer


def test_an_answer_before_a_crash_counts(tmp_path: Path) -> None:
    """The real output of a cuda-gdb that aborted is read although its exit status is that of a signal."""
    answer = ask(tmp_path, f"cat '{DATA / 'triton-graph.txt'}'\n{CRASH}")
    assert answer.ended == "crashed"
    assert answer.told is not None
    assert answer.told.kernel == "draft_extend_kernel"


def test_an_ordinary_end(tmp_path: Path) -> None:
    """An output with a plain end tells the place and the source line."""
    answer = ask(tmp_path, f"cat '{DATA / 'store.txt'}'\n")
    assert answer.ended == "finished"
    assert answer.told is not None
    assert (answer.told.source, answer.told.block) == ("k.cu:9", (3, 0, 0))


def test_one_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Time is bounded, what was printed before is kept, and no process of it is left."""
    pid = tmp_path / "pid"
    answer = ask(tmp_path, f"cat '{DATA / 'store.txt'}'\nsleep 600 &\necho $! > '{pid}'\nwait\n", seconds=1.5)
    assert answer.ended == "timed-out"
    assert answer.told is not None
    child = int(pid.read_text())
    for _ in range(100):
        if not _alive(child):
            break
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_one_that_floods_is_cut(tmp_path: Path) -> None:
    """Endless output is read as far as the bound goes."""
    answer = ask(tmp_path, "exec cat /dev/zero\n")
    assert len(answer.text) == cuda_gdb.OUTPUT
    assert answer.told is None


def test_it_sees_nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the environment nor the working directory, and standard input is empty."""
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://example.org")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    text = ask(tmp_path, 'env; pwd; ls -a; cat; printf "%s\\n" "$@"\n').text
    for word in ("SECRET_TOKEN", "DEBUGINFOD_URLS", str(tmp_path), "LD_PRELOAD"):
        assert word not in text
    assert "-nx" in text.split()
    assert "set auto-load off" in text
    assert "target cudacore dump" in text


def test_no_tool_of_the_run_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cuda-gdb in the folder of the evidence, or by a relative entry of PATH, is never started."""
    tool = stand_in(tmp_path / "run" / "bin", "true\n")
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setenv("PATH", os.pathsep.join(("bin", "", str(tool.parent))))
    assert cuda_gdb.find([str(tmp_path / "run")]) is None
    assert cuda_gdb.find([str(tmp_path / "elsewhere")]) == str(tool)


def test_without_a_tool_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no cuda-gdb nothing is yielded, and one that cannot start is no answer."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert list(cuda_gdb.answers([], ["/nowhere/dump"], 5.0)) == []
    assert cuda_gdb.ask("/nowhere/cuda-gdb", "/nowhere/dump", 5.0) is None or cuda_gdb._guard(5.0)

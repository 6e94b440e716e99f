"""What the tools say in logs and texts: each fault once, with the kernel of its own exception and no other's."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cuda_ima_frames import ima_frames
from probes.cuda_ima_in_log import ima_in_log
from probes.cuda_sanitizer import sanitizer
from probes.cuda_told import SIGNATURES, Told, told
from probes.readers import joblog
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage
from tests.probes.asking import ask, ask_text, word

DATA = Path(__file__).parents[1] / "data" / "coredumps"
IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"


def of(path: Path) -> list[Told]:
    """Return what the tools say in one file."""
    files, _ = expand([str(path)])
    return told(list(joblog.scan_job(files, SIGNATURES, Coverage())))


def test_each_dump_of_a_text_is_told_once(tmp_path: Path) -> None:
    """Outputs behind one another stay apart, a trap says nothing of an access, and the place names the kernel."""
    text = "".join((DATA / f"{name}.txt").read_text() for name in ("trap", "assert", "store", "triton-graph"))
    path = tmp_path / "gdb.txt"
    path.write_text(text)
    found = sorted(of(path), key=lambda one: one.place.number)
    assert [(one.kind, one.kernel) for one in found] == [
        ("", "traps"),
        ("device-assert", "checks_index"),
        ("ima", "pad_replay"),
        ("ima", "draft_extend_kernel"),
    ]
    for one in found:
        line = text.split("\n")[one.place.number - 1]
        assert line.encode() == one.place.raw
        assert one.kernel in line


def test_an_assertions_kernel_is_not_that_of_an_access(tmp_path: Path) -> None:
    """A cuda-gdb text about an assertion leaves an illegal access of the log without a kernel."""
    log = tmp_path / "job.log"
    log.write_text(f"(SGLangEngine pid=9) {IMA}\n")
    assert word(ask(ima_frames, log, DATA / "assert.txt")) == "problem:unlocalised"
    assert word(ask(ima_frames, log, DATA / "store.txt")) == "problem:kernel-named"


def test_the_drivers_stack_names_the_kernel(tmp_path: Path) -> None:
    """The progress lines of a dump name the kernel where there is a stack, demangled, and cite its line."""
    finding = ask(ima_frames, DATA / "progress-stack.log")
    assert word(finding) == "problem:kernel-named"
    assert "void moe::topk_gating_softmax<float, 8>(float*, int const*, int)" in finding.summary.en
    assert "#0" in finding.citations[0].excerpt
    assert word(ask(ima_frames, DATA / "progress-triton.log")) == "problem:unlocalised"


def test_progress_lines_of_many_processes(tmp_path: Path) -> None:
    """Ray's prefix tells the lines of one process from those of another that dumps at the same time."""
    stack = (DATA / "progress-stack.log").read_text().splitlines()
    triton = (DATA / "progress-triton.log").read_text().splitlines()
    lines = []
    for number in range(max(len(stack), len(triton))):
        lines += [f"(SGLangEngine pid=1) {line}" for line in triton[number : number + 1]]
        lines += [f"(SGLangEngine pid=2) {line}" for line in stack[number : number + 1]]
    finding = ask_text(ima_frames, tmp_path, *lines)
    assert word(finding) == "problem:kernel-named"
    assert "SM 126" in finding.summary.en


@pytest.mark.parametrize(
    ("kernel", "answer"),
    [("void deep_ep::intranode::dispatch<8>(int*)", "deepep"), ("void flashinfer::merge(int*)", "kernel-named")],
)
def test_a_kernel_of_deepep_is_deepeps(tmp_path: Path, kernel: str, answer: str) -> None:
    """The name of the kernel says whose it is, also where only a text names it."""
    lines = ("CUDA Exception: Warp Illegal Address", f"The exception was triggered at PC 0x7f01  {kernel}")
    assert word(ask_text(ima_frames, tmp_path, *lines)) == f"problem:{answer}"


def test_a_line_without_its_exception_comes_last(tmp_path: Path) -> None:
    """An excerpt that names a kernel is used only where nothing names kernel and exception together."""
    lines = ("=========     at other(int *)+0x10 in o.cu:1", *(DATA / "store.txt").read_text().splitlines())
    assert "pad_replay" in ask_text(ima_frames, tmp_path, *lines).summary.en
    assert "other(int *)" in ask_text(ima_frames, tmp_path, lines[0], IMA).summary.en


def test_what_a_model_wrote_about_a_kernel_is_no_report(tmp_path: Path) -> None:
    """A rollout about CUDA, printed by the rollout manager, may hold any tool's words and proves nothing."""
    texts = [(DATA / f"{name}").read_text() for name in ("sanitizer-null.log", "store.txt", "progress-stack.log")]
    lines = [f"(RolloutManager pid=3) {line}" for text in texts for line in text.splitlines()]
    for probe in (ima_frames, sanitizer, ima_in_log):
        assert word(ask_text(probe, tmp_path, *lines)) in ("not_applicable", "ok:none")

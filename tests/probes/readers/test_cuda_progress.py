"""Reading the driver's progress lines of a core dump: real ones, and anything else."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from probes.readers.cuda_progress import Fault, read_progress

DATA = Path(__file__).parents[2] / "data" / "coredumps"
STACK = (DATA / "progress-stack.log").read_text().split("\n")


def test_exception_stack_and_file() -> None:
    """A dump that was finished: what, where, in which function, and where it lies."""
    writing = read_progress(STACK)
    (fault,) = writing.faults
    assert (fault.words, fault.code) == ("Warp Illegal Address", 14)
    assert (fault.device, fault.sm, fault.warp, fault.pc) == (0, 126, 0, 0x7F062F7A0150)
    assert fault.functions == ("_ZN3moe19topk_gating_softmaxIfLi8EEEvPT_PKii",)
    assert "#0" in STACK[fault.named]
    assert writing.path == "/shared/cores/cuda_coredump_node-3.2246.1796033130"
    assert (writing.folder, writing.done) == ("/home/k", True)


def test_a_warp_that_was_gone() -> None:
    """Where the warp had exited there is no warp and no stack, and the line of the exception stands for the place."""
    (fault,) = read_progress((DATA / "progress-triton.log").read_text().split("\n")).faults
    assert (fault.sm, fault.warp, fault.functions) == (125, None, ())
    assert fault.line == fault.named


def test_a_dump_that_was_not_finished() -> None:
    """A process that was killed while it wrote leaves no word that it was done."""
    cut = next(number for number, line in enumerate(STACK) if "Writing done" in line)
    assert not read_progress(STACK[:cut]).done


def test_the_next_dump_is_another() -> None:
    """Reading ends where another dump begins."""
    assert len(read_progress([*STACK, *STACK]).faults) == 1


def test_the_line_of_a_dump_without_progress_says_nothing() -> None:
    """Without CUDA_COREDUMP_SHOW_PROGRESS there is one line, without any name."""
    line = "Starting GPU coredump generation, set the CUDA_COREDUMP_SHOW_PROGRESS environment variable to 1"
    assert read_progress([line]).faults == ()


def test_an_exception_of_a_newer_driver_keeps_its_own_name() -> None:
    """A code that is not known is told by the name that was printed."""
    line = "[10:05:30.1] coredump: Detected an exception of type CUDBG_EXCEPTION_NEW_THING (99)"
    (fault,) = read_progress([line]).faults
    assert fault == Fault("CUDBG_EXCEPTION_NEW_THING", 99)
    assert fault.words == "CUDBG_EXCEPTION_NEW_THING"


@given(st.lists(st.text() | st.sampled_from(STACK)))
def test_any_lines_are_read(lines: list[str]) -> None:
    """Whatever the lines, nothing is raised and every place is one of them."""
    for fault in read_progress(lines).faults:
        assert 0 <= fault.line <= fault.named < len(lines)

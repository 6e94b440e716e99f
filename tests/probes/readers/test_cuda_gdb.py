"""Reading what cuda-gdb prints: real outputs beside the dumps they are of, older words, and anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.cuda_gdb import Told, read_gdb

DATA = Path(__file__).parents[2] / "data" / "coredumps"


def one(name: str) -> Told:
    """Return what the recorded output of a dump tells."""
    (told,) = read_gdb((DATA / f"{name}.txt").read_text())
    return told


def test_a_store_out_of_bounds() -> None:
    """Exception, kernel, source line and focus are read as the output of this dump has them."""
    told = one("store")
    assert (told.exception, told.code) == ("Warp Illegal Address", 14)
    assert (told.kernel, told.source, told.shape) == ("pad_replay", "k.cu:9", "(5,1,1),(64,1,1)")
    assert (told.block, told.thread, told.device, told.sm) == ((3, 0, 0), (37, 0, 0), 0, 125)


def test_a_template_keeps_its_whole_name() -> None:
    """A name with commas, brackets and blanks ends where the source begins."""
    assert one("template").kernel == "void moe::topk_gating_softmax<float, 8>(float*, int const*, int)"
    assert one("template").source == "k.cu:7"


def test_an_assertion_is_no_bad_address() -> None:
    """cuda-gdb says only "Assertion failed."; the kernel of torch's embedding stands in the frame."""
    told = one("embedding")
    assert (told.exception, told.code) == ("Warp Assert", 12)
    assert told.kernel.startswith("void at::native::(anonymous namespace)::indexSelectSmallIndex<float, long")


def test_a_trap_holds_no_exception() -> None:
    """A trap is a signal and no exception, and its kernel is told all the same."""
    told = one("trap")
    assert (told.exception, told.code, told.signal, told.kernel) == ("", None, "SIGTRAP", "traps")


def test_what_was_printed_before_a_crash_counts() -> None:
    """The recorded output ends in the backtrace of cuda-gdb itself, whose frames are no kernels."""
    told = one("triton-graph")
    assert "A fatal error internal to GDB" in (DATA / "triton-graph.txt").read_text()
    assert (told.exception, told.kernel) == ("Warp Illegal Address", "draft_extend_kernel")


@pytest.mark.parametrize(
    ("line", "exception", "code"),
    [
        ("Program received signal CUDA_EXCEPTION_14, Warp Illegal Address.", "Warp Illegal Address", 14),
        ('Thread 5 "python" received signal CUDA_EXCEPTION_6, Warp Misaligned Address.', "Warp Misaligned Address", 6),
        ("CUDA Exception: Warp Out-of-range Address", "Warp Out-of-range Address", 5),
        ("CUDA Exception: Something Brand New", "Something Brand New", None),
    ],
)
def test_words_of_versions(line: str, exception: str, code: int | None) -> None:
    """Older and newer words are read; a name that is not known has no code."""
    (told,) = read_gdb(f"{line}\n")
    assert (told.exception, told.code) == (exception, code)


def test_several_dumps_in_one_text() -> None:
    """Each dump that was opened is told by itself, in order."""
    text = (DATA / "store.txt").read_text() + (DATA / "assert.txt").read_text()
    assert [(told.dump, told.code) for told in read_gdb(text)] == [("/dumps/store", 14), ("/dumps/assert", 12)]


@pytest.mark.parametrize(
    "text", ["", "Assertion failed.\n", "#0  main () at a.c:3\n", "CUDA Exception: \n", "\x1b[2J\0"]
)
def test_text_of_something_else_tells_nothing(text: str) -> None:
    """What is not of a GPU's core dump is passed over."""
    assert read_gdb(text) == ()


@given(st.text() | st.lists(st.sampled_from((DATA / "store.txt").read_text().split("\n"))).map("\n".join))
def test_any_text_is_read(text: str) -> None:
    """Whatever the order of the lines, nothing is raised and the line number lies in the text."""
    for told in read_gdb(text):
        assert 0 <= told.line <= text.count("\n")

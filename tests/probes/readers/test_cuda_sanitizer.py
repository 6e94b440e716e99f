"""Reading compute-sanitizer's reports: real ones of an H200, those of the other tools, and anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.cuda_sanitizer import Kind, Report, errors, headline, kernel_at, read_report

DATA = Path(__file__).parents[2] / "data" / "coredumps"


def reports(text: str) -> list[Report]:
    """Return all reports of a text."""
    lines = text.split("\n")
    found = (read_report(lines[number:]) for number, line in enumerate(lines) if headline(line) is not None)
    return [report for report in found if report is not None]


def real(name: str) -> list[Report]:
    """Return the reports of a real output."""
    return reports((DATA / f"sanitizer-{name}.log").read_text())


def test_a_write_out_of_bounds() -> None:
    """Kernel with its template arguments, source, thread, block, address and distance."""
    (report,) = real("template")
    assert report == Report(
        Kind.ACCESS,
        "Invalid __global__ write of size 4 bytes",
        "void moe::topk_gating_softmax<float, (int)8>(T1 *, const int *, int)",
        "k.cu:7",
        (8, 0, 0),
        (3, 0, 0),
        "0x27fed64801000",
        "out of bounds",
        "562,949,714,349,569 bytes after the nearest allocation at 0x7fed72c00000 of size 512 bytes",
        1,
    )


@pytest.mark.parametrize(
    ("name", "kernel", "address", "fault"),
    [
        ("null", "pad_replay", "0x0", "out of bounds"),
        ("misaligned", "misaligned(char *)", "0x7f0eaa800001", "misaligned"),
    ],
)
def test_other_addresses(name: str, kernel: str, address: str, fault: str) -> None:
    """A null pointer and a misaligned address are told by the words of the access."""
    (report,) = real(name)
    assert (report.kernel, report.address, report.fault) == (kernel, address, fault)


def test_an_assertion_names_the_kernel_that_was_launched() -> None:
    """The report stands in the library's __assertfail; the stub on the host names the kernel."""
    (report,) = real("assert")
    assert (report.kind, report.kernel, report.thread) == (Kind.ASSERT, "checks_index(int const*, int)", (2, 0, 0))


def test_traps_of_two_blocks() -> None:
    """Each block that trapped has its report; the error of the API call is none."""
    assert [(one.kind, one.kernel, one.block) for one in real("xtrap")] == [
        (Kind.TRAP, "traps()", (0, 0, 0)),
        (Kind.TRAP, "traps()", (1, 0, 0)),
    ]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("========= Invalid __shared__ read of size 16 bytes", Kind.ACCESS),
        ("========= Invalid __global__ atomic of size 4 bytes", Kind.ACCESS),
        ("========= Error: Race reported between Write access at k()+0x10 and Read access at k()+0x20", Kind.RACE),
        ("========= Uninitialized __global__ memory read of size 4 bytes", Kind.UNINITIALISED),
        ("========= Barrier error detected. Divergent thread(s) in block.", Kind.BARRIER),
        ("========= COMPUTE-SANITIZER", None),
        ("========= Program hit cudaErrorLaunchFailure (error 719)", None),
        ("=========     at k()+0x10 in k.cu:1", None),
        ("Invalid __global__ write of size 4 bytes", None),
    ],
)
def test_headlines(line: str, kind: Kind | None) -> None:
    """Reports of each tool are told apart from their own details and from the frame around them."""
    assert headline(line) is kind


def test_the_words_before_cuda_11() -> None:
    """Older versions put the address first and the kernel behind the source."""
    text = (
        "========= Invalid __global__ read of size 8\n"
        "=========     at 0x00000140 in /a/k.cu:9:gather(long const*)\n"
        "=========     by thread (1,0,0) in block (2,0,0)\n"
        "=========     Address 0x7f0000000008 is out of bounds\n"
    )
    (report,) = reports(text)
    assert (report.kernel, report.source) == ("gather(long const*)", "/a/k.cu:9")
    assert (report.address, report.fault) == ("0x7f0000000008", "out of bounds")


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("========= ERROR SUMMARY: 2 errors", 2),
        ("========= ERROR SUMMARY: 0 errors", 0),
        ("ERROR SUMMARY: 2 errors", None),
    ],
)
def test_summary(line: str, count: int | None) -> None:
    """The number of errors is read from the tool's own line only."""
    assert errors(line) == count


def test_place_alone() -> None:
    """The line of a kernel is understood without its headline; a host frame is no place."""
    assert kernel_at("=========     at fused(float *)+0x140 in /a/x.cu:12") == ("fused(float *)", "/a/x.cu:12")
    assert kernel_at("=========         Host Frame: main [0x8fd4] in k") is None


@given(st.text() | st.lists(st.sampled_from((DATA / "sanitizer-assert.log").read_text().split("\n"))).map("\n".join))
def test_any_text_is_read(text: str) -> None:
    """Whatever the order of the lines nothing is raised; a kernel is never made up."""
    for report in reports(text):
        assert report.kernel in text

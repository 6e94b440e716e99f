"""What CUDA core dumps answer: real dumps of an H200, alone and as the many that a job leaves."""

from __future__ import annotations

import lzma
import tracemalloc
from pathlib import Path

import pytest

from probes import core_dumps, cuda_gdb
from probes.cuda_core_dump import core_dump
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import evidence_of
from tests.probes.asking import ask_of, word
from tests.probes.test_cuda_gdb import CRASH, stand_in

DATA = Path(__file__).parents[1] / "data" / "coredumps"


def unpack(folder: Path, name: str, to: str = "") -> Path:
    """Unpack one of the real dumps into a folder."""
    path = folder / (to or f"cuda_coredump_node-3.{len(name)}.1796033128")
    path.write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
    return path


def answer(*paths: Path) -> Finding:
    """Ask the probe about these dumps or folders."""
    return ask_of(core_dump, evidence_of(*(("cuda_coredump", path) for path in paths)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("store", "problem:ima"),
        ("template", "problem:ima"),
        ("triton-graph", "problem:ima"),
        ("misaligned", "problem:ima"),
        ("assert", "problem:device-assert"),
        ("trap", "unknown"),
    ],
)
def test_kind_of_exception(tmp_path: Path, name: str, expected: str) -> None:
    """Bad addresses, assertions and dumps without an exception are told apart."""
    assert word(answer(unpack(tmp_path, name))) == expected


def test_summary_names_the_place(tmp_path: Path) -> None:
    """One sentence names exception, kernel, grid, block, thread and SM, as cuda-gdb prints them for this dump."""
    finding = answer(unpack(tmp_path, "store"))
    assert finding.summary.en == (
        "Warp Illegal Address in pad_replay, grid (5,1,1), block size (64,1,1): block (3,0,0), thread (37,0,0), "
        "device 0, SM 125."
    )
    assert finding.citations[0].excerpt == "Warp Illegal Address at PC 0x7fb10b7a0100 in pad_replay"


def test_many_dumps_are_counted(tmp_path: Path) -> None:
    """Of the dumps of many ranks equal ones are counted, the earliest fault answers, and others are cited after it."""
    for rank in range(5):
        unpack(tmp_path, "store", f"cuda_coredump_node-1.{rank}.1796033128")
    unpack(tmp_path, "assert", "cuda_coredump_node-2.9.1796033010")
    (tmp_path / "notes.txt").write_text("no dump")
    finding = answer(tmp_path)
    assert word(finding) == "problem:device-assert"
    assert "so in 1 of 6 dumps" in finding.summary.en
    assert sorted(one.count for one in finding.citations) == [1, 5]
    assert [row[1] for row in finding.tables[0].rows][:2] == ["host node-2, pid 9", "host node-1, pid 0"]


def test_unreadable_dumps_are_told(tmp_path: Path) -> None:
    """A dump that is cut off is unknown with its name and reason; beside a good one it is counted."""
    whole = unpack(tmp_path, "store")
    cut = tmp_path / "cuda_coredump_node-3.8.1796033129"
    cut.write_bytes(whole.read_bytes()[:90_000])
    alone = answer(cut)
    assert word(alone) == "unknown"
    assert str(cut) in alone.summary.en
    assert "cut off" in alone.summary.en
    assert "(1 of the dumps could not be read)" in answer(whole, cut).summary.en


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("void moe::topk_gating_softmax<float, 8>(float*, int const*, int)", "SGLang"),
        ("void deep_ep::intranode::dispatch<8, 768>(int4*, float*)", "DeepEP"),
        ("void deep_gemm::fp8_gemm_kernel<7168u>(float*)", "DeepGEMM"),
        ("void at::native::indexSelectSmallIndex<float, long>()", "PyTorch"),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<>()", "FlashInfer"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
        ("void transformer_engine::scaled_softmax_kernel<>()", "Transformer Engine"),
        ("my_own_kernel", ""),
    ],
)
def test_owner_by_name(kernel: str, expected: str) -> None:
    """A kernel is given to the project whose namespace or name it carries, else to nobody."""
    assert core_dumps.owner(kernel) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuda_coredump_gpu-7.4711.1796033128", "host gpu-7, pid 4711"),
        ("core_node1.12.1796033128", "host node1, pid 12"),
        ("cuda_coredump_gpu-7.4711", "host gpu-7, pid 4711"),
        ("dump.bin", ""),
    ],
)
def test_process_by_file_name(name: str, expected: str) -> None:
    """Host and pid are read from the pattern that slime and the guide set, and from nothing else."""
    assert core_dumps.process(f"/cores/{name}") == expected


def test_all_ranks_of_a_large_job(tmp_path: Path) -> None:
    """A folder with a dump of each of 256 ranks is one answer that counts them."""
    content = lzma.decompress((DATA / "store.xz").read_bytes())
    first = tmp_path / "cuda_coredump_node-0.1000.1796033128"
    first.write_bytes(content)
    for rank in range(1, 256):
        (tmp_path / f"cuda_coredump_node-{rank // 8}.{1000 + rank}.1796033128").hardlink_to(first)
    finding = answer(tmp_path)
    assert "so in 256 of 256 dumps" in finding.summary.en
    assert [one.count for one in finding.citations] == [256]
    assert len(finding.tables[0].rows) == 24


def test_what_time_does_not_suffice_for_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dumps that were not reached are told as not read; they are never taken for dumps without a fault."""
    monkeypatch.setattr(core_dumps, "SECONDS", -1.0)
    unpack(tmp_path, "store")
    dumps = core_dumps.read_all(evidence_of(("cuda_coredump", tmp_path)), silent)
    assert (dumps.cases, dumps.plain, dumps.left) == ((), (), 1)


def test_core_files_of_the_cpu_are_named(tmp_path: Path) -> None:
    """core.PID of a crashed process is told as what it is, given by itself or as one of a folder."""
    (tmp_path / "core.4711").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00\x3e\x00" + bytes(100))
    for finding in (answer(tmp_path), answer(tmp_path / "core.4711")):
        assert word(finding) == "unknown"
        assert "core.4711" in finding.summary.en
        assert "of a CPU process" in finding.summary.en
    unpack(tmp_path, "store")
    assert word(answer(tmp_path)) == "problem:ima"


def test_a_dump_as_large_as_a_gpu_is_read_by_its_tables(tmp_path: Path) -> None:
    """Of a dump with gigabytes of memory in it only the tables are read."""
    content = bytearray(lzma.decompress((DATA / "store.xz").read_bytes()))
    at = int.from_bytes(content[40:48], "little")
    gap = 3 << 30
    path = tmp_path / "cuda_coredump_node-1.1.1796033128"
    with path.open("wb") as file:  # the section table moves behind a hole, as it stands behind the GPU's memory
        content[40:48] = (at + gap).to_bytes(8, "little")
        file.write(content[:at])
        file.seek(at + gap)
        file.write(content[at:])
    assert path.stat().st_size > gap
    tracemalloc.start()
    finding = answer(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert word(finding) == "problem:ima"
    assert "pad_replay" in finding.summary.en
    assert peak < 64 << 20


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a folder for a stand-in of cuda-gdb on PATH, outside of the run."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def run_folder(tmp_path: Path) -> Path:
    """Return the folder of the run."""
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_cuda_gdb_adds_the_source_line(tmp_path: Path, tool: Path) -> None:
    """Where cuda-gdb is there it is asked about the earliest fault, and its crash afterwards changes nothing."""
    stand_in(tool, f"cat '{DATA / 'store.txt'}'\n{CRASH}")
    finding = answer(unpack(run_folder(tmp_path), "store"))
    assert word(finding) == "problem:ima"
    assert "; cuda-gdb says the same at k.cu:9." in finding.summary.en


def test_cuda_gdb_that_reads_another_exception_is_told(tmp_path: Path, tool: Path) -> None:
    """Where the two differ both are named; what is read here answers."""
    stand_in(tool, f"cat '{DATA / 'assert.txt'}'\n")
    finding = answer(unpack(run_folder(tmp_path), "store"))
    assert word(finding) == "problem:ima"
    assert "cuda-gdb reads Warp Assert instead" in finding.summary.en


def test_cuda_gdb_answers_for_a_dump_that_is_not_understood(tmp_path: Path, tool: Path) -> None:
    """A dump that cannot be read here is answered by cuda-gdb where that can."""
    stand_in(tool, f"cat '{DATA / 'triton-graph.txt'}'\n{CRASH}")
    run = run_folder(tmp_path)
    cut = run / "cuda_coredump_node-3.8.1796033129"
    cut.write_bytes(lzma.decompress((DATA / "store.xz").read_bytes())[:90_000])
    finding = answer(cut)
    assert word(finding) == "problem:ima"
    assert "draft_extend_kernel" in finding.summary.en
    assert "as cuda-gdb reads the dump" in finding.summary.en


def test_cuda_gdb_that_hangs_costs_its_seconds_only(
    tmp_path: Path, tool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cuda-gdb that says nothing leaves what is read here, and of a trap that it did not answer."""
    monkeypatch.setattr(cuda_gdb, "SECONDS", 1.0)
    stand_in(tool, "sleep 60\n")
    run = run_folder(tmp_path)
    assert "cuda-gdb" not in answer(unpack(run, "store")).summary.en
    assert "cuda-gdb did not answer in time" in answer(unpack(run, "trap")).summary.en

"""Who printed a fault first, and what its traceback says: roles, graph, model, transfers, and whether to trust it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.blocking import Blocking
from probes.cuda_first_fault import Seat, Trust, look, seats, table, trust
from probes.faults import IMA
from probes.readers import joblog
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage, Hit
from tests.probes.asking import DATA

SRT = "/sgl-workspace/sglang/python/sglang/srt"
MEGATRON = "/root/Megatron-LM/megatron/core"
ERROR = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
HINT = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect."
)
PASSING = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1"
SEARCH = "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/x for more information."
DSA = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
OPENS = "Scheduler hit an exception: Traceback (most recent call last):"


def hits(*paths: Path) -> list[Hit]:
    """Return the access faults of logs in the order of files and lines."""
    files, _ = expand([str(path) for path in paths])
    return list(joblog.scan_job(files, (IMA,), Coverage()))


def trace(prefix: str, *frames: str, second: int = 0, rank: str = " TP0", tail: tuple[str, ...] = ()) -> list[str]:
    """Return a traceback of one process; a frame is "file:function"."""
    stamp = f"[2026-08-21 10:00:{second:02d}{rank}] "
    files = [f'  File "{frame.rpartition(":")[0]}", line 7, in {frame.rpartition(":")[2]}' for frame in frames]
    return [f"{prefix}{stamp}{OPENS}", *(f"{prefix}{line}" for line in (*files, ERROR, *tail))]


def seat(folder: Path, *lines: str) -> Seat:
    """Return the process of the first fault of a log."""
    path = folder / "job.log"
    path.write_text("\n".join(lines) + "\n")
    return look(hits(path)[0])


ENGINE = "(SGLangEngine pid=9, ip=10.0.0.7) "


@pytest.mark.parametrize(
    ("frames", "graph", "model", "transfer", "role"),
    [
        ((f"{SRT}/managers/scheduler.py:run_batch", f"{SRT}/model_executor/cuda_graph_runner.py:replay"),
         "replay", "", "", "SGLang scheduler"),
        ((f"{SRT}/model_executor/cuda_graph_runner.py:capture_one_batch_size", f"{SRT}/models/x.py:forward"),
         "capture", "", "", "SGLang scheduler"),
        ((f"{SRT}/speculative/eagle_worker.py:draft", f"{SRT}/models/x_nextn.py:forward"),
         "eager", "draft", "", "draft worker of an SGLang scheduler"),
        ((f"{SRT}/speculative/eagle_worker.py:verify", f"{SRT}/models/x.py:forward"),
         "eager", "target", "", "SGLang scheduler"),
        ((f"{SRT}/layers/moe/token_dispatcher/deepep.py:combine_b",), "eager", "", "DeepEP", "SGLang scheduler"),
        ((f"{SRT}/disaggregation/mooncake/conn.py:send",), "", "", "KV transfer (mooncake)", "SGLang scheduler"),
        ((f"{SRT}/disaggregation/nixl/conn.py:poll",), "", "", "KV transfer (nixl)", "SGLang scheduler"),
        ((f"{SRT}/disaggregation/prefill.py:send_kv_chunk",), "", "", "KV transfer", "SGLang scheduler"),
        ((f"{SRT}/mem_cache/radix_cache.py:insert",), "", "", "", "SGLang scheduler"),
    ],
)  # fmt: skip
def test_what_a_traceback_stands_in(
    tmp_path: Path, frames: tuple[str, ...], graph: str, model: str, transfer: str, role: str
) -> None:
    """Replay, capture or eager; draft or target; DeepEP or a transfer of the KV cache; nothing that is not told."""
    told = seat(tmp_path, *trace(ENGINE, *frames))
    assert (told.graph, told.model, told.transfer, told.role_en) == (graph, model, transfer, role)
    assert told.name == "TP0, pid 9, ip 10.0.0.7"


@pytest.mark.parametrize(
    ("lines", "role", "half"),
    [
        ([f"(SGLangEngine pid=9) {ERROR}"], "SGLang engine", "rollout"),
        ([f"(MegatronTrainRayActor pid=9) {ERROR}"], "Megatron actor MegatronTrainRayActor", "train"),
        ([f"(FSDPTrainRayActor pid=9) {ERROR}"], "FSDPTrainRayActor", "train"),
        ([ERROR, "ray::MegatronTrainRayActor.train() (pid=7, ip=10.0.0.1, actor_id=3)"],
         "Megatron actor MegatronTrainRayActor in train()", "train"),
        (["[2026-08-21 10:00:00] DetokenizerManager hit an exception: Traceback (most recent call last):", ERROR],
         "detokenizer", None),
        ([f"[rank2]:[E323 21:33:26 ProcessGroupNCCL.cpp:1896] terminated with exception: {ERROR[20:]}"],
         "NCCL watchdog of a rank", None),
        ([f"(RolloutManager pid=3) {ERROR}"], "RolloutManager", None),
        ([ERROR], "a process that nothing names", None),
    ],
)  # fmt: skip
def test_roles(tmp_path: Path, lines: list[str], role: str, half: str | None) -> None:
    """What the process is, by prefix, by the actor that an error names, by SGLang's own words; else by nothing."""
    told = seat(tmp_path, *lines)
    assert (told.role_en, told.half) == (role, half)


def test_an_echo_is_of_the_actor_that_it_names(tmp_path: Path) -> None:
    """The driver's report of a remote error carries pid and address of the actor."""
    told = seat(tmp_path, ERROR, "ray::MegatronTrainRayActor.train() (pid=7, ip=10.0.0.1, actor_id=3)")
    assert (told.pid, told.ip) == (7, "10.0.0.1")


FRAME = f"{SRT}/layers/moe/token_dispatcher/deepep.py:combine_b"
GRAPH = f"{SRT}/model_executor/cuda_graph_runner.py:replay"


@pytest.mark.parametrize(
    ("frame", "tail", "script", "expected"),
    [
        (FRAME, (SEARCH, HINT, PASSING, DSA), Blocking.EVERYWHERE, Trust.ASYNC),
        (FRAME, (SEARCH, DSA), Blocking.OFF, Trust.BLOCKING),
        (FRAME, (DSA,), Blocking.UNKNOWN, Trust.BLOCKING),
        (FRAME, (f"{DSA} [repeated 3x across cluster]",), Blocking.UNKNOWN, Trust.UNTOLD),
        (FRAME, (), Blocking.EVERYWHERE, Trust.BLOCKING),
        (FRAME, (), Blocking.OFF, Trust.ASYNC),
        (FRAME, (), Blocking.UNKNOWN, Trust.UNTOLD),
        (FRAME, (), Blocking.PERHAPS, Trust.UNTOLD),
        (FRAME, (), Blocking.TRAINERS, Trust.ASYNC),
        (FRAME, (), Blocking.HEAD, Trust.UNTOLD),
        (GRAPH, (SEARCH, DSA), Blocking.EVERYWHERE, Trust.GRAPH),
    ],
)
def test_whether_a_traceback_can_be_trusted(
    tmp_path: Path, frame: str, tail: tuple[str, ...], script: Blocking, expected: Trust
) -> None:
    """The hint of torch, there exactly where launches are not blocking, overrules the script; a graph hides all."""
    assert trust(seat(tmp_path, *trace(ENGINE, frame, tail=tail)), script) is expected


def test_the_hint_of_a_real_log() -> None:
    """The real log of a lone script carries the hint; cupy's error has none, and tells nothing."""
    assert trust(look(hits(DATA / "ima-plain.log")[0]), Blocking.UNKNOWN) is Trust.ASYNC
    assert trust(look(hits(DATA / "ima-blocking.log")[0]), Blocking.UNKNOWN) is Trust.UNTOLD


def test_many_ranks_are_told_once_each(tmp_path: Path) -> None:
    """Of 40 ranks each has one row, the first in time leads, later ones carry their delay, and the rest fold."""
    lines: list[str] = []
    for rank in range(40):
        lines += trace(f"(SGLangEngine pid={100 + rank}) ", FRAME, second=rank, rank=f" TP{rank % 8}")
        lines += [f"(SGLangEngine pid={100 + rank}) {ERROR}"]
    path = tmp_path / "job.log"
    path.write_text("\n".join(lines) + "\n")
    told = seats(hits(path))
    assert [(one.pid, count) for one, count in told[:2]] == [(100, 2), (101, 2)]
    rows = table(told, Blocking.OFF).rows
    assert rows[0][:4] == ("SGLang scheduler", "TP0, pid 100", "10:00:00", "asynchronous: a lead")
    assert rows[1][2] == "+1 s"
    assert rows[-1][0] == "24 more processes"


def test_worker_files_are_ordered_by_time(tmp_path: Path) -> None:
    """In workers' own files the pid stands in the name, and the process that failed first is told by time."""
    from probes.readers import logplace

    for pid, second in ((21, 9), (22, 4)):
        path = tmp_path / f"worker-{pid:08x}-01000000-{pid}.err"
        path.write_text("\n".join([":actor_name:SGLangEngine", *trace("", FRAME, second=second)]) + "\n")
    found = logplace.in_time_order(hits(*sorted(tmp_path.glob("*.err"))))
    assert [one.pid for one, _ in seats(found)] == [22, 21]

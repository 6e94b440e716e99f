"""Where in the engine an illegal memory access shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cuda_ima_frames import ima_frames
from tests.helpers import evidence_of
from tests.probes.asking import DATA, HEALTHY, ask, ask_of, ask_text, word
from tests.probes.scripts import RAY_START, script
from tests.probes.test_cuda_core_dump import unpack

IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
SRT = "/sgl-workspace/sglang/python/sglang/srt"


def _trace(*frames: tuple[str, str]) -> list[str]:
    """Return an engine's traceback with these (file, function) frames, outermost first."""
    prefix = "(SGLangEngine pid=9) "
    opening = f"{prefix}[2026-08-21 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):"
    return [opening, *(f'{prefix}  File "{file}", line 7, in {function}' for file, function in frames), prefix + IMA]


GRAPH = (f"{SRT}/model_executor/cuda_graph_runner.py", "replay")
EAGLE = f"{SRT}/speculative/eagle_worker.py"


DRAFT_GRAPH = (f"{SRT}/speculative/eagle_draft_cuda_graph_runner.py", "replay")
BATCH = (EAGLE, "forward_batch_generation")
COMBINE = (f"{SRT}/layers/moe/token_dispatcher/deepep.py", "combine_b")
MODEL = (f"{SRT}/models/x.py", "forward")
TRAIN_COMBINE = ("/root/Megatron-LM/megatron/core/transformer/moe/fused_a2a.py", "forward")


@pytest.mark.parametrize(
    ("frames", "answer"),
    [
        pytest.param([(f"{SRT}/managers/scheduler.py", "run_batch"), GRAPH], "cuda-graph", id="replay of a graph"),
        pytest.param([BATCH, (EAGLE, "draft"), DRAFT_GRAPH], "speculative", id="the draft's own graph"),
        pytest.param([BATCH, (EAGLE, "verify"), GRAPH], "cuda-graph", id="the target's graph"),
        pytest.param([BATCH, (EAGLE, "draft"), MODEL, COMBINE], "deepep", id="DeepEP innermost"),
        pytest.param([TRAIN_COMBINE], "deepep", id="DeepEP in training"),
    ],
)
def test_the_innermost_telling_frame_decides(tmp_path: Path, frames: list[tuple[str, str]], answer: str) -> None:
    """The traceback is read from where it raised outwards; without blocking launches it is a lead."""
    assert word(ask_text(ima_frames, tmp_path, *_trace(*frames))) == f"warning:{answer}"


ON = ',\n    \\"CUDA_LAUNCH_BLOCKING\\": \\"1\\"'
EXPORT = "export CUDA_LAUNCH_BLOCKING=1"
NOT_BLOCKING = {
    "a comment": script(exports=f"# {EXPORT}"),
    "an echo": script(exports='echo "to debug: CUDA_LAUNCH_BLOCKING=1"'),
    "an echo of JSON": script(exports='echo \'{"CUDA_LAUNCH_BLOCKING": "1"}\''),
    "another value": script(env=ON.replace('1\\"', '10\\"')),
    "an export after ray start": script(before=f"{RAY_START}\n{EXPORT}"),
    "an export and no ray start": script(exports=EXPORT, before=""),
    "set and not exported": script(exports="CUDA_LAUNCH_BLOCKING=1"),
    "for the command alone": script().replace("ray job submit", "CUDA_LAUNCH_BLOCKING=1 ray job submit"),
    "under a condition": script(exports=f'if [ -n "$DEBUG" ]; then {EXPORT}; fi'),
    "a default of the caller's": script(env=ON.replace('1\\"', '${CUDA_LAUNCH_BLOCKING:-1}\\"')),
    "for the trainers alone": script('--train-env-vars \'{"CUDA_LAUNCH_BLOCKING":"1"}\''),
    "in one of two commands": script(env=ON) + script().replace("train.py", "train_async.py"),
    "no command at all": "echo CUDA_LAUNCH_BLOCKING=1\n",
}


def _ask_blocking(folder: Path, frames: list[str], text: str) -> str:
    log, launch = folder / "job.log", folder / "launch.sh"
    log.write_text("\n".join(frames) + "\n")
    launch.write_text(text)
    return word(ask(ima_frames, log, launch=launch))


@pytest.mark.parametrize("text", NOT_BLOCKING.values(), ids=list(NOT_BLOCKING))
def test_text_that_does_not_reach_the_engine_leaves_a_lead(tmp_path: Path, text: str) -> None:
    """Only a variable that arrives in the failing process makes its traceback a proof."""
    assert _ask_blocking(tmp_path, _trace(MODEL, COMBINE), text) == "warning:deepep"


@pytest.mark.parametrize("text", [script(env=ON), script(exports=EXPORT)], ids=["runtime env", "before ray start"])
def test_a_blocking_run_makes_the_lead_a_proof(tmp_path: Path, text: str) -> None:
    """In the runtime env, or exported before `ray start` on the machine of the process, the frames are trusted."""
    assert _ask_blocking(tmp_path, _trace(MODEL, COMBINE), text) == "problem:deepep"
    assert _ask_blocking(tmp_path, _trace(BATCH, (EAGLE, "draft"), MODEL), text) == "problem:speculative"


@pytest.mark.parametrize("frames", [[GRAPH], [BATCH, (EAGLE, "draft"), DRAFT_GRAPH], [GRAPH, MODEL, COMBINE]])
def test_inside_a_graph_even_a_blocking_run_gives_a_lead(tmp_path: Path, frames: list[tuple[str, str]]) -> None:
    """The kernels of a captured graph are launched together, so no frame tells which of them failed."""
    assert _ask_blocking(tmp_path, _trace(*frames), script(env=ON)).startswith("warning:")


def test_an_export_on_the_head_proves_nothing_of_another_machine(tmp_path: Path) -> None:
    """A process whose prefix carries an ip runs on another machine than the driver."""
    frames = [line.replace("pid=9)", "pid=9, ip=10.0.0.7)") for line in _trace(MODEL, COMBINE)]
    assert _ask_blocking(tmp_path, frames, script(exports=EXPORT)) == "warning:deepep"
    assert _ask_blocking(tmp_path, frames, script(env=ON)) == "problem:deepep"


def test_a_variable_of_the_trainers_counts_for_trainers(tmp_path: Path) -> None:
    """--train-env-vars makes a trainer's traceback a proof; the engine's stays a lead."""
    text = script('--train-env-vars \'{"CUDA_LAUNCH_BLOCKING":"1"}\'')
    frames = [line.replace("SGLangEngine", "MegatronTrainRayActor") for line in _trace(TRAIN_COMBINE)]
    assert _ask_blocking(tmp_path, frames, text) == "problem:deepep"


@pytest.mark.parametrize(
    ("line", "kernel"),
    [
        ("The exception was triggered at PC 0x7ff533bb91d0  illegalWrite(int*, int)", "illegalWrite(int*, int)"),
        ("#0  0x00007ff533bb91d0 in moe_align<<<(1,1,1),(256,1,1)>>> ()", "moe_align"),
        ("=========     at fused_kernel(float *)+0x140 in /a/x.cu:12", "fused_kernel(float *)"),
    ],
)
def test_a_named_kernel_is_believed(tmp_path: Path, line: str, kernel: str) -> None:
    """cuda-gdb and compute-sanitizer name the kernel, whatever the Python frames say."""
    finding = ask_text(ima_frames, tmp_path, *_trace(GRAPH), line)
    assert word(finding) == "problem:kernel-named"
    assert f": {kernel}" in finding.summary.en


def test_the_debuggers_answer_is_found_though_it_crashed_afterwards() -> None:
    """The real output of a cuda-gdb that aborted still names the kernel."""
    finding = ask(ima_frames, DATA / "coredump-progress.log", DATA / "cuda-gdb.log")
    assert word(finding) == "problem:kernel-named"
    assert "pad_replay_kernel" in finding.summary.en


def test_nothing_telling_is_unlocalised(tmp_path: Path) -> None:
    """Without a telling frame it is unlocalised, and a core dump that cannot be read changes nothing."""
    assert word(ask(ima_frames, DATA / "ima-plain.log")) == "problem:unlocalised"
    dump = tmp_path / "cuda_coredump_h.1.2"
    dump.write_bytes(b"\x7fELF")
    assert word(ask(ima_frames, DATA / "ima-plain.log", cuda_coredump=dump)) == "problem:unlocalised"


def test_a_core_dump_names_the_kernel(tmp_path: Path) -> None:
    """A core dump with a bad address is proof, with a log or without one; one of an assertion names no such kernel."""
    dump = unpack(tmp_path, "store")
    for finding in (
        ask(ima_frames, DATA / "ima-plain.log", cuda_coredump=dump),
        ask_of(ima_frames, evidence_of(("cuda_coredump", dump))),
    ):
        assert word(finding) == "problem:kernel-named"
        assert "pad_replay" in finding.summary.en
        assert finding.citations[0].path == str(dump)
    other = unpack(tmp_path, "assert")
    assert word(ask(ima_frames, DATA / "ima-plain.log", cuda_coredump=other)) == "problem:unlocalised"


def test_a_note_that_deepep_is_absent_is_no_frame(tmp_path: Path) -> None:
    """Lines about DeepEP outside the traceback say nothing of the fault."""
    note = "(SGLangEngine pid=9) [2026-08-21 10:00:00] __init__.py:45 - deep_ep is not installed"
    frames = _trace((f"{SRT}/managers/scheduler.py", "run_batch"))
    assert word(ask_text(ima_frames, tmp_path, note, *frames, note)) == "problem:unlocalised"


@pytest.mark.parametrize("name", [*HEALTHY, "device-assert"])
def test_without_an_illegal_access_the_question_does_not_arise(name: str) -> None:
    """Other faults and healthy logs are not applicable."""
    assert word(ask(ima_frames, DATA / f"{name}.log")) == "not_applicable"

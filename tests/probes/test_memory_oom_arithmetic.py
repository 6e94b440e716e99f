"""The numbers of the first out-of-memory message, with what the rest of the evidence knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from probes.memory_oom_arithmetic import oom_arithmetic
from tests.helpers import evidence_of
from tests.probes.asking import DATA, HEALTHY, ask, ask_of, ask_text, manager, table, word

TRAINER, ENGINE = "(MegatronTrainRayActor pid=7) ", "(SGLangEngine pid=9) "
FRAME = f'{TRAINER}  File "/root/slime/slime/backends/megatron_utils/model.py", line 417, in train_one_step'
ARGUMENTS: dict[str, object] = {
    "padded_vocab_size": 152064,
    "tensor_model_parallel_size": 2,
    "context_parallel_size": 1,
    "max_tokens_per_gpu": 9216,
    "colocate": True,
}


def oom(tokens: int, *, this: float = 75.0, unallocated: float = 0.5) -> str:
    """Return torch's message for float32 logits of so many tokens over half of 152064 words, on a GPU of 80 GiB."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tokens * 76032 * 4 / 2**30:.2f} GiB. GPU 0 "
        "has a total capacity of 80.00 GiB of which 0.50 GiB is free. Including non-PyTorch memory, this process has "
        f"{this:.2f} GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and "
        f"{unallocated:.2f} GiB is reserved by PyTorch but unallocated."
    )


def log(*lines: str, **arguments: object) -> list[str]:
    """Return a job's log: arguments, a rollout whose longest response has 30000 tokens, then these lines."""
    perf = manager(7, **{"response_len/max": 30000})
    return [*table(**{**ARGUMENTS, **arguments}), perf, FRAME, *lines]


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        (oom(30400), {}, "warning:one-sample-too-long"),
        (oom(9200), {}, "problem:micro-batch"),
        (oom(2000, unallocated=6.0), {}, "problem:fragmented"),
        (oom(2000, this=30.0), {}, "warning:engine-holds-memory"),
        (oom(2000, this=30.0), {"colocate": False}, "warning:stranger"),
        (oom(2000), {}, "warning:unclear"),
    ],
)
def test_the_story_of_a_train_step(message: str, arguments: dict[str, Any], expected: str, tmp_path: Path) -> None:
    """Arguments and the manager's perf line are read from the same log; the message is cited."""
    lines = log(TRAINER + message, **arguments)
    finding = ask_text(oom_arithmetic, tmp_path, *lines)
    assert word(finding) == expected
    assert [citation.line for citation in finding.citations] == [len(lines) + 1]
    assert finding.tables[0].rows[0][:2] == ("tried to allocate", "printed")


def test_the_dump_of_that_rollout_proves_the_one_sample(tmp_path: Path) -> None:
    """With its prompt the longest sample has 30350 tokens, within a per cent of 30400 derived: a proof."""
    samples = [{"index": n, "tokens": [1] * size, "response_length": 9} for n, size in enumerate((400, 30350))]
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    for number, size in ((6, 1), (7, 2)):
        torch.save({"rollout_id": number, "samples": samples[:size]}, dumps / f"{number}.pt")
    path = tmp_path / "job.log"
    path.write_text("\n".join(log(TRAINER + oom(30400))) + "\n")
    finding = ask_of(oom_arithmetic, evidence_of(("log", path), ("rollout_dump", dumps)))
    assert word(finding) == "problem:one-sample-too-long"
    assert finding.measurements[0].value == pytest.approx(50 / 30350, abs=2e-3)


def test_the_longest_sample_is_that_of_the_rollout_before_the_fault(tmp_path: Path) -> None:
    """A longer sample of a later attempt explains nothing."""
    lines = [*log(TRAINER + oom(61000)), manager(0, **{"response_len/max": 60500})]
    assert word(ask_text(oom_arithmetic, tmp_path, *lines)) == "warning:unclear"


def test_a_message_without_numbers_is_unknown(tmp_path: Path) -> None:
    """CUDA's and cuBLAS's own errors give nothing to reckon with."""
    lines = log(f"{TRAINER}RuntimeError: CUDA error: out of memory")
    finding = ask_text(oom_arithmetic, tmp_path, *lines)
    assert word(finding) == "unknown"
    assert [citation.line for citation in finding.citations] == [len(lines) + 1]


def test_another_kind_of_memory_first_is_none(tmp_path: Path) -> None:
    """Where the host ran out first, torch's later message is not the story."""
    killed = "[1.2] Out of memory: Killed process 19389 (ray::MegatronTr) total-vm:4kB"
    assert word(ask_text(oom_arithmetic, tmp_path, killed, *log(TRAINER + oom(9200)))) == "ok:none"


def test_a_vocabulary_is_padded_as_megatron_pads_it(tmp_path: Path) -> None:
    """151936 words are 152064 rows with TP 2 and steps of 128: (151936 / 256 = 593.5, so 594 x 256)."""
    lines = log(TRAINER + oom(9200), padded_vocab_size="None", vocab_size=151936)
    finding = ask_text(oom_arithmetic, tmp_path, *lines)
    assert ("vocabulary, padded", "given", "152064", "arguments") in finding.tables[0].rows
    assert word(finding) == "problem:micro-batch"


@pytest.mark.parametrize("name", [*HEALTHY, "nan", "ray-engine-dies", "ray-host-oom"])
def test_logs_without_such_a_message_are_none(name: str) -> None:
    """A healthy job, and one whose host ran out, have no message of torch to reckon with."""
    assert word(ask(oom_arithmetic, DATA / f"{name}.log")) == "ok:none"


def test_a_real_message() -> None:
    """13.9 GiB reserved and unallocated against a request of 2.34 GiB: pieces."""
    finding = ask(oom_arithmetic, DATA / "ray-cuda-oom.log")
    assert word(finding) == "problem:fragmented"
    assert finding.measurements[0].value == pytest.approx(13.9 / 2.34, abs=0.01)

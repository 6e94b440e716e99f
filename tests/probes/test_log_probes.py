"""What holds for every probe of logs: healthy logs are left alone, hostile ones do no harm, citations are true."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runbook.catalog import load_catalog
from runbook.finding import Verdict
from runbook.probe import Probe
from tests.helpers import is_safe
from tests.probes.asking import DATA, HEALTHY, ask

PROBES = sorted(
    (probe for probe in load_catalog().probes.values() if probe.needs in (("log",), ("log|ray",))),
    key=lambda probe: probe.id,
)
"""Every installed probe for which a log is enough."""
PIECES = (
    b"(SGLangEngine pid=9) ", b"(MegatronTrainRayActor pid=7) ", b"\x1b[36m", b"\x1b[0m", b"[2026-08-21 10:00:00] ",
    b"model.py:9 - ", b"step 0: {'train/kl_loss': 0.5, 'train/grad_norm': nan}",
    b"rollout 0: {'rollout/log_probs': -9.0}",
    b"perf 1: {'rollout/response_len/mean': 1e999}", b"log_dict={'train/", b"AssertionError: ",
    b"RuntimeError: CUDA error: an illegal memory access was encountered", b"Traceback (most recent call last):",
    b'  File "/a/sglang/x.py", line 99999999, in draft', b"torch.OutOfMemoryError: CUDA out of memory. ",
    b"[torch_memory_saver.cpp] CUresult error: 2",
    b"ActorDiedError: The actor died unexpectedly before finishing this task",
    b"\tclass_name: SGLangEngine", b"\tpid: 99999999999999999999", b"its worker process has died",
    b"Waiting for placement group of 16 GPUs (elapsed 1.s): 8 GPUs registered with Ray, 8 available",
    b"successfully loaded checkpoint from x [", b" from model not in state dict, will skip", b"Timer train start",
    b"could not find the metadata file ", b"------------ arguments ------------", b"  load ...... /a",
    b"last available logs (truncated to 20,000 chars)", b"[repeated 99999999999x across cluster]",
    b"The exception was triggered at PC 0x0  k", b"Status/503, retrying... (attempt 60/60",
    b"\xe2\x80\xae", b"\0", b"\xff\xfe", b"\r", b"[/rank0]", b"x" * 3000, b"\n", b"\n", b"\n",
)  # fmt: skip


def _texts(value: object) -> list[str]:
    """Return every string in a finding."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, (tuple, list)):
        return [text for each in value for text in _texts(each)]
    fields = getattr(value, "__struct_fields__", ())
    return [text for name in fields for text in _texts(getattr(value, name))]


def test_every_log_probe_is_here() -> None:
    """The list above is not empty by mistake, and every probe says its question in both languages."""
    assert len({each.id for each in PROBES}) == len(PROBES) >= 16
    assert {"metrics.nan", "cuda.ima_in_log", "megatron.load_log", "ray.in_log"} <= {each.id for each in PROBES}
    assert all(each.title.en for each in PROBES)
    assert all(each.title.zh for each in PROBES)


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.id)
def test_a_healthy_log_has_no_problem(probe: Probe, name: str) -> None:
    """Nothing is wrong in a healthy log, not even worth a warning."""
    assert ask(probe, DATA / f"{name}.log").verdict not in (Verdict.PROBLEM, Verdict.WARNING)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.id)
def test_an_empty_log_proves_nothing(probe: Probe, tmp_path: Path) -> None:
    """Neither an empty log nor an empty folder of logs is evidence of absence."""
    (tmp_path / "job.log").touch()
    (tmp_path / "logs").mkdir()
    assert ask(probe, tmp_path / "job.log").verdict is Verdict.UNKNOWN
    assert ask(probe, tmp_path / "logs").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.id)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40))
@settings(max_examples=25)
def test_hostile_logs_give_true_and_safe_findings(
    tmp_path_factory: pytest.TempPathFactory, probe: Probe, pieces: list[bytes]
) -> None:
    """Whatever a log holds, the citations are in it and no text carries a control or bidi character."""
    path = tmp_path_factory.mktemp("log") / "job.log"
    path.write_bytes(b"".join(pieces))
    assert all(is_safe(text) for text in _texts(ask(probe, path)))

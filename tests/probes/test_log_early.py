"""The first look at the ends of logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.log_early import _SIGNATURES, WORDS, log_early
from probes.readers import logscan
from runbook.catalog import load_catalog
from tests.probes import asking
from tests.probes.asking import DATA, HEALTHY, ask, word

IMA = "(SGLangEngine pid=9) RuntimeError: CUDA error: an illegal memory access was encountered"


def test_the_last_line_of_each_kind_is_shown(tmp_path: Path) -> None:
    """Of many alike the last one; a log shorter than the span has line numbers."""
    path = tmp_path / "job.log"
    path.write_text(f"{IMA}\nx\n{IMA}\nOut of memory: Killed process 7 (ray::MegatronTr)\n")
    finding = ask(log_early, path)
    assert word(finding) == "warning:faults"
    assert [citation.line for citation in finding.citations] == [3, 4]


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands before the end is not looked at, and a line is cited by its place alone."""
    path = tmp_path / "job.log"
    path.write_text(f"Out of memory: Killed process 7 (x)\n{'y' * 99}\n{IMA}\n")
    monkeypatch.setattr(logscan.scan_tail, "__kwdefaults__", {"span": 120})
    finding = ask(log_early, path)
    assert [(citation.line, citation.offset) for citation in finding.citations] == [(None, 136)]
    assert finding.summary.en == "The ends of the logs show an illegal memory access. The whole logs are read next."
    assert finding.summary.zh == "日志末尾可见：非法显存访问。接下来读取完整日志。"


def test_every_kind_of_fault_has_words_for_people() -> None:
    """No label of a signature stands in the sentence: each kind is said in English and in Chinese."""
    for signature in _SIGNATURES:
        assert WORDS[signature.label].zh
        assert WORDS[signature.label].en != signature.label
    assert set(WORDS) == {signature.label for signature in _SIGNATURES}


def test_what_the_job_got_past_is_not_shown(tmp_path: Path) -> None:
    """A fault with two rollouts behind it did not end the job."""
    path = tmp_path / "job.log"
    path.write_text("\n".join([IMA, *(asking.rollout(n, rewards=0.5) for n in (1, 2))]) + "\n")
    assert word(ask(log_early, path)) == "ok:quiet"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_end_is_quiet(name: str) -> None:
    """Nothing is shown of a job that goes on."""
    assert word(ask(log_early, DATA / f"{name}.log")) == "ok:quiet"


def test_of_what_cannot_be_read_nothing_is_said(tmp_path: Path) -> None:
    """A log that is gone, and one that is none of a job, are not quiet."""
    assert word(ask(log_early, tmp_path / "gone.log")) == "unknown"
    (tmp_path / "other.log").write_text("nothing of a job\n")
    assert word(ask(log_early, tmp_path / "other.log")) == "unknown"


def test_no_flow_asks_it() -> None:
    """It decides nothing, so no answer of it may choose a branch."""
    asked = {probe for flow in load_catalog().flows.values() for node in flow.nodes.values() for probe in node.probes}
    assert [name for name, probe in load_catalog().probes.items() if probe.early and name in asked] == []

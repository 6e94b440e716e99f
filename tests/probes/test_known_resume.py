"""Whether a resumed job goes on where it was saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.known_resume import resume_start
from tests.probes.asking import DATA, HEALTHY, ask, ask_text, rollout, table, word

LOADED = (
    "(MegatronTrainRayActor pid=7)   successfully loaded checkpoint from /ckpt/run [ t 1/2, p 1/1 ] at iteration 19"
)
OTHER = "(MegatronTrainRayActor pid=7)   successfully loaded checkpoint from /ckpt/ref [ t 1/2, p 1/1 ] at iteration 0"
SAME = table(finetune=False, load="/ckpt/run", save="/ckpt/run/", start_rollout_id=None)


def test_a_job_that_counts_from_nothing_again_is_reported(tmp_path: Path) -> None:
    """Rollout 0 behind a load of iteration 19 from the folder of --save is a restart, told by both lines."""
    finding = ask_text(resume_start, tmp_path, *SAME, OTHER, LOADED, OTHER, rollout(0, raw_reward=0.5))
    assert word(finding) == "problem:restarted"
    assert [citation.line for citation in finding.citations[:2]] == [2 + len(SAME) + 3, 2 + len(SAME) + 1]


def test_the_flag_that_makes_it_begin_again_is_cited(tmp_path: Path) -> None:
    """A start that was given stands in the arguments table and is shown."""
    rows = table(finetune=False, load="/ckpt/run", save="/ckpt/run", start_rollout_id=0)
    finding = ask_text(resume_start, tmp_path, *rows, LOADED, rollout(0, raw_reward=0.5))
    assert any("start_rollout_id" in citation.excerpt for citation in finding.citations)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([*SAME, LOADED, rollout(20, raw_reward=0.5)], "ok:goes-on", id="goes on"),
        pytest.param(
            [*SAME, rollout(0, raw_reward=0.5), LOADED, rollout(20, raw_reward=0.5)],
            "ok:goes-on",
            id="an attempt before",
        ),
        pytest.param([*SAME, LOADED.replace("19", "0"), rollout(0, raw_reward=0.5)], "ok:goes-on", id="release"),
        pytest.param([*SAME, OTHER, rollout(0, raw_reward=0.5)], "ok:not-resumed", id="only the reference"),
        pytest.param(
            [*table(load="/ckpt/run", save="/ckpt/new"), LOADED, rollout(0, raw_reward=0.5)],
            "ok:not-resumed",
            id="begins from another run",
        ),
        pytest.param([*table(load=None, save="/ckpt/run"), rollout(0, raw_reward=0.5)], "ok:not-resumed", id="no load"),
        pytest.param([*SAME, LOADED], "not_applicable", id="no rollout yet"),
        pytest.param([LOADED, rollout(0, raw_reward=0.5)], "unknown", id="no table"),
    ],
)
def test_what_is_no_restart(lines: list[str], expected: str, tmp_path: Path) -> None:
    """A job that goes on, one that begins elsewhere, and one of which too little is known are told apart."""
    assert word(ask_text(resume_start, tmp_path, *lines)) == expected


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_logs_have_nothing_to_report(name: str) -> None:
    """A healthy log is no restart."""
    assert word(ask(resume_start, DATA / f"{name}.log")) in ("ok:not-resumed", "ok:goes-on", "unknown")


def test_a_path_that_is_no_utf8_is_compared_all_the_same(tmp_path: Path) -> None:
    """A file system's bytes are no text: the load from another folder is no restart, and nothing breaks."""
    (tmp_path / "job.log").write_bytes(
        "\n".join(SAME).encode() + b"\n" + OTHER.encode().replace(b"/ckpt/ref", b"/ckpt/r\xff") + b"\n"
    )
    assert word(ask(resume_start, tmp_path / "job.log")) == "ok:not-resumed"

"""How rules are asked: what is certain, what depends on the release, and what proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.launch_rules import Asked, Broken, Rule, jobs_of, judge, release_of
from runbook.finding import Finding
from runbook.probe import silent
from tests.helpers import check_citations, evidence_of
from tests.probes.asking import word
from tests.probes.scripts import script, write


def _wrong(asked: Asked) -> Broken | None:
    return Broken("wrong", "错") if asked.number("num-rollout", 0) > 1 else None


def _judged(folder: Path, text: str, rule: Rule, versions: str = "") -> Finding:
    items = [("launch", write(folder, "run.sh", text))]
    if versions:
        items.append(("versions", write(folder, "freeze.txt", versions)))
    evidence = evidence_of(*items)
    finding = judge((rule,), evidence, silent, jobs_of(evidence), ("good", "bad"), ("things", "东西"))
    check_citations(finding)
    return finding


PLAIN = Rule("one", "somewhere", _wrong)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--num-rollout 1",), "ok:good"),
        (("--num-rollout 2",), "problem:bad"),
        (("--num-rollout ${N:-2}",), "warning:bad"),
        (("--num-rollout ${N}",), "unknown"),
        (("--num-rollout 2", "--custom-config-path c.yaml"), "warning:bad"),
        (("--num-rollout $(wc -l < x)",), "unknown"),
    ],
)
def test_only_certain_values_prove(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """A default of the environment and a file that may override flags hint; an unknown value leaves it open."""
    assert word(_judged(tmp_path, script(*flags), PLAIN)) == expected


def test_an_unknown_value_is_named_with_its_variable(tmp_path: Path) -> None:
    """The reader is told which flag, and which variable, would settle it."""
    assert "--num-rollout ${N}" in _judged(tmp_path, script("--num-rollout ${N}"), PLAIN).summary.en


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ("", "ok:good"),
        ("slime==0.2.1\n", "problem:bad"),
        ("slime==0.2.4\n", "problem:bad"),
        ("slime==0.3.0\n", "ok:good"),
        ("slime==0.1.0\n", "ok:good"),
        ("slime @ git+https://example.org/slime@624b824\n", "ok:good"),
    ],
)
def test_a_rule_of_some_releases_proves_only_there(tmp_path: Path, versions: str, expected: str) -> None:
    """Outside its releases a rule does not bind, and without a version it proves nothing."""
    rule = Rule("one", "somewhere", _wrong, since=(0, 2, 0), until=(0, 2, 4))
    assert word(_judged(tmp_path, script("--num-rollout 2"), rule, versions)) == expected


def test_a_conditional_job_does_not_outweigh_one_that_holds(tmp_path: Path) -> None:
    """Of two commands, the one behind an unknown condition may never run."""
    text = script("--num-rollout 1") + (
        "if [ -n $X ]; then\npython3 train.py ${ALL_ARGS[@]} --num-rollout 2 --actor-num-nodes 1\nfi\n"
    )
    assert word(_judged(tmp_path, text, PLAIN)) == "ok:good"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("slime==0.3.1\n", (0, 3, 1)),
        ("slime 0.2\n", (0, 2, 0)),
        ("slime @ git+https://x/slime@0123abc\n", None),
        ("torch==2.9\n", None),
        ("image: slimerl/slime:v0.2.4\n", (0, 2, 4)),
        ("image: slimerl/slime:latest\n", None),
    ],
)
def test_the_release_is_read_from_the_versions(tmp_path: Path, text: str, release: tuple[int, ...] | None) -> None:
    """A package or an image tag names the release; a commit or "latest" does not."""
    assert release_of(evidence_of(("versions", write(tmp_path, "v.txt", text)))) == release


@given(st.text(max_size=200))
@settings(max_examples=40, deadline=None)
def test_any_value_is_survived(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    """Whatever stands behind a flag, the rule answers or leaves it open."""
    folder = tmp_path_factory.mktemp("any")
    finding = _judged(folder, script("--num-rollout " + value.replace("\n", " ").replace("'", "")), PLAIN)
    assert word(finding).split(":")[0] in ("ok", "problem", "warning", "unknown")

"""Deaths of actors by Ray's structured causes, faults told from endings."""

from __future__ import annotations

import base64
import importlib
import pickle
import sys
from typing import Any

import pytest

from probes import ray_actors
from probes.ray_actors import actors
from tests.probes.asking import ask, word
from tests.probes.dashboard import VANISHED, Dashboard, actor, died, job

MEMORY = (
    "1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 10.0.0.2, ID: 80) was "
    "5.38GB used / 23.54GB limit (0.96)\nOOM kill reason: x"
)


class Opened:
    """A pickle that tells when somebody opens it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("the pickle was opened",))


def trace(text: str) -> dict[str, Any]:
    """Return the cause of a constructor that raised, as Ray packs it."""
    packed = pickle.dumps((Opened(), f'Traceback (most recent call last)\n  File "x.py", line 1, in f\n{text}'))
    return {"creation_task_failure_context": {"serialized_exception": base64.b64encode(packed).decode()}}


@pytest.mark.parametrize(
    ("name", "cause", "said", "words"),
    [
        ("MegatronTrainRayActor", VANISHED, "warning:trainer-died", "vanished (SYSTEM_ERROR)"),
        ("SGLangEngine", VANISHED, "warning:engine-died", "vanished"),
        ("RolloutManager", VANISHED, "warning:other-died", "vanished"),
        ("RolloutManager", {"oom_context": {"error_message": MEMORY}}, "warning:host-oom", "5.38GB used / 23.54GB"),
        ("SGLangEngine", trace("ValueError: no such model"), "warning:engine-died", "ValueError: no such model"),
        ("SGLangEngine", died("NODE_DIED", "The actor died because its node has died."), "warning:engine-died", "node"),
        (
            "SGLangEngine",
            {"runtime_env_failed_context": {"error_message": "pip failed"}},
            "warning:engine-died",
            "pip failed",
        ),
    ],
)
def test_a_fault_is_told_with_its_cause(
    dashboard: Dashboard, name: str, cause: dict[str, Any], said: str, words: str
) -> None:
    """The class decides whose death it is, Ray's context of what; a pickle is read as text and never opened."""
    dashboard.jobs(job())
    dashboard.lists("actors", actor("InfoActor"), actor(name, "DEAD", cause))
    finding = ask(actors, ray=dashboard.url)
    assert word(finding) == said
    assert words in finding.summary.en


@pytest.mark.parametrize(
    "cause",
    [
        died("RAY_KILL", "The actor is dead because it was killed by `ray.kill`."),
        died("OUT_OF_SCOPE", "The actor is dead because all references to the actor were removed."),
        died("REF_DELETED", "…"),
        died("OWNER_DIED", "The actor is dead because its owner has died."),
        died("WORKER_DIED", "… has died. Worker exit type: INTENDED_USER_EXIT Worker exit detail: exit_actor()"),
        None,
    ],
)
def test_an_end_is_no_fault(dashboard: Dashboard, cause: dict[str, Any] | None) -> None:
    """What a job does with its actors at its end, and what an actor itself asked for, is `none`."""
    dashboard.jobs(job())
    dashboard.lists("actors", actor("MegatronTrainRayActor", "DEAD", cause))
    assert word(ask(actors, ray=dashboard.url)) == "ok:none"


def test_memory_explains_more_than_what_it_takes_along(dashboard: Dashboard) -> None:
    """Of several deaths the one by the memory monitor is told first, and all are counted by class."""
    dashboard.jobs(job())
    dashboard.lists(
        "actors",
        *(actor("MegatronTrainRayActor", "DEAD", VANISHED) for _ in range(3)),
        actor("RolloutManager", "DEAD", {"oom_context": {"error_message": MEMORY}}),
        actor("SGLangEngine"),
    )
    finding = ask(actors, ray=dashboard.url)
    assert word(finding) == "warning:host-oom"
    assert "4 actors died in all" in finding.summary.en
    assert finding.tables[0].rows[0][:3] == ("MegatronTrainRayActor", "3", "DEAD")


@pytest.mark.parametrize(
    "cause", [{"oom_context": 3}, {"creation_task_failure_context": {"serialized_exception": "%%"}}, []]
)
def test_odd_causes_break_nothing(dashboard: Dashboard, cause: Any) -> None:
    """A context of another shape is no fault, or one without words."""
    dashboard.jobs(job())
    dashboard.lists("actors", actor("SGLangEngine", "DEAD", cause))
    assert ask(actors, ray=dashboard.url).verdict.decides


def test_a_long_line_of_a_stranger_takes_no_time(dashboard: Dashboard) -> None:
    """The expression has one repeat and sees the start of a line, so that its length does not matter."""
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    repeats = [name for name, _ in parser.parse(ray_actors._NAMED.pattern) if str(name) == "MAX_REPEAT"]
    assert len(repeats) == 1
    dashboard.jobs(job())
    dashboard.lists("actors", actor("SGLangEngine", "DEAD", trace("ValueError: no\n  " + "a" * 15_000 + "!")))
    assert "ValueError: no" in ask(actors, ray=dashboard.url).summary.en


def test_the_table_is_in_one_language(dashboard: Dashboard) -> None:
    """Columns and causes are Chinese where the front is; Ray's own words stay."""
    dashboard.jobs(job())
    dashboard.lists("actors", actor("SGLangEngine", "DEAD", VANISHED))
    (table,) = (each.said("zh") for each in ask(actors, ray=dashboard.url).tables)
    assert table.columns == ("类", "数量", "状态", "原因")
    assert table.rows == (("SGLangEngine", "1", "DEAD", "进程消失: SYSTEM_ERROR"),)

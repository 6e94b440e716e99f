"""Tests of runbook.answer_json: the keys are a contract with scripts."""

from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.answer_json import answer_json, answer_schema
from runbook.evidence import Item
from runbook.finding import Citation, Finding, Verdict
from runbook.session import events as ev
from runbook.session.state import SessionState, replay
from runbook.text import Text
from tests.runbook import small
from tests.runbook.strategies import experiments, findings, flows

CATALOG = small.catalog()
TITLES = {name: cause.title.en for name, cause in CATALOG.vocabulary.items()}

PROOF = Finding(
    Verdict.PROBLEM,
    "not-loaded",
    Text("It was not loaded.", "没有加载。"),
    (Citation("/run/job.log", 12, 345, "load: not loaded", 8),),
    probe="small.load",
    seconds=0.1,
)


def state_of(*events: ev.Event) -> SessionState:
    """Return the state after these events."""
    return replay([ev.Record(n, float(n), event) for n, event in enumerate(events)], CATALOG.flows)


def answer_of(state: SessionState, language: str = "en") -> Any:
    """Return the answer as a script reads it."""
    report = state.report(CATALOG.flows.values(), CATALOG.vocabulary)
    return msgspec.json.decode(msgspec.json.encode(answer_json(state, report, TITLES, language)))


@pytest.fixture
def answer() -> Any:
    """Return the answer of a run whose checkpoint was not loaded."""
    item = Item("log", "/run/job.log", Text("a log", "日志"))
    gone = Item("launch", "/run/run.sh", Text("named", "提到"), missing=True)
    return answer_of(state_of(ev.EvidenceAdded((item, gone)), ev.Found(PROOF)))


def test_the_contract(answer: Any) -> None:
    """Exactly the keys that scripts rely on, with the values of this run."""
    assert answer == {
        "schema": 1,
        "evidence": [{"slot": "log", "path": "/run/job.log", "why": "a log"}],
        "causes": [
            {
                "cause": "not-loaded",
                "standing": "confirmed",
                "rank": 1,
                "flow": "small",
                "node": "not-loaded",
                "summary": "It was not loaded.",
                "citations": [
                    {"path": "/run/job.log", "line": 12, "offset": 345, "excerpt": "load: not loaded", "count": 8}
                ],
                "consequences": [],
                "actions": [{"command": "ls CKPT"}, {"say": "Read this", "link": "https://example.org/load"}],
                "verify": ["small.load"],
            }
        ],
        "ruled_out": [
            {"cause": cause, "by": "probe", "citations": answer["causes"][0]["citations"]}
            for cause in ("buffer", "base")
        ],
        "unknown": [
            {
                "node": "coherent",
                "flow": "small",
                "why": "Its probes were not run.",
                "settle_with": "Answer it in a walk.",
            }
        ],
        "findings": [
            {
                "probe": "small.load",
                "verdict": "problem",
                "answer": "not-loaded",
                "summary": "It was not loaded.",
                "seconds": 0.1,
            }
        ],
    }


def test_possible_causes_cite_nothing() -> None:
    """A cause that is only possible has its title as the summary and no citation: nothing proves it."""
    causes = answer_of(state_of())["causes"]
    assert {cause["standing"] for cause in causes} == {"possible"}
    assert {cause["cause"]: cause["summary"] for cause in causes} == {
        name: TITLES[name] for name in ("not-loaded", "buffer", "base")
    }
    assert all(cause["citations"] == [] for cause in causes)
    assert [cause["rank"] for cause in causes] == [1, 2, 3]


def test_changes_of_actions_carry_only_what_they_change() -> None:
    """A change lists its non-empty parts."""
    buffer = next(cause for cause in answer_of(state_of())["causes"] if cause["cause"] == "buffer")
    assert buffer["actions"] == [{"change": {"add": ["--no-offload"]}}]


def test_words_are_in_the_language_asked_for() -> None:
    """Chinese words are given where there are some; ids and answers stay."""
    answer = answer_of(state_of(ev.Found(PROOF)), "zh")
    assert answer["findings"][0]["summary"] == "没有加载。"
    assert answer["causes"][0]["cause"] == "not-loaded"


@given(st.data())
def test_every_answer_satisfies_its_schema(data: st.DataObject) -> None:
    """Whatever was found in whatever flow, the answer is valid against the schema that we publish."""
    flow = data.draw(flows())
    known = [ev.Found(finding) for finding in data.draw(findings()).values()]
    attached: list[ev.Event] = []
    for node, said in data.draw(experiments(flow)).items():
        attached += [ev.RunAttached(flow.flow, node, node), *(ev.Found(f, node) for f in said.values())]
    state = replay([ev.Record(n, 0.0, event) for n, event in enumerate([*known, *attached])], {flow.flow: flow})
    answer = answer_json(state, state.report([flow], {}), {}, "en")
    jsonschema.validate(msgspec.json.decode(msgspec.json.encode(answer)), answer_schema())
    ranks = [(cause.rank, cause.standing) for cause in answer.causes]
    assert [rank for rank, _ in ranks] == list(range(1, len(ranks) + 1))
    assert ranks == sorted(ranks, key=lambda pair: (pair[1] != "confirmed", pair[0]))

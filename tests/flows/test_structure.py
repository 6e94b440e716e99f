"""Tests of the shipped flows as graphs: nothing of the guide is missing, every leaf helps, every name is known."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from runbook.catalog import Catalog, load_catalog, load_flows
from runbook.flow.lint import lint, lint_guide
from runbook.flow.model import Action, Change, Flow, Node

DATA = Path(__file__).parents[1] / "data" / "flows"

SECTIONS = (
    *("1.1", "1.1 a", "1.1 b", "1.1 c", "1.1 d", "1.2", "1.2 a", "1.2 b", "1.3", "2.1", "separate"),
    *(f"int4 {number}" for number in range(1, 5)),
    *(f"ima {number}" for number in range(1, 5)),
    *(f"ray-debugger {number}" for number in range(1, 5)),
)
"""The sections of slime's debug guide that must have a node, as `guide:` spells them."""

BEYOND = "-"
"""The guide id of what slime's guide does not treat."""

FLOWS = sorted(load_flows().loaded)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """Return everything that is installed."""
    return load_catalog()


def nodes(catalog: Catalog) -> list[tuple[str, str, Node]]:
    """Return (flow, id, node) of every node of every shipped flow."""
    return [(name, each, node) for name, flow in catalog.flows.items() for each, node in flow.nodes.items()]


def changes(node: Node) -> list[Change]:
    """Return the changes a node proposes."""
    return [change for change in (node.change, *(action.change for action in node.actions)) if change is not None]


def commands(catalog: Catalog) -> list[tuple[str, str, Action]]:
    """Return (flow, node, action) of every command."""
    return [(flow, each, action) for flow, each, node in nodes(catalog) for action in node.actions if action.command]


def test_every_flow_lints_clean(catalog: Catalog) -> None:
    """Lint has no complaint about any shipped flow, so every leaf can be reached and every answer has a branch."""
    assert not catalog.broken
    found = [str(each) for one in catalog.loaded.values() for each in lint(one, catalog.answers, catalog.vocabulary)]
    assert found == []


def test_every_section_of_the_guide_has_a_node(catalog: Catalog) -> None:
    """No section of the guide map is without a node, and no node names a section that does not exist."""
    shelf = load_flows()
    assert {section for section, _ in shelf.guide} == set(SECTIONS)
    assert lint_guide(shelf.every, shelf.guide) == []
    strange = {(flow, each, one) for flow, each, node in nodes(catalog) for one in node.guide_ids} - {
        (flow, each, one) for flow, each, node in nodes(catalog) for one in node.guide_ids if one in (*SECTIONS, BEYOND)
    }
    assert strange == set()


@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_answers_the_sections_it_claims(catalog: Catalog, name: str) -> None:
    """The sections at the head of a flow are answered by its own nodes."""
    flow = catalog.flows[name]
    claimed = {flow.guide} if isinstance(flow.guide, str) else set(flow.guide)
    assert claimed
    assert claimed <= {one for node in flow.nodes.values() for one in node.guide_ids}


def test_every_node_names_its_section(catalog: Catalog) -> None:
    """Each node says which section of the guide it answers, or that it is beyond the guide."""
    assert [(flow, each) for flow, each, node in nodes(catalog) if not node.guide_ids] == []


def test_a_cause_says_what_to_do_and_how_to_verify_it(catalog: Catalog) -> None:
    """Each cause has a fix, something concrete to do, and a probe that tells whether it helped."""
    poor = [
        (flow, each)
        for flow, each, node in nodes(catalog)
        if node.cause is not None and not (node.fix and node.actions and node.verify)
    ]
    assert poor == []


def test_an_experiment_changes_something(catalog: Catalog) -> None:
    """Each change adds, removes or sets something; flags are spelt as slime's, variables are named."""
    for flow, each, node in nodes(catalog):
        for change in changes(node):
            where = f"{flow}/{each}"
            flags = (*change.add, *change.remove, *change.set)
            assert flags or change.env, where
            assert all(flag.startswith("--") for flag in flags), where
            assert not any(" " in flag for flag in (*change.remove, *change.set)), where
            assert all(name.isidentifier() for name in change.env), where


def test_commands_are_shell(catalog: Catalog) -> None:
    """Bash can parse every command; none is run here."""
    script = "\n".join(f"f{index}() {{\n{one.command}\n}}" for index, (_, _, one) in enumerate(commands(catalog)))
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(commands(catalog)) > 50


def test_embedded_python_compiles(catalog: Catalog) -> None:
    """Every `python3 -c "…"` of a command is Python."""
    sources = [
        one.command.split('python3 -c "', 1)[1].split('"', 1)[0]
        for _, _, one in commands(catalog)
        if one.command and 'python3 -c "' in one.command
    ]
    assert len(sources) > 5
    for source in sources:
        compile(source, "command", "exec")


def test_every_cause_of_the_guide_has_a_leaf(catalog: Catalog) -> None:
    """A cause that belongs to a section of the guide is named by some leaf."""
    named = {node.cause for _, _, node in nodes(catalog)}
    missing = [name for name, cause in catalog.vocabulary.items() if cause.guide != BEYOND and name not in named]
    assert missing == []


def test_the_vocabulary_keeps_every_agreed_id(catalog: Catalog) -> None:
    """Every agreed cause is there under its id and section; general names only known causes and makes no circle."""
    agreed = dict(line.split() for line in (DATA / "cause_ids.txt").read_text().splitlines())
    known = catalog.vocabulary
    assert {name: known[name].guide for name in agreed} == agreed

    def wider(name: str, above: tuple[str, ...] = ()) -> None:
        assert name not in above, f"{name} is more general than itself"
        for each in known[name].general:
            wider(each, (*above, name))

    for name in known:
        wider(name)


def test_consequences_are_marked(catalog: Catalog) -> None:
    """What follows from another fault by its nature is a cascade; root causes of the guide are not."""
    cascades = {name for name, cause in catalog.vocabulary.items() if cause.cascade}
    assert {"nccl-failure", "engine-unreachable", "trainer-died", "router-no-workers"} <= cascades
    assert not [name for name in cascades if catalog.vocabulary[name].guide != BEYOND]


def longest(flow: Flow) -> int:
    """Return the number of questions on the longest way from the start."""

    @cache
    def below(name: str) -> int:
        return max((1 + below(target) for target in flow.nodes[name].branches.values()), default=0)

    return below(flow.start)


QUESTIONS = {"precision": 47}
"""Flows with a limit of their own: four sections of the guide in one tree, most of whose questions need no person."""


@pytest.mark.parametrize("name", FLOWS)
def test_flows_stay_small(catalog: Catalog, name: str) -> None:
    """No walk through a flow asks more than sixteen questions, unless a limit of its own is set here."""
    assert longest(catalog.flows[name]) <= QUESTIONS.get(name, 16)


def test_what_several_flows_say_of_a_cause_is_said_once(catalog: Catalog) -> None:
    """A cause that leaves of several flows name has its words in the vocabulary, and no two flows repeat a fix."""
    shelf = load_flows()
    flows: dict[str, set[str]] = {}
    fixes: dict[str, set[str]] = {}
    for loaded in shelf.every:
        for node in loaded.flow.nodes.values():
            if node.cause is not None:
                flows.setdefault(node.cause, set()).add(loaded.flow.flow)
            if node.fix is not None:
                fixes.setdefault(node.fix.en, set()).add(loaded.flow.flow)
    shared = [cause for cause, names in flows.items() if len(names) > 1]
    assert [cause for cause in shared if catalog.vocabulary[cause].fix is None] == []
    assert [fix for fix, names in fixes.items() if len(names) > 1] == []
    assert [fix for fix in fixes if fix in {cause.fix.en for cause in catalog.vocabulary.values() if cause.fix}] == []

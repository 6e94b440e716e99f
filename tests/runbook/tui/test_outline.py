"""The outline of a flow: every node once, the long way flat, shared nodes named again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runbook.flow.model import Flow, Node
from runbook.session.state import SessionState
from runbook.text import Text
from runbook.tui.outline import came_from, home, outline, visible
from runbook.walk import By, Step, Walk
from tests.runbook.tui.kitchen import FLOW

X = Text("x", "x")


def graph(edges: dict[str, dict[str, str]]) -> Flow:
    """Return a flow of checks; a node without branches is a cause."""
    nodes = {name: Node(question=X, branches=out) if out else Node(cause=name, fix=X) for name, out in edges.items()}
    return Flow("f", X, X, next(iter(edges)), nodes)


def test_the_longest_way_stays_at_the_left_and_causes_stand_above_its_continuation() -> None:
    """Of the kitchen's flow the checks are flat and each cause hangs below the check that leads to it."""
    drawn = [(len(line.rails), line.node, line.answer) for line in outline(FLOW)]
    assert drawn == [
        (0, "oven-hot", ""),
        (1, "oven-off", "cold"),
        (0, "dough-risen", "hot"),
        (1, "old-yeast", "flat"),
        (0, "other-flour", "risen"),
        (1, "oven-off", "cold"),
        (0, "taste", "hot"),
        (1, "all-well", "yes"),
        (1, "bad-flour", "no"),
    ]


def test_a_shared_check_is_drawn_where_the_main_way_leads_to_it() -> None:
    """A check that a side branch and the main way share is only named in the side branch."""
    flow = graph(
        {"a": {"side": "s", "on": "b"}, "s": {"x": "c"}, "b": {"x": "c", "y": "e"}, "c": {"x": "d"}, "d": {}, "e": {}}
    )
    assert [(line.node, line.again, len(line.rails)) for line in outline(flow)] == [
        ("a", False, 0),
        ("s", False, 1),
        ("c", True, 2),
        ("b", False, 0),
        ("e", False, 1),
        ("c", False, 0),
        ("d", False, 1),
    ]


def test_folding_hides_what_hangs_below() -> None:
    """Folding a check hides its causes and nothing of the main way."""
    names = [line.node for line in visible(outline(FLOW), frozenset({"taste", "oven-hot"}))]
    assert names == ["oven-hot", "dough-risen", "old-yeast", "other-flour", "oven-off", "taste"]


@given(st.data())
def test_every_reachable_node_is_drawn_exactly_once(data: st.DataObject) -> None:
    """In any acyclic graph a reachable node has one full line, keys are unique, and parents stand above."""
    count = data.draw(st.integers(2, 14))
    edges: dict[str, dict[str, str]] = {}
    for i in range(count):
        targets = data.draw(st.lists(st.integers(i + 1, count - 1), max_size=4)) if i + 1 < count else []
        edges[f"n{i}"] = {f"w{k}": f"n{target}" for k, target in enumerate(targets)}
    flow = graph(edges)
    lines = outline(flow)
    assert sorted(line.node for line in lines if not line.again) == sorted(flow.reach("n0"))
    assert len({line.key for line in lines}) == len(lines)
    full = {line.node: place for place, line in enumerate(lines) if not line.again}
    assert all(full[line.parent] < place for place, line in enumerate(lines) if line.parent)


def test_an_end_below_several_checks_stands_where_the_walk_came_from() -> None:
    """Its home is the line below the check that was answered so; below the first one where no way leads there."""
    flow = graph({"a": {"died": "dead", "on": "b"}, "b": {"died": "dead", "on": "c"}, "c": {"x": "dead"}, "dead": {}})
    lines = outline(flow)
    walked = Walk("f", (Step("a", "on", By.PERSON, "ann"), Step("b", "died", By.PERSON, "ann")))
    for walk, parent, below in ((walked, "b", "b"), (Walk("f"), "", "a")):
        ways = came_from(flow, SessionState(walks={"f": walk}), ("dead",))
        assert ways.get("dead", "") == parent
        line = lines[home(lines, "dead", parent)]
        assert (line.node, line.parent) == ("dead", below)
    assert home(lines, "nowhere", "") == -1

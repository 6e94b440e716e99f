"""Commands of a flow name the evidence that there is, and nothing that a shell could misread."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.evidence import Evidence, Item
from runbook.finding import Citation
from runbook.flow.model import Action, Node
from runbook.placeholders import fill, filled
from runbook.text import Text

WORDS = Text("why", "why")


def evidence(*paths: str, slot: str = "log", missing: bool = False) -> Evidence:
    """Return evidence of one slot."""
    return Evidence(tuple(Item(slot, path, WORDS, missing=missing) for path in paths))


def cite(path: str) -> Citation:
    """Return a citation of a file."""
    return Citation(path, 1, 0, "x")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("grep -a 'x' LOG | tail", "grep -a 'x' /r/job.log | tail"),
        ("grep LOG LOG", "grep /r/job.log /r/job.log"),
        ("grep 'NCCL (WARN|error)' LOG", "grep 'NCCL (WARN|error)' /r/job.log"),
        ("echo $LOG ${LOG} LOG_DIR -LOG /LOG a.LOG", "echo $LOG ${LOG} LOG_DIR -LOG /LOG a.LOG"),
        ("cat DIR/LOG", "cat DIR/LOG"),
        ("df -h", "df -h"),
    ],
)
def test_a_word_stands_for_the_one_path_of_its_slot(command: str, expected: str) -> None:
    """Only the whole word is replaced; variables, parts of names and other capitals stay."""
    assert fill(command, evidence("/r/job.log")) == expected


def test_of_several_items_the_cited_one_is_meant() -> None:
    """Two logs: the word stays, unless one of them is what proves the cause; what is not evidence never counts."""
    two = evidence("/r/a.log", "/r/b.log")
    assert fill("tail LOG", two) == "tail LOG"
    assert fill("tail LOG", two, [cite("/elsewhere"), cite("/r/b.log")]) == "tail /r/b.log"


def test_what_is_missing_is_not_named() -> None:
    """An item that is only named somewhere is no path to give to a command."""
    assert fill("tail LOG", evidence("/r/a.log", missing=True)) == "tail LOG"


@pytest.mark.parametrize("path", ["/r/a b", "/r/$(reboot)", "/r/a;b", "/r/'x'", "-rf", "/r/日", "/r/a\nb", ""])
def test_a_path_that_a_shell_could_misread_is_not_filled_in(path: str) -> None:
    """The word stays: the person writes the path, quoted as it needs."""
    assert fill("tail LOG", evidence(path)) == "tail LOG"


@given(st.text(min_size=1, max_size=30))
def test_a_filled_command_has_the_path_as_one_word(path: str) -> None:
    """Whatever a path is called, a shell reads the command's words as before, with the path in place of the word."""
    assert shlex.split(fill("tail -n 5 'x y' LOG", evidence(path))) in (
        ["tail", "-n", "5", "x y", "LOG"],
        ["tail", "-n", "5", "x y", path],
    )


def test_the_commands_of_a_node_are_filled_and_nothing_else() -> None:
    """Words, links and changes of the actions stay; a node without commands is the very same."""
    node = Node(cause="c", fix=WORDS, actions=(Action(command="tail LOG"), Action(link="https://x/LOG")))
    done = filled(node, evidence("/r/job.log"))
    assert [action.command or action.link for action in done.actions] == ["tail /r/job.log", "https://x/LOG"]
    assert done.fix == node.fix
    assert filled(Node(cause="c", fix=WORDS), evidence("/r/job.log")).actions == ()

"""The action registry, the words, the signs and the inks: what is shown agrees with what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.color import Color
from textual.theme import Theme

from runbook.catalog import Catalog
from runbook.flow.model import Change
from runbook.session.state import SessionState
from runbook.triage import Report
from runbook.tui import actions, frame, theme
from runbook.tui.action import Action
from runbook.tui.app import RunbookApp
from runbook.tui.browse import BrowseScreen
from runbook.tui.browse_sheet import SheetRows
from runbook.tui.browse_tokens import Tokens
from runbook.tui.linespane import Lines
from runbook.tui.nodepane import Reading
from runbook.tui.nodetext import change_lines
from runbook.tui.preview import PreviewScreen
from runbook.tui.rows import Rows
from runbook.tui.signs import ASCII, UNICODE, Signs
from runbook.tui.start import StartScreen
from runbook.tui.treepane import TreePane
from runbook.tui.view import View
from runbook.tui.walk import WalkScreen
from runbook.tui.words import ONE, WORDS, word

SERVING = {
    "app": RunbookApp,
    "start": StartScreen,
    "walk": WalkScreen,
    "rows": Rows,
    "tree": TreePane,
    "node": Reading,
    "lines": Lines,
    "browse": BrowseScreen,
    "sheet": SheetRows,
    "reading": Tokens,
    "preview": PreviewScreen,
}


def test_the_key_table_in_docs_is_the_registry() -> None:
    """docs/keys.md is what the registry generates."""
    path = Path(__file__).parents[3] / "docs" / "keys.md"
    assert path.read_text(encoding="utf-8") == actions.key_table()


@pytest.mark.parametrize("action", actions.ACTIONS, ids=lambda action: f"{action.scope}.{action.name}")
def test_every_action_is_served_and_needs_no_chord(action: Action) -> None:
    """Each action has its method, words in both languages, and a first key that is no ctrl-chord."""
    on_app, _, name = action.name.rpartition(".")
    assert hasattr(RunbookApp if on_app else SERVING[action.scope], f"action_{name}")
    assert action.title.zh
    assert action.help.zh
    assert not action.keys[0].startswith("ctrl+")
    assert not {"ctrl+h", "ctrl+j", "ctrl+i", "ctrl+m"} & set(action.keys)


@pytest.mark.parametrize(
    "scopes",
    [
        ("start", "app"),
        ("walk", "app"),
        ("rows", "tree"),
        ("rows", "lines"),
        ("node",),
        ("browse", "sheet", "app"),
        ("browse", "reading", "app"),
        ("preview", "app"),
    ],
)
def test_keys_that_are_active_together_do_not_clash(scopes: tuple[str, ...]) -> None:
    """No key stands for two actions of one page or of one pane."""
    keys = [key for action in actions.of_scopes(*scopes) for key in action.keys]
    assert len(keys) == len(set(keys))


def test_words_have_both_languages_and_the_same_placeholders() -> None:
    """Every UI word is there in English and Chinese, with the same placeholders."""
    for key, text in WORDS.items():
        assert text.en, key
        assert text.zh, key
        assert set(re.findall(r"{(\w+)}", text.en)) == set(re.findall(r"{(\w+)}", text.zh)), key


@pytest.mark.parametrize(
    ("key", "values", "one", "more"),
    [
        ("rows_all", {"n": "1"}, "1 row", {"n": "1,001"}),
        ("jumps", {"n": "1", "least": "1", "unit": "nat"}, "1 disagreement of 1 nat or more", {"n": "21"}),
        ("do_wait", {"count": 1, "key": "s"}, "1 probe running; s cancels, a number answers by hand", {"count": 2}),
    ],
)
def test_of_one_the_english_words_are_singular(
    key: str, values: dict[str, object], one: str, more: dict[str, object]
) -> None:
    """One row is no "1 rows"; Chinese has one form, and the singular has the placeholders of the plural."""
    assert word(key, "en", **values) == one
    assert word(key, "en", **values | more) != one
    assert word(key, "en", **values | more) == WORDS[key].en.format(**values | more)
    assert word(key, "zh", **values) == WORDS[key].zh.format(**values)
    assert set(re.findall(r"{(\w+)}", ONE[key])) == set(re.findall(r"{(\w+)}", WORDS[key].en))


@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_a_change_reads_the_same_in_every_front(signs: Signs) -> None:
    """The UI draws the lines of a change that plain mode and the ticket write, only coloured and moved right."""
    change = Change(add=("--a [b]",), remove=("--old",), set={"--minutes": "50"}, env={"KITCHEN": "2"})
    view = View(SessionState(), Report((), (), (), (), ()), Catalog(), "zh", signs, theme.COLOUR)
    drawn = change_lines(view, change).plain.splitlines()
    assert drawn == [f"  {line}" for line in change.lines()]


def test_every_word_is_used() -> None:
    """No UI word is kept that nothing draws: each key stands in a module of the UI, some of them behind a prefix."""
    folder = Path(actions.__file__).parent
    sources = "".join(path.read_text() for path in folder.glob("*.py") if path.name != "words.py")
    drawn = set(re.findall(r"[\"']([a-z_]+)[\"']", sources))
    unused = {key for key in WORDS if key not in drawn and not key.startswith("file_")}
    assert unused == set()


def test_words_that_name_a_key_name_the_registrys() -> None:
    """The words that tell which key does something take it from the registry, by its name on the keyboard."""
    assert actions.key_of("walk", "cancel") == "s"
    assert actions.key_of("start", "app.add") == "a"
    assert actions.key_of("walk", "add") == "+"
    with pytest.raises(KeyError):
        actions.key_of("walk", "dance")
    for key in ("do_wait", "no_evidence", "no_file", "hide_not"):
        assert "{key}" in WORDS[key].en


def test_the_ascii_signs_are_ascii_and_both_sets_are_complete() -> None:
    """The ASCII set holds nothing beyond ASCII; a sign that stands in a column is one cell wide in both sets."""
    for name in Signs.__dataclass_fields__:
        if name != "ascii_only":
            assert getattr(ASCII, name).isascii()
            assert len(getattr(UNICODE, name)) == 1
    for name in ("running", "queued", "bar", "spine", "again", "folded", "cursor"):
        assert len(getattr(ASCII, name)) == 1


def _contrast(one: Color, two: Color) -> float:
    """Return the contrast ratio of WCAG 2."""

    def luminance(color: Color) -> float:
        parts = [c / 255 for c in (color.r, color.g, color.b)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [theme.DARK, theme.LIGHT], ids=lambda t: t.name)
def test_every_ink_can_be_read_on_every_ground(colours: Theme) -> None:
    """Text inks reach 4.5:1 on the background, and on the rows of the cursor too."""
    grounds = [colours.background, colours.variables["ink-cursor"], colours.variables["ink-resting"]]
    inks = [
        colours.foreground,
        *(colours.variables[f"ink-{n}"] for n in ("dim", "accent", "good", "bad", "warn", "quote")),
    ]
    for ground in grounds:
        for ink in inks:
            assert _contrast(Color.parse(ink or ""), Color.parse(ground or "")) >= 4.5, (ink, ground)


def test_without_colour_no_ink_names_a_colour() -> None:
    """The plain inks are text attributes only."""
    for name in theme.Ink.__dataclass_fields__:
        assert set(getattr(theme.PLAIN, name).split()) <= {"bold", "dim", "reverse", "underline"}


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 60), (1, 1), (10, 2)])
def test_the_first_frame_fits_any_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, rows: int) -> None:
    """The frame enters the alternate screen, writes no line beyond the terminal, and has no colour under NO_COLOR."""
    monkeypatch.setenv("NO_COLOR", "1")
    drawn = frame.first_frame(columns, rows)
    assert drawn.startswith(frame.ENTER)
    assert "\x1b[38" not in drawn
    for line in re.split(r"\x1b\[[0-9;?]*[A-Za-z]", drawn):
        assert len(line) <= columns
    assert all(int(row) <= rows for row in re.findall(r"\x1b\[(\d+);1H", drawn))

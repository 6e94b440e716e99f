"""Megatron's table of arguments is read wherever it stands in a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import arguments
from probes.readers.arguments import Arguments
from probes.readers.logfiles import expand
from probes.readers.logscan import Coverage

BEGIN = "------------------------ arguments ------------------------"
END = "-------------------- end of arguments ---------------------"


def _row(name: str, value: object) -> str:
    """Print a row as Megatron does."""
    return f"  {name} {'.' * (48 - len(name))} {value}"


def _read(path: Path, lines: list[str]) -> tuple[Arguments, ...]:
    path.write_text("\n".join(lines) + "\n")
    return arguments.read(expand([str(path)])[0], Coverage())


def test_rows_are_read_with_their_place(tmp_path: Path) -> None:
    """Name, value, line and offset of every row, as printed."""
    rows = {"load": "None", "lr": 1e-06, "moe_layer_freq": [0, 1, 1], "x" * 50: False, "note": "a ... b"}
    lines = ["using world size: 8", BEGIN, *(_row(name, value) for name, value in rows.items()), END, "  not_a ... row"]
    (table,) = _read(tmp_path / "job.log", lines)
    assert {name: row.value for name, row in table.rows.items()} == {name: str(value) for name, value in rows.items()}
    assert table.whole
    content = "\n".join(lines)
    for row in table.rows.values():
        assert content[row.offset :].startswith(lines[row.line - 1])
        assert row.raw.decode() == lines[row.line - 1]


@pytest.mark.parametrize("prefix", ["(Driver pid=3) ", "\x1b[36m(Driver pid=3)\x1b[0m "])
def test_a_prefixed_table_skips_lines_of_others(tmp_path: Path, prefix: str) -> None:
    """Behind a Ray prefix only the rows of the same process belong to the table."""
    lines = [BEGIN, _row("load", "/a"), END]
    mixed = [prefix + lines[0], "(Other pid=9) " + _row("load", "/b"), prefix + lines[1], prefix + lines[2]]
    (table,) = _read(tmp_path / "job.log", mixed)
    assert table.value("load") == "/a"
    assert len(table.rows) == 1


def test_a_cut_table_says_so(tmp_path: Path) -> None:
    """Without its last ruler a table is not whole, but its rows are there."""
    (table,) = _read(tmp_path / "job.log", [BEGIN, _row("load", "/a")])
    assert (table.whole, table.value("load"), table.value("save")) == (False, "/a", None)


def test_values_as_number_and_flag(tmp_path: Path) -> None:
    """Numbers and True are recognised; anything else is neither."""
    rows = [_row("num_steps_per_rollout", 4), _row("colocate", True), _row("load", None)]
    (table,) = _read(tmp_path / "job.log", [BEGIN, *rows, END])
    assert table.number("num_steps_per_rollout") == 4.0
    assert (table.number("load"), table.number("absent")) == (None, None)
    assert (table.true("colocate"), table.true("load"), table.true("absent")) == (True, False, False)


def test_every_job_of_a_log_has_its_table(tmp_path: Path) -> None:
    """Two jobs in one log give two tables, in order."""
    tables = _read(tmp_path / "job.log", [BEGIN, _row("load", "/a"), END, "x", BEGIN, _row("load", "/b"), END])
    assert [table.value("load") for table in tables] == ["/a", "/b"]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z_]{0,60}", fullmatch=True),
        st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1),
        max_size=8,
    )
)
def test_any_value_is_read_as_printed(tmp_path_factory: pytest.TempPathFactory, rows: dict[str, str]) -> None:
    """Values of one line come back unchanged, whatever they are."""
    path = tmp_path_factory.mktemp("log") / "job.log"
    (table,) = _read(path, [BEGIN, *(_row(name, value) for name, value in rows.items()), END])
    assert {name: row.value for name, row in table.rows.items()} == rows

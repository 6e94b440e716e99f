"""Tests of the lines of SGLang's weight checker, of all versions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from probes.readers.weight_checker_log import ACCESS, ACTION, DRIVER, EQUAL, ERROR, NOTE, ROW, SIGNATURES, Row, rows
from tests.helpers import hostile_bytes

OLD = (
    b"name=model.layers.0.mlp.gate_up_proj.weight max_abs_err=0.9921875 mean_abs_err=0.31 "
    b"get_tensor_info(expect)=\"type=<class 'torch.Tensor'> shape=torch.Size([19456, 2560]) min=-0.41\" "
)
NEW = (
    b"name=model.norm.weight max_abs_err=0.5 mean_abs_err=0.25 num_exceed=49 "
    b"expect=raw(shape=(64,) dtype=torch.bfloat16) actual=raw(shape=(64,) dtype=torch.bfloat16) "
)
NOTED = (
    b'response.text=\'{"success":false,"message":"check tensor equality failed:\\\\nname=a.weight max_abs_err=0.9'
    b"\\\\nname=b.weight max_abs_err=1.5 mean_abs_err=0.1\"}'"
)


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (OLD, [Row("model.layers.0.mlp.gate_up_proj.weight", 0.9921875, 0.31)]),
        (NEW, [Row("model.norm.weight", 0.5, 0.25)]),
        (b"name=x max_abs_err=tensor(0.5, device='cuda:0') mean_abs_err=1", [Row("x", 0.5, math.nan)]),
    ],
)
def test_rows_of_every_version(raw: bytes, wanted: list[Row]) -> None:
    """Name and errors come out of a row, whatever follows them."""
    (found,) = rows(raw)
    assert (found.name, found.most) == (wanted[0].name, wanted[0].most)
    assert found.mean == wanted[0].mean or math.isnan(wanted[0].mean)


def test_the_drivers_note_holds_every_row() -> None:
    """The rows of a response's text are found though their line ends are escaped."""
    assert [row.name for row in rows(NOTED)] == ["a.weight", "b.weight"]


@pytest.mark.parametrize(
    ("signature", "yes", "no"),
    [
        (
            ACTION,
            b"[WeightChecker] handle action=compare allow_quant_error=False",
            b"[WeightChecker] checksum computed",
        ),
        (EQUAL, b"[check_tensors] equal tensors: ['a']", b"[check_tensors] info: ['name=a']"),
        (ERROR, b"check_weights see error: check tensor equality failed:", b"check_weights done"),
        (ROW, NEW, b"max_abs_err=0.5 of all"),
        (DRIVER, b"HTTPError: 404 Client Error: Not Found for url: http://h:1/check_weights", b"GET /weights_checker"),
        (ACCESS, b'"POST /weights_checker HTTP/1.1" 400 Bad Request', b'"POST /weights HTTP/1.1" 400'),
        (NOTE, NOTED, b"check tensor equality failed"),
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_signatures_hit_their_line_and_no_other(signature, yes: bytes, no: bytes) -> None:  # type: ignore[no-untyped-def]
    """Each signature has a line it hits, through one of its literals, and one it leaves alone."""
    assert signature.pattern.search(yes)
    assert any(literal in yes for literal in signature.literals)
    assert not signature.pattern.search(no)


@given(hostile_bytes)
def test_hostile_lines_never_raise(raw: bytes) -> None:
    """Any bytes can be searched and read as rows."""
    for each in SIGNATURES:
        each.pattern.search(raw)
    assert all(row.name for row in rows(b"name=" + raw + b" max_abs_err=" + raw))

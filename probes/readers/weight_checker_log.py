"""Reads what SGLang's weight checker prints: the side of --check-weight-update-equal that stands in a log.

slime asks for snapshot, reset_tensors and, after the first update, compare (slime/ray/placement_group.py). The lines
differ by version:

    0.5.6-0.5.9   [WeightChecker] handle action=compare
                  name=N max_abs_err=X mean_abs_err=Y get_tensor_info(…
    0.5.15        [WeightChecker] handle action=compare allow_quant_error=False
                  name=N max_abs_err=X mean_abs_err=Y num_exceed=K expect=…
    all           [check_tensors] equal tensors: [...]   check_weights see error: …   and the access and driver lines

Rows come once after the error line and once more in the traceback; the driver's note holds them a third time with
escaped line ends. Nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from probes.readers.logscan import Signature, signature

ACTION = signature("wcheck-action", "[WeightChecker] handle action=", r"\[WeightChecker\] handle action=(\w+)")
EQUAL = signature("wcheck-equal", "[check_tensors] equal tensors: [", r"\[check_tensors\] equal tensors: \[(.?)")
ERROR = signature("wcheck-error", "check_weights see error: ", r"check_weights see error: (.*)")
ROW = signature(
    "wcheck-row",
    "max_abs_err=",
    r"(?:^|[\s'\"\\n])name=([^\s\\']{1,400}) max_abs_err=(\S{1,40})(?: mean_abs_err=(\S{1,40}))?",
)
DRIVER = signature(
    "wcheck-driver",
    ("/weights_checker", "/check_weights"),
    r"HTTPError: (\d{3}) .{0,80}? for url: \S{1,300}/(?:weights_checker|check_weights)\b",
)
ACCESS = signature(
    "wcheck-access",
    ("/weights_checker HTTP", "/check_weights HTTP"),
    r'"(?:POST|GET) /(?:weights_checker|check_weights) HTTP/[\d.]+" (\d{3})',
)
NOTE = signature(
    "wcheck-note",
    "check tensor equality failed",
    r"response\.text=.{0,20}\{\\*\"success\\*\": ?false, ?\\*\"message\\*\": ?\\*\"check tensor equality failed",
)
SIGNATURES: tuple[Signature, ...] = (ACTION, EQUAL, ERROR, ROW, DRIVER, ACCESS, NOTE)

_ROWS = re.compile(rb"name=([^\s\\']{1,400}) max_abs_err=([^\s\\,\"'}]{1,40})(?: mean_abs_err=([^\s\\,\"'}]{1,40}))?")


@dataclass(frozen=True)
class Row:
    """A tensor that differs: its name in the engine, and the errors as printed; nan where they are no numbers."""

    name: str
    most: float
    mean: float


def rows(text: bytes) -> Iterator[Row]:
    """Yield the tensors that a line of rows names: one for a row, any number for a driver's note."""
    for name, most, mean in _ROWS.findall(text):
        yield Row(name.decode("utf-8", "replace"), _number(most), _number(mean))


def _number(raw: bytes) -> float:
    """Return a printed number, also one in torch's form `tensor(0.5)`; nan for anything else."""
    text = raw.decode("utf-8", "replace").removeprefix("tensor(").rstrip("),")
    try:
        return float(text)
    except ValueError:
        return float("nan")

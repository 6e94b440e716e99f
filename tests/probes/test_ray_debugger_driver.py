"""ray.init() and breakpoint() in the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.ray_debugger_driver import driver
from tests.probes.asking import word
from tests.probes.scripts import ask, cited, write

MAIN = 'import ray\nfrom slime.utils.arguments import parse_args\n\nif __name__ == "__main__":\n'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    ray.init()\n    breakpoint()\n    args = parse_args()\n", "ok:init-before-breakpoint"),
        ("    breakpoint()\n    ray.init()\n", "problem:breakpoint-without-init"),
        ("    args = parse_args()\n    breakpoint()\n", "problem:breakpoint-without-init"),
        ("    start_cluster()\n    breakpoint()\n", "unknown"),
        ("    ray.init()\n    args = parse_args()\n", "warning:left-behind"),
        ("    ray.init(address='auto')\n", "ok:no-breakpoint"),
        ("    args = parse_args()\n", "ok:no-breakpoint"),
        ("    # breakpoint()\n    pass\n", "ok:no-breakpoint"),
        ("    (\n", "unknown"),
    ],
)
def test_the_order_decides(tmp_path: Path, body: str, expected: str) -> None:
    """A breakpoint before Ray is initialised is a fault; one after other calls may be fine."""
    assert word(ask(driver, driver=write(tmp_path, "train.py", MAIN + body))) == expected


def test_the_breakpoint_is_the_proof(tmp_path: Path) -> None:
    """Its own line is cited."""
    assert cited(ask(driver, driver=write(tmp_path, "train.py", MAIN + "    breakpoint()\n"))) == ["breakpoint()"]

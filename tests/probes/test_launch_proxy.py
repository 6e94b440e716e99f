"""Proxy variables that reach the job, with and without an exception for the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_proxy import proxy
from tests.probes.asking import word
from tests.probes.scripts import PLACED, ask_script, script

SET = "export http_proxy=http://proxy:3128"


@pytest.mark.parametrize(
    ("exports", "env", "expected"),
    [
        ("", "", "ok:not-set"),
        ("export https_proxy=http://proxy:3128", "", "ok:not-set"),
        (f"{SET}\nunset http_proxy", "", "ok:not-set"),
        (f"{SET}\nexport http_proxy=", "", "ok:not-set"),
        (SET, "", "warning:caught"),
        (f"{SET}\nexport no_proxy=localhost,127.0.0.1", "", "warning:caught"),
        (f"{SET}\nexport no_proxy=127.0.0.1,${{MASTER_ADDR}}", "", "ok:excepted"),
        (f"{SET}\nexport NO_PROXY=10.0.0.0/8", "", "ok:excepted"),
        ("", ',\\n    \\"HTTP_PROXY\\": \\"http://proxy:3128\\"', "warning:caught"),
        (f'if [ "$X" = 1 ]; then\n{SET}\nfi', "", "ok:not-set"),
    ],
)
def test_what_reaches_the_job(tmp_path: Path, exports: str, env: str, expected: str) -> None:
    """Exported or passed in the runtime env, an HTTP proxy counts unless more than this machine is excepted."""
    assert word(ask_script(proxy, tmp_path, script(*PLACED, exports=exports, env=env))) == expected


def test_no_command_no_answer(tmp_path: Path) -> None:
    """A script without a job says nothing of one."""
    assert word(ask_script(proxy, tmp_path, SET)) == "unknown"

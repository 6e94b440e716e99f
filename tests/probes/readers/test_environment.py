"""How far a variable of a launch script gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.readers.environment import Reach, reach
from probes.readers.launch import read_launch
from tests.probes.scripts import RAY_START, script, write

EXPORT = "export FOO=1"


@pytest.mark.parametrize(
    ("exports", "env", "before", "expected"),
    [
        (EXPORT, ',\\"FOO\\": \\"${FOO}\\"', RAY_START, Reach.RUNTIME_ENV),
        (EXPORT, "", RAY_START, Reach.BEFORE_RAY),
        (EXPORT, "", "", Reach.EXPORTED),
        ("", "", f"{RAY_START}\n{EXPORT}", Reach.EXPORTED),
        ("FOO=1", "", RAY_START, Reach.NOWHERE),
        ("export FOO=0", "", RAY_START, Reach.OTHER_VALUE),
        (EXPORT, ',\\"FOO\\": \\"0\\"', RAY_START, Reach.OTHER_VALUE),
    ],
)
def test_the_runtime_env_and_ray_start_carry_it(
    tmp_path: Path, exports: str, env: str, before: str, expected: Reach
) -> None:
    """Workers see the runtime env, which wins, and what was exported before `ray start`; nothing else."""
    launch = read_launch(write(tmp_path, "run.sh", script(exports=exports, env=env, before=before)))
    state, citations = reach(launch, launch.jobs[0], "FOO", "1")
    assert state is expected
    assert all("FOO" in citation.excerpt for citation in citations)

"""The variable that Ray reads, its misspellings, and whether it reaches the workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.ray_debugger_env import env
from tests.probes.asking import word
from tests.probes.scripts import RAY_START, ask_script, cited, script


def entry(name: str, value: str = "1") -> str:
    """Return a further entry of the runtime env."""
    return f',\n    \\"{name}\\": \\"{value}\\"'


RIGHT, GUIDE = "RAY_DEBUG_POST_MORTEM", "RAY_DEBUG_POSTMORTEM"


@pytest.mark.parametrize(
    ("exports", "extra", "before", "expected"),
    [
        ("", "", RAY_START, "ok:not-debugging"),
        (f"export {RIGHT}=1", entry(RIGHT), RAY_START, "ok:enabled"),
        (f"export {RIGHT}=1", entry(RIGHT, f"${{{RIGHT}:-0}}"), RAY_START, "ok:enabled"),
        ("", entry(RIGHT, f"${{{RIGHT}:-0}}"), RAY_START, "ok:not-exported"),
        ("", entry(RIGHT, "${FROM_OUTSIDE}"), RAY_START, "unknown"),
        (f"export {RIGHT}=1", "", RAY_START, "warning:not-in-runtime-env"),
        ("", "", f"{RAY_START}\nexport {RIGHT}=1", "problem:not-in-runtime-env"),
        (f"export {GUIDE}=1", entry(GUIDE), RAY_START, "problem:misspelt"),
        (f"export {GUIDE}=1", entry(GUIDE, f"${{{GUIDE}:-0}}"), RAY_START, "problem:misspelt"),
        ("", entry(GUIDE), RAY_START, "problem:misspelt"),
        (f"export {GUIDE}=0", entry(GUIDE, f"${{{GUIDE}:-0}}"), RAY_START, "ok:not-debugging"),
        (f"export {GUIDE}=1\nexport {RIGHT}=1", entry(RIGHT), RAY_START, "ok:enabled"),
        ("export RAY_DEBUG=legacy", entry(RIGHT), RAY_START, "warning:legacy"),
        (f"# export {RIGHT}=1", "", RAY_START, "ok:not-debugging"),
        ("", entry(RIGHT, "true"), RAY_START, "problem:misspelt"),
        ("", entry("RAY_DEBUG", "0"), RAY_START, "warning:switched-off"),
        ("export RAY_DEBUG=true", "", RAY_START, "warning:switched-off"),
        ("export RAY_DEBUG=legacy", entry("RAY_DEBUG", "1"), RAY_START, "ok:not-debugging"),
        ("", entry("RAY_DEBUG", "1") + entry(RIGHT), RAY_START, "ok:enabled"),
        ("export RAY_DEBUG=legacy", entry(GUIDE), RAY_START, "problem:misspelt"),
    ],
)
def test_where_the_variable_is_set(tmp_path: Path, exports: str, extra: str, before: str, expected: str) -> None:
    """Only RAY_DEBUG_POST_MORTEM=1 that reaches the workers enables the debugger; the guide's spelling never does."""
    assert word(ask_script(env, tmp_path, script(exports=exports, env=extra, before=before))) == expected


def test_the_misspelling_is_cited_wherever_it_stands(tmp_path: Path) -> None:
    """Both the export and the runtime env are shown."""
    finding = ask_script(env, tmp_path, script(exports=f"export {GUIDE}=1", env=entry(GUIDE)))
    assert cited(finding) == [f"export {GUIDE}=1", f'\\"{GUIDE}\\": \\"1\\"']
    assert RIGHT in finding.summary.en


def test_a_script_without_a_job_is_unknown(tmp_path: Path) -> None:
    """No training command, no answer."""
    assert word(ask_script(env, tmp_path, "echo\n")) == "unknown"

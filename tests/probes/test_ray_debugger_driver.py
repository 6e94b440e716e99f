"""ray.init() and breakpoint() in the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.ray_debugger_driver import driver
from tests.probes.asking import rollout, word
from tests.probes.scripts import PLACED, ask, ask_script, cited, script, write

NO_WORKER = "AttributeError: 'Worker' object has no attribute 'core_worker'"
MAIN = 'import ray\nfrom slime.utils.arguments import parse_args\n\nif __name__ == "__main__":\n'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    ray.init()\n    breakpoint()\n    args = parse_args()\n", "ok:init-before-breakpoint"),
        ("    breakpoint()\n    ray.init()\n", "problem:breakpoint-without-init"),
        ("    args = parse_args()\n    breakpoint()\n", "problem:breakpoint-without-init"),
        ("    start_cluster()\n    breakpoint()\n", "unknown"),
        ("    ray.init()\n    args = parse_args()\n", "warning:bare-init"),
        ("    if not ray.is_initialized():\n        ray.init()\n    breakpoint()\n", "ok:init-before-breakpoint"),
        ("    ray.init()\n    # breakpoint()\n    args = parse_args()\n", "problem:left-behind"),
        ("    ray.get(x)\n    breakpoint()\n", "ok:init-before-breakpoint"),
        ("    import pdb; pdb.set_trace()\n", "warning:plain-pdb"),
        ("    ray.init()\n    import pdb; pdb.set_trace()\n", "warning:plain-pdb"),
        ("    ray.util.pdb.set_trace()\n", "problem:breakpoint-without-init"),
        ("    try:\n        train()\n    except Exception:\n        breakpoint()\n", "unknown"),
        ("    ray.init(address='auto')\n", "ok:no-breakpoint"),
        ("    args = parse_args()\n", "ok:no-breakpoint"),
        ("    # breakpoint()\n    pass\n", "ok:no-breakpoint"),
        ("    (\n", "unknown"),
    ],
)
def test_the_order_decides(tmp_path: Path, body: str, expected: str) -> None:
    """A breakpoint before Ray is initialised is a fault; one after other calls may be fine."""
    assert word(ask(driver, driver=write(tmp_path, "train.py", MAIN + body))) == expected


ACTOR = (
    "import ray\n\n@ray.remote\nclass Trainer:\n    def train(self, args):\n{}\n\n"
    "if __name__ == '__main__':\n    go()\n"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("        breakpoint()", "ok:breakpoint-in-worker"),
        ("        import pdb; pdb.set_trace()", "warning:plain-pdb"),
        ("        ray.util.pdb.set_trace()", "ok:breakpoint-in-worker"),
        ("        pass", "ok:no-breakpoint"),
    ],
)
def test_an_actor_needs_no_ray_init(tmp_path: Path, body: str, expected: str) -> None:
    """Inside an actor breakpoint() works as it stands, and pdb never does."""
    assert word(ask(driver, driver=write(tmp_path, "train.py", ACTOR.format(body)))) == expected


@pytest.mark.parametrize(
    ("condition", "flags", "env", "expected"),
    [
        ("args.debug_stop", (), "", "ok:no-breakpoint"),
        ("args.debug_stop", ("--debug-stop",), "", "problem:breakpoint-without-init"),
        ("not args.debug_stop", (), "", "problem:breakpoint-without-init"),
        ("os.environ.get('STOP') == '1'", (), "", "ok:no-breakpoint"),
        ("os.environ.get('STOP') == '1'", (), ',\n \\"STOP\\": \\"1\\"', "problem:breakpoint-without-init"),
        ("os.environ.get('STOP') == '1'", (), ',\n \\"STOP\\": \\"0\\"', "ok:no-breakpoint"),
        ("os.environ.get('STOP')", (), ',\n \\"STOP\\": \\"${FROM_OUTSIDE}\\"', "unknown"),
        ("rank == 0", (), "", "unknown"),
    ],
)
def test_a_breakpoint_behind_a_condition_counts_where_the_run_fulfils_it(
    tmp_path: Path, condition: str, flags: tuple[str, ...], env: str, expected: str
) -> None:
    """What the launch script leaves off is not reached; what it cannot tell stays open."""
    body = f"    args = parse_args()\n    if {condition}:\n        breakpoint()\n"
    path = write(tmp_path, "train.py", MAIN + body)
    assert word(ask_script(driver, tmp_path, script(*PLACED, *flags, env=env), driver=path)) == expected


def test_without_a_launch_script_a_condition_stays_open(tmp_path: Path) -> None:
    """Nothing tells whether the flag is given."""
    path = write(tmp_path, "train.py", MAIN + "    if args.stop:\n        breakpoint()\n")
    finding = ask(driver, driver=path)
    assert word(finding) == "unknown"
    assert "args.stop" in finding.summary.en


@pytest.mark.parametrize(
    ("exports", "env", "after", "expected"),
    [
        ("", "", "", "warning:bare-init"),
        ("export RAY_DEBUG_POST_MORTEM=1", "", "", "problem:left-behind"),
        ("", ',\n \\"RAY_DEBUG_POSTMORTEM\\": \\"1\\"', "", "problem:left-behind"),
        ("export RAY_DEBUG=legacy", "", "", "problem:left-behind"),
        ("", ',\n \\"RAY_DEBUG_POST_MORTEM\\": \\"0\\"', "", "warning:bare-init"),
        ("", "", 'PIP=\'"pip": ["debugpy==1.8.0"]\'\n', "problem:left-behind"),
        ("", "", '# "pip": ["debugpy==1.8.0"]\n', "warning:bare-init"),
        ("pip install debugpy==1.8.0", "", "", "warning:bare-init"),
    ],
)
def test_a_bare_init_was_left_behind_only_with_a_trace_of_debugging(
    tmp_path: Path, exports: str, env: str, after: str, expected: str
) -> None:
    """A driver's own ray.init() is no fault; beside a switch of the debugger it was left behind."""
    path = write(tmp_path, "train.py", MAIN + "    ray.init()\n    args = parse_args()\n")
    text = script(*PLACED, exports=exports, env=env) + after
    assert word(ask_script(driver, tmp_path, text, driver=path)) == expected


@pytest.mark.parametrize(
    ("line", "lines", "expected"),
    [
        ("breakpoint()", (), "problem:breakpoint-without-init"),
        ("breakpoint()", (rollout(0, raw_reward=0.5), rollout(1, raw_reward=0.5)), "unknown"),
        ("breakpoint()", (rollout(0, raw_reward=0.5), NO_WORKER), "problem:breakpoint-without-init"),
        ("import pdb; pdb.set_trace()", (), "warning:plain-pdb"),
        ("import pdb; pdb.set_trace()", (rollout(0, raw_reward=0.5),), "unknown"),
        ("import pdb; pdb.set_trace()", (rollout(0, raw_reward=0.5), "bdb.BdbQuit"), "warning:plain-pdb"),
    ],
)
def test_a_job_that_trains_did_not_run_such_a_driver(
    tmp_path: Path, line: str, lines: tuple[str, ...], expected: str
) -> None:
    """The driver at hand may be a later one than that of the log; only its failure in the log says otherwise."""
    log = write(tmp_path, "job.log", "\n".join(("Running entrypoint for job raysubmit_x: python3 t.py", *lines)) + "\n")
    path = write(tmp_path, "train.py", MAIN + f"    {line}\n    args = parse_args()\n")
    assert word(ask(driver, driver=path, log=log)) == expected


def test_the_breakpoint_is_the_proof(tmp_path: Path) -> None:
    """Its own line is cited."""
    assert cited(ask(driver, driver=write(tmp_path, "train.py", MAIN + "    breakpoint()\n"))) == ["breakpoint()"]

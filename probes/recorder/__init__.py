"""The recorder of what SGLang's load_weights is given, shipped to be copied beside the engine.

The folder itself goes on PYTHONPATH of the job: Python then runs its `sitecustomize`, which needs nothing but the
standard library and, once an engine loads a model, torch. slime-runbook need not be installed there. Nothing of
SGLang is edited.
"""

from __future__ import annotations

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))
"""What PYTHONPATH must name."""

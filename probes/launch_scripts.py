"""Launch scripts as what experiments change: the changed copy, and whether a new run was made with the change."""

from __future__ import annotations

from probes.script_change import change_script
from probes.script_check import check_run
from runbook.changing import Changer

LAUNCH_SCRIPTS = Changer("launch", change_script, check_run)

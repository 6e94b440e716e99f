"""Limits from which a file or a list counts as what it looks like."""

from __future__ import annotations

from probes.thresholds import Threshold

VERSION_LINES = Threshold(0.8, "of the lines", "chosen: a list of packages has a few other lines (warnings, comments)")
VERSION_LINES_READ = Threshold(400, "lines", "chosen: enough to know a list of packages; slime's image has about 500")
WHOLE_FREEZE = Threshold(
    30, "packages", "chosen: from here a list counts as the whole environment; slime's image has several hundred"
)

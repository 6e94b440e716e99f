"""Limits by which the contents of tensors are remarkable."""

from __future__ import annotations

from probes.thresholds import Threshold

MANY = Threshold(64, "elements", "chosen: equal values of fewer may be a broadcast or chance")

"""Tests of runbook.trackers.kinds."""

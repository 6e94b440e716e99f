"""Tests of runbook.trackers."""

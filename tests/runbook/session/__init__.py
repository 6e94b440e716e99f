"""Tests of runbook.session."""

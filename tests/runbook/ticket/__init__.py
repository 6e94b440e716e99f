"""Tests of runbook.ticket."""

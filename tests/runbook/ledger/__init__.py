"""Tests of runbook.ledger."""

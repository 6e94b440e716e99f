"""Mirrors runbook/cli."""

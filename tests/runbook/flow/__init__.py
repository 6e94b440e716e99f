"""Mirrors runbook/flow."""

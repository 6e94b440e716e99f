"""Loaded once by the fork server: imports every probe module, so that a job's process starts with them.

A module that cannot be imported is passed over here; the catalog reports it. The fork server itself must never fail,
since every job depends on it.
"""

from __future__ import annotations

from runbook.catalog import probe_modules

probe_modules()

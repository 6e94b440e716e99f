"""Loaded once by the fork server: imports every probe module, so that a job's process starts with them.

What the modules want done beforehand (`Ready`) is done here too. A module that cannot be imported is passed over; the
catalog reports it. The fork server itself must never fail, since every job depends on it.
"""

from __future__ import annotations

import contextlib
import gc

from runbook.catalog import probe_modules
from runbook.ready import Ready

for _module in probe_modules()[0]:
    for _value in list(vars(_module).values()):
        if isinstance(_value, Ready):
            with contextlib.suppress(Exception):  # a job that needs it does it itself, and says what failed
                _value.run()

gc.freeze()  # what is loaded stays: no job's process need look through it, which would copy its pages

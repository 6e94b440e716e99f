"""All signatures that any probe looks for in logs, so that one pass over a log can serve every probe.

Nothing registers itself: a signature is found where it stands, at module level of a probe module or of a module that
a probe module holds (a reader), alone, in a tuple, or as all that a probe asks of the library (`known.Asked`). One
that a probe builds while it runs is not found; such a probe reads the log by itself and is right all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType

from probes.known import Asked
from probes.readers.logscan import Signature
from runbook.catalog import probe_modules
from runbook.ready import Ready


@cache
def every() -> tuple[Signature, ...]:
    """Return the signatures of all installed probe packages, each once, in an order that only they decide."""
    found = {each for module in probe_modules()[0] for each in _held(module)}
    return tuple(sorted(found, key=lambda each: (each.label, each.literals, each.expression)))


def _held(module: ModuleType) -> Iterator[Signature]:
    """Yield the signatures of a module and of the modules of its own package that it holds."""
    package = module.__name__.partition(".")[0]
    yield from _signatures(vars(module).values())
    for value in vars(module).values():
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == package:
            yield from _signatures(vars(value).values())


def _signatures(values: Iterable[object]) -> Iterator[Signature]:
    for value in values:
        if isinstance(value, Signature):
            yield value
        elif isinstance(value, Asked):
            yield from value.signatures()
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, Signature))


READY = Ready(every)
"""Every log probe needs them, each in a process of its own."""

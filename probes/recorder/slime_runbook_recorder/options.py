"""The recorder's options, from the environment: the only way through Ray and SGLang into an engine's process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "SLIME_RUNBOOK_RECORD"
"""The folder; also the beginning of every other variable's name."""


@dataclass(frozen=True)
class Options:
    """What to record.

    folder: where to. tensors: whether the tensors themselves are written too. limit: bytes that one process may
    write. updates: how many loads and updates of one model are recorded, the initial load among them. engines: how
    many processes record into the folder. ranks: "0" or "all". engine: whether the engine's own parameters are
    looked at after each call.
    """

    folder: str
    tensors: bool = False
    limit: int = 1 << 30
    updates: int = 4
    engines: int = 8
    ranks: str = "0"
    engine: bool = True


def from_environment(environment: Mapping[str, str]) -> Options | None:
    """Return the options, None when no folder is named. Raises ValueError for a number that is none."""
    folder = environment.get(PREFIX, "")
    if not folder:
        return None
    default = Options(folder)

    def number(name: str, usual: int) -> int:
        return int(environment.get(f"{PREFIX}_{name}") or usual)

    return Options(
        folder,
        tensors=bool(number("TENSORS", 0)),
        limit=number("LIMIT", default.limit),
        updates=number("UPDATES", default.updates),
        engines=number("ENGINES", default.engines),
        ranks=environment.get(f"{PREFIX}_RANKS") or default.ranks,
        engine=bool(number("ENGINE", 1)),
    )


def to_environment(options: Options) -> dict[str, str]:
    """Return the variables that make these options; those at their default are left out."""
    default = Options(options.folder)
    variables = {PREFIX: options.folder}
    for name in ("tensors", "limit", "updates", "engines", "ranks", "engine"):
        value = getattr(options, name)
        if value != getattr(default, name):
            variables[f"{PREFIX}_{name.upper()}"] = str(int(value)) if isinstance(value, bool) else str(value)
    return variables

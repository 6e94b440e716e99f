"""One thing that a key can do, as the registry in `actions` holds it."""

from __future__ import annotations

from dataclasses import dataclass

from runbook.text import Text


@dataclass(frozen=True)
class Action:
    """One thing a key does.

    scope: where it works. name: of the method, after "app." where the app serves it. keys: Textual key names, the
    first is shown. title: short, for the footer. help: one sentence. foot: shown in the footer. palette: offered in
    the palette. outside: it needs what a bundle does not have, the evidence or the cluster.
    """

    scope: str
    name: str
    keys: tuple[str, ...]
    title: Text
    help: Text
    foot: bool = False
    palette: bool = True
    outside: bool = False


def action(
    scope: str,
    name: str,
    keys: str,
    title: tuple[str, str],
    help: tuple[str, str],
    *,
    foot: bool = False,
    palette: bool = True,
    outside: bool = False,
) -> Action:
    """Return an action; keys are parted by blanks, title and help are in English and Chinese."""
    return Action(scope, name, tuple(keys.split()), Text(*title), Text(*help), foot, palette, outside)

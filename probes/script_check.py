"""Whether a run was made with the change of an experiment, by its own launch script and arguments table.

The table is what applied and goes before the script (`probes.settings`). Invariant: a run lacks a part of the change
only where a line shows it or a whole command line or table is silent; what nothing tells is said to be unchecked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from probes.readers.arguments import Argument
from probes.readers.launch_model import Job, Launch, Setting
from probes.script_change import PLACEHOLDER
from probes.script_state import split_flag
from probes.settings import Settings, read_settings, scripted
from runbook.changing import Checked
from runbook.evidence import Evidence
from runbook.finding import Citation
from runbook.flow.model import Change
from runbook.text import Text

_OFF = frozenset({"None", "False", "0", "auto", "none"})
"""What the table says of an option that is not in use: slime's and SGLang's defaults of those that flows take out."""


class _Told:
    """What is told of one run, part by part of a change."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lacks: list[Text] = []
        self.unchecked: list[str] = []

    def row(self, flag: str) -> Argument | None:
        """Return what the table says of a flag."""
        table = self.settings.table
        return table.rows.get(flag.replace("-", "_")) if table is not None else None

    def row_line(self, row: Argument) -> str:
        """Return where a row stands."""
        assert self.settings.table is not None
        return f"{os.path.basename(self.settings.table.file.path)}:{row.line}"

    def absent(self, shown: str, where: str) -> None:
        """Say that something is not there."""
        at = f" ({where})" if where else ""
        self.lacks.append(Text(f"This run does not have {shown}{at}.", f"该运行没有 {shown}{at}。"))

    def present(self, shown: str, where: str) -> None:
        """Say that something is still there."""
        self.lacks.append(Text(f"This run still has {shown} ({where}).", f"该运行仍有 {shown}（{where}）。"))

    def command(self) -> str:
        """Return where the command line begins, "" when there is none."""
        job = self.settings.job
        return f"{os.path.basename(job.place.path)}:{job.place.line}" if job is not None else ""


def check_run(evidence: Evidence, change: Change) -> Checked:
    """Return what of a change the run is proven not to have, and what could not be checked."""
    told = _Told(read_settings(evidence))
    for flag in change.remove:
        _gone(told, split_flag(flag)[0])
    for flag in (*change.add, *(f"{name} {value}" for name, value in change.set.items())):
        _there(told, *split_flag(flag))
    for name, value in change.env.items():
        _variable(told, name, value)
    return Checked(tuple(told.lacks), tuple(_unchecked(told)))


def _unchecked(told: _Told) -> Iterator[Text]:
    if told.unchecked:
        names = ", ".join(told.unchecked)
        yield Text(
            f"Not checked, neither launch script nor arguments table of this run tells it: {names}.",
            f"未核对（该运行的启动脚本和参数表都没有说明）：{names}。",
        )


def _gone(told: _Told, flag: str) -> None:
    row, one = told.row(flag), scripted(told.settings, flag)
    if row is not None and row.value in _OFF:
        return
    if one is not None and one.sure:
        told.present(f"--{flag} {one.shown}".rstrip(), _line(one.citation))
    elif row is not None and told.settings.job is None:
        told.present(f"--{flag} {row.value}", told.row_line(row))
    elif row is None and not told.settings.whole:
        told.unchecked.append(f"--{flag}")


def _there(told: _Told, flag: str, words: tuple[str, ...]) -> None:
    shown = " ".join((f"--{flag}", *words))
    row, inverted = told.row(flag), False
    if row is None and flag.startswith("no-"):
        row, inverted = told.row(flag.removeprefix("no-")), True
    one = scripted(told.settings, flag)
    if row is not None:
        off = row.value in ("None", "False", "0")
        wrong = (off is not inverted) if not words else row.value == "None" or _other(row.value, words)
        if wrong:
            told.absent(shown, told.row_line(row))
    elif one is None:
        if told.settings.whole:
            told.absent(shown, told.command())
        else:
            told.unchecked.append(shown)
    elif not one.sure:
        told.unchecked.append(shown)
    elif words and _other(one.shown, words):
        told.absent(shown, _line(one.citation))


def _other(value: str, words: tuple[str, ...]) -> bool:
    """Return whether a value is certainly another than what was asked for."""
    asked = " ".join(words)
    if len(words) != 1 or PLACEHOLDER.search(asked) or "$" in value:
        return False
    try:
        return float(value) != float(asked)
    except ValueError:
        return value != asked


def _variable(told: _Told, name: str, value: str) -> None:
    job, launch, shown = told.settings.job, told.settings.launch, f"{name}={value}"
    if job is None or launch is None:
        told.unchecked.append(shown)
        return
    one = _setting(launch, job, name)
    if one is None:
        if told.settings.whole:
            told.absent(shown, told.command())
        else:
            told.unchecked.append(shown)
    elif not one.sure:
        told.unchecked.append(shown)
    elif _other(one.shown, (value,)):
        told.absent(shown, f"{os.path.basename(one.place.path)}:{one.place.line}")


def _setting(launch: Launch, job: Job, name: str) -> Setting | None:
    return job.runtime_env.get(name) or job.env.get(name) or launch.exports.get(name)


def _line(citation: Citation) -> str:
    return f"{os.path.basename(citation.path)}:{citation.line}"

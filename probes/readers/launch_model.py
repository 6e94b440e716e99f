"""What a launch script says, as frozen data.

Invariants: nothing here was executed; a value that cannot be known without running the script is None and carries
its reason, and `shown` still spells it symbolically (`${BASE}/ckpt`), so that two equal unknowns can be recognised
as equal. Every item carries the place where it is written, which may lie in a sourced file.
"""

from __future__ import annotations

import msgspec

from runbook.finding import Citation, cite


class Place(msgspec.Struct, frozen=True):
    """A line of a script. line: 1-based. offset: bytes from the start of the file to the start of that line."""

    path: str
    line: int
    offset: int
    text: str


class Token(msgspec.Struct, frozen=True):
    """One word of a command after expansion.

    text: the word, None when it cannot be known. shown: the word with unknown parts spelled as written.
    sure: False when a condition that cannot be decided guards it. default: it rests on the default of a variable
    that the environment may set (`${X:-1}`). reason: why text is None.
    """

    text: str | None
    shown: str
    place: Place
    sure: bool = True
    default: bool = False
    reason: str = ""


class Setting(msgspec.Struct, frozen=True):
    """An environment variable that the script exports or passes in a runtime env; fields as in Token."""

    name: str
    value: str | None
    shown: str
    place: Place
    sure: bool = True
    default: bool = False


class Occurrence(msgspec.Struct, frozen=True):
    """A flag as it stands on the command line, with the words that follow it up to the next flag."""

    flag: str
    values: tuple[Token, ...]
    place: Place
    sure: bool = True

    @property
    def text(self) -> str | None:
        """Return the only value as text; None when there is none, several, or an unknown one."""
        return self.values[0].text if len(self.values) == 1 else None

    @property
    def shown(self) -> str:
        """Return the values as written, joined by blanks."""
        return " ".join(token.shown for token in self.values)

    @property
    def default(self) -> bool:
        """Return whether a value rests on the default of an environment variable."""
        return any(token.default for token in self.values)


class Gap(msgspec.Struct, frozen=True):
    """Something that could not be evaluated without running the script, and why."""

    what: str
    why: str
    place: Place


class Job(msgspec.Struct, frozen=True):
    """One training command.

    entry: the Python file it runs. flags: every occurrence in command-line order, by name without the dashes.
    runtime_env: env_vars of --runtime-env-json. env: variables set for this one command. gaps: words that may hold
    further flags. submitted: by `ray job submit`, whose own environment does not reach the job.
    """

    entry: str | None
    flags: dict[str, tuple[Occurrence, ...]]
    place: Place
    runtime_env: dict[str, Setting] = {}
    has_runtime_env: bool = False
    env: dict[str, Setting] = {}
    gaps: tuple[Gap, ...] = ()
    sure: bool = True
    submitted: bool = False

    def last(self, name: str) -> Occurrence | None:
        """Return the occurrence that argparse obeys: the last one; None when the flag is not given."""
        given = self.flags.get(name)
        return given[-1] if given else None


class RayStart(msgspec.Struct, frozen=True):
    """One `ray start`.

    num_gpus: None when not given or unknown; `counted` tells which. node_ip: the head's --node-ip-address.
    repeated: it stands in a loop or behind ssh, mpirun or the like, so it may run on any number of machines.
    """

    head: bool
    num_gpus: int | None
    counted: bool
    node_ip: Token | None
    place: Place
    repeated: bool = False
    sure: bool = True
    default: bool = False


class Launch(msgspec.Struct, frozen=True):
    """A launch script.

    kind: "bash", "python", "trace" (what `set -x` printed into a log) or "jobs" (what Ray says of its jobs). spreads:
    places where it reaches other machines (ssh, mpirun, srun, ...). sourced: files that it reads in.
    """

    path: str
    kind: str
    jobs: tuple[Job, ...] = ()
    exports: dict[str, Setting] = {}
    ray_starts: tuple[RayStart, ...] = ()
    spreads: tuple[Place, ...] = ()
    gaps: tuple[Gap, ...] = ()
    sourced: tuple[str, ...] = ()


def cite_place(place: Place, count: int = 1) -> Citation:
    """Cite the line at `place`."""
    return cite(place.path, place.text, line=place.line, offset=place.offset, count=count)

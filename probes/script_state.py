"""What a launch script amounts to, as the part of it that a change may alter: by which an edited copy is checked.

An edit is made as text, where a person would make it, and then the copy is read again: it is right exactly when every
command has the flags and variables that were asked for and everything else is as it was.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from probes.readers.launch import read_launch_text
from probes.readers.launch_model import Job, Launch, Occurrence

Words = tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """One training command: its flags (words after each, of the last occurrence) and its variables."""

    flags: Mapping[str, Words]
    env: Mapping[str, str]


@dataclass(frozen=True)
class State:
    """All commands of a script, with the number of things that could not be followed."""

    commands: tuple[Command, ...]
    gaps: int


def read(path: str, text: str) -> tuple[Launch, State]:
    """Read a script's text and return it with its state."""
    launch = read_launch_text(path, text.encode("utf-8", "surrogateescape"))
    return launch, state_of(launch)


def state_of(launch: Launch) -> State:
    """Return what a script amounts to."""
    exports = {name: one.shown for name, one in launch.exports.items()}
    return State(
        tuple(_command(job, exports) for job in launch.jobs), len(launch.gaps) + sum(len(j.gaps) for j in launch.jobs)
    )


def _command(job: Job, exports: Mapping[str, str]) -> Command:
    flags = {name: words_of(ones[-1]) for name, ones in job.flags.items()}
    inside = {name: one.shown for name, one in job.runtime_env.items()}
    if job.submitted:  # it runs on the cluster: neither an export nor `X=1 ray job submit` reaches it
        return Command(flags, inside)
    own = {name: one.shown for name, one in job.env.items()}
    return Command(flags, {**exports, **own, **inside})


def words_of(one: Occurrence) -> Words:
    """Return the words behind a flag as they are written or known."""
    return tuple(token.shown for token in one.values)


def with_flag(state: State, flag: str, words: Words) -> State:
    """Return the state in which every command has the flag with these words."""
    return replace(state, commands=tuple(replace(one, flags={**one.flags, flag: words}) for one in state.commands))


def without_flag(state: State, flag: str) -> State:
    """Return the state in which no command has the flag."""
    kept = ({name: words for name, words in one.flags.items() if name != flag} for one in state.commands)
    return replace(
        state, commands=tuple(replace(one, flags=flags) for one, flags in zip(state.commands, kept, strict=True))
    )


def with_variable(state: State, name: str, value: str) -> State:
    """Return the state in which every command has the variable."""
    return replace(state, commands=tuple(replace(one, env={**one.env, name: value}) for one in state.commands))


def split_flag(text: str) -> tuple[str, Words]:
    """Split "--flag value" or "--flag=value" into the name and its words; ("", ()) for what is no flag."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    if not words or not words[0].startswith("--") or len(words[0]) < 3:
        return "", ()
    name, equals, value = words[0][2:].partition("=")
    return name, ((value, *words[1:]) if equals else tuple(words[1:]))

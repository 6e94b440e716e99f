"""The command that says how to record what SGLang's load_weights is given: environment lines for the launch script.

Nothing is started and nothing of the run is edited. The recorder's folder must be readable from the engine's nodes;
where this package is not on shared storage, `--copy` puts the folder (standard library only) where it is.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
from collections.abc import Mapping

from probes.recorder import FOLDER
from probes.recorder.slime_runbook_recorder.options import Options, to_environment
from runbook.command import Command
from runbook.errors import UsageError

HELP = "environment lines that make SGLang record the weights it is sent"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    default = Options("")
    parser.add_argument("folder", metavar="FOLDER", help="where the engines write to: shared storage, new for each run")
    parser.add_argument("--tensors", action="store_true", help="keep the tensors themselves, as far as --limit allows")
    parser.add_argument("--limit", default="1G", metavar="BYTES", help="most that one engine writes (default: 1G)")
    parser.add_argument("--updates", type=int, default=default.updates, help="loads and updates recorded (default: 4)")
    parser.add_argument("--engines", type=int, default=default.engines, help="engines that record (default: 8)")
    parser.add_argument("--ranks", choices=("0", "all"), default=default.ranks, help="ranks of an engine (default: 0)")
    parser.add_argument("--no-engine", action="store_true", help="leave the engine's own parameters alone")
    parser.add_argument("--copy", metavar="DIR", help="copy the recorder to DIR, which the engines' nodes can read")
    parser.add_argument("--json", action="store_true", help="print the variables as JSON, for --runtime-env-json")


def run(parsed: argparse.Namespace) -> int:
    """Print the variables."""
    folder = parsed.copy or FOLDER
    if parsed.copy:
        copy(parsed.copy)
    options = Options(
        os.path.abspath(parsed.folder),
        tensors=parsed.tensors,
        limit=size(parsed.limit),
        updates=parsed.updates,
        engines=parsed.engines,
        ranks=parsed.ranks,
        engine=not parsed.no_engine,
    )
    print(lines(variables(options, os.path.abspath(folder)), as_json=parsed.json))
    return 0


def variables(options: Options, folder: str) -> dict[str, str]:
    """Return the environment of the job; PYTHONPATH is to be put before what is there already."""
    return {"PYTHONPATH": folder, **to_environment(options)}


def lines(environment: Mapping[str, str], *, as_json: bool) -> str:
    """Return the lines to paste, for a shell or for the env_vars of --runtime-env-json."""
    if as_json:
        return json.dumps({"env_vars": dict(environment)}, indent=2)
    path = shlex.quote(environment["PYTHONPATH"])
    rest = [f"export {name}={shlex.quote(value)}" for name, value in environment.items() if name != "PYTHONPATH"]
    runtime = ",\n".join(
        f'    "{name}": {json.dumps(value + (":/root/Megatron-LM/" if name == "PYTHONPATH" else ""))}'
        for name, value in environment.items()
    )
    return "\n".join(
        (
            "# before `ray start`, on every node:",
            f'export PYTHONPATH={path}"${{PYTHONPATH:+:$PYTHONPATH}}"',
            *rest,
            "",
            "# and in env_vars of the launch script's runtime env (keep what PYTHONPATH holds there behind the colon):",
            runtime,
        )
    )


def copy(target: str) -> None:
    """Copy the recorder. Raises UsageError where that is not possible."""
    try:
        shutil.copytree(FOLDER, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror or error}", "name a folder that can be written") from error


def size(text: str) -> int:
    """Return a number of bytes; K, M, G and T count by 1024. Raises UsageError."""
    units = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
    digits = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = digits[-1:] if digits[-1:] in units else ""
    number = digits.removesuffix(unit)
    if not number.isdecimal():
        raise UsageError(f"{text!r} is no number of bytes", "for example 512M or 2G")
    return int(number) << 10 * units[unit]


RECORDER = Command("recorder", HELP, add_arguments, run)

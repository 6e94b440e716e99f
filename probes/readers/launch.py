"""Reads a launch script, whatever it is written in, and the trace of one that `set -x` left in a log.

One entry, `read_launch`, looks at the content: a Python launcher, a bash script, a file with a bare command line
(which is bash), or what Ray says of its jobs. All of them end in the same `Launch`. Invariant: nothing is run, and a
file that is none of these gives a Launch without jobs, never an exception.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import replace
from typing import Any

import msgspec

from probes.readers.bash_script import read_script
from probes.readers.bash_tree import Source
from probes.readers.bash_values import Fragment, Value, known, show
from probes.readers.launch_commands import Meaning, setting, understand
from probes.readers.launch_jobs import has_entrypoint, read_jobs
from probes.readers.launch_model import Gap, Launch, Place, RayStart, Setting
from probes.readers.launch_python import Call, PythonScript, read_python

TRACE_LIMIT = 4 << 20
"""Bytes from the start of a log in which the trace of the launch script is looked for: it is printed before the
job starts."""
_TRACE = re.compile(
    rb"(?m)^\++ (?=(?:nohup |exec )?(?:ray (?:job submit|start)|export |python[\d.]* \S*train\S*\.py ))"
)
_STRING = "\0"  # the path of a string that is read as a script: no file can have it
_SHELL_COMMANDS = (["bash", "-c"], ["sh", "-c"], ["bash", "-lc"])
_MODEL_SCRIPTS = os.path.join("scripts", "models")


def read_launch(path: str) -> Launch:
    """Read the launch script at `path`; an unreadable file gives a Launch with a gap."""
    try:
        with open(path, "rb") as file:
            data = file.read(Source.LIMIT)
    except OSError as error:
        return Launch(path, "bash", gaps=(Gap(path, error.strerror or "unreadable", Place(path, 1, 0, "")),))
    return read_launch_text(path, data)


def read_launch_text(path: str, data: bytes) -> Launch:
    """Read a launch script whose bytes are `data`, as if they stood in the file `path`."""
    if path.endswith(".py") or re.match(rb"#![^\n]*python|(?:from \S+ )?import \w", data):
        script = read_python(path, data)
        if script is not None:
            return _from_python(script)
    launch = _from_bash(path, data)
    if launch.jobs or not has_entrypoint(data):
        return launch
    listed = _launch(path, "jobs", read_jobs(path, data), {}, ())
    return listed if listed.jobs else launch


def _from_bash(path: str, data: bytes, kind: str = "bash", written: Source | None = None) -> Launch:
    """Read bash; `written` is the file as it stands when `data` is only a part of it at the same offsets."""
    script = read_script(path, data)

    def locate(where: str, offset: int) -> Place:
        if where == path and written is not None:
            return written.place(offset)
        return script.sources[where].place(offset) if where in script.sources else Place(where, 1, 0, "")

    meaning = understand(script, locate)
    start = locate(path, 0)
    exports = {name: setting(name, value, locate, start) for name, value in script.exports.items()}
    return _launch(path, kind, meaning, exports, tuple(name for name in script.sources if name != path))


def _launch(path: str, kind: str, meaning: Meaning, exports: dict[str, Setting], sourced: tuple[str, ...]) -> Launch:
    jobs, starts, spreads, gaps = (
        tuple(part) for part in (meaning.jobs, meaning.ray_starts, meaning.spreads, meaning.gaps)
    )
    return Launch(path, kind, jobs, exports, starts, spreads, gaps, sourced)  # type: ignore[arg-type]  # zip loses the types


def read_trace(path: str, data: bytes) -> Launch | None:
    """Read the commands that `set -x` printed at the start of a log; None when there is no job in them.

    `data`: the first bytes of the log. bash quotes every word again in a trace, so the trace is bash itself; a quoted
    runtime env may span lines.
    """
    data = data[:TRACE_LIMIT]
    if not data.startswith(b"+") and b"\n+" not in data:
        return None
    pieces = [(found.end(), _trace_end(data, found.end())) for found in _TRACE.finditer(data)]
    if not pieces:
        return None
    kept = bytearray(re.sub(rb"[^\n]", b" ", data[: pieces[-1][1]]))
    for start, end in pieces:
        kept[start:end] = data[start:end]
    launch = _from_bash(path, bytes(kept), "trace", Source(path, data))
    return launch if launch.jobs else None


def _trace_end(data: bytes, start: int) -> int:
    """Return where the traced command ends: at the first newline outside single quotes."""
    at, quoted = start, False
    limit = min(len(data), start + (256 << 10))
    while at < limit:
        byte = data[at]
        if byte == 39:
            quoted = not quoted
        elif byte == 92 and not quoted:
            at += 1
        elif byte == 10 and not quoted:
            return at
        at += 1
    newline = data.find(b"\n", start)
    return limit if newline < 0 or not quoted else newline


def _from_python(script: PythonScript) -> Launch:
    meaning = Meaning()
    source = script.source
    sourced: list[str] = []
    for call in script.calls:
        place = source.place(call.offset)
        if call.name.endswith("execute_train"):
            _execute_train(call, source, place, meaning, sourced)
        elif call.name == "submit_job":
            _shell(call.args.get("entrypoint", call.args.get(0)), call, source, meaning)
        else:
            _shell(call.args.get(0, call.args.get("args", call.args.get("cmd"))), call, source, meaning)
    gaps = [Gap(what, why, source.place(offset)) for what, why, offset in script.gaps]
    meaning.gaps += gaps
    return _launch(source.path, "python", meaning, {}, tuple(sourced))


def _execute_train(call: Call, source: Source, place: Place, meaning: Meaning, sourced: list[str]) -> None:
    """Read a call of execute_train (slime's command_utils).

    It sources the model script, starts Ray on one node and submits the job.
    """
    value = call.args.get("train_args", call.args.get(0))
    count = call.args.get("num_gpus_per_node", call.args.get(1))
    model = call.args.get("megatron_model_type", call.args.get(2))
    entry = call.args.get("train_script", call.args.get(3))
    if not isinstance(value, tuple):
        meaning.gaps.append(Gap("train_args", "the arguments are only known when the launcher runs", place))
        return
    head = f"python3 {known(entry) if isinstance(entry, tuple) and known(entry) else 'train.py'} "
    before = len(meaning.jobs)
    models: list[Value] = []
    if model is not None:
        path = _model_script(source.path, known(model)) if isinstance(model, tuple) and known(model) else None
        if path is None:
            meaning.gaps.append(
                Gap(
                    show(model) if isinstance(model, tuple) else "megatron_model_type",
                    "the model script is not beside the launcher",
                    place,
                )
            )
        else:
            sourced.append(path)
            models = [(Fragment(f'source "{path}"\n', source.path, call.offset),)]
            head += "${MODEL_ARGS[@]} "
    _shell((*(models[0] if models else ()), Fragment(head, source.path, call.offset), *value), call, source, meaning)
    variables = call.args.get("extra_env_vars")
    extra = (
        {n: _env(n, v, source, place) for n, v in variables.items() if isinstance(v, tuple)}
        if isinstance(variables, dict)
        else {}
    )
    for index in range(before, len(meaning.jobs)):
        job = meaning.jobs[index]
        sure = job.sure and call.sure
        meaning.jobs[index] = msgspec.structs.replace(
            job, runtime_env=extra, has_runtime_env=True, sure=sure, submitted=True
        )
    number = count if type(count) is int else None
    meaning.ray_starts.append(RayStart(True, number, count is not None, None, place, sure=False))


def _env(name: str, value: Value, source: Source, place: Place) -> Setting:
    return setting(name, value, lambda _path, offset: source.place(offset), place)


def _model_script(path: str, name: str | None) -> str | None:
    folder = os.path.dirname(os.path.abspath(path))
    for _ in range(4):
        candidate = os.path.join(folder, _MODEL_SCRIPTS, f"{name}.sh")
        if os.path.isfile(candidate):
            return candidate
        folder = os.path.dirname(folder)
    return None


def _words(items: list[Any], call: Call, source: Source) -> Value:
    """Join a list of words as a shell would need them quoted."""
    joined: Value = ()
    for item in items:
        unknown = (Fragment(None, source.path, call.offset, shown="${…}", reason="only known when the launcher runs"),)
        part = item if isinstance(item, tuple) else unknown
        plain = (replace(piece, text=piece.text.replace("'", "")) if piece.text else piece for piece in part)
        quote = Fragment("'", source.path, call.offset)
        joined = (*joined, quote, *plain, replace(quote, text="' "))
    return joined


def _shell(value: Any, call: Call, source: Source, meaning: Meaning) -> None:
    """Read a string (or a list of words) that a shell gets, and map every word back to its line in the launcher."""
    if isinstance(value, list):
        shell = len(value) == 3 and [known(item) for item in value[:2] if isinstance(item, tuple)] in _SHELL_COMMANDS
        value = value[2] if shell else _words(value, call, source)
    if not isinstance(value, tuple) or not re.search(r"\bray\b|\.py\b", show(value)):
        return
    text = bytearray()
    starts: list[int] = []
    variables: dict[str, Value] = {}
    for number, part in enumerate(value):
        starts.append(len(text))
        if part.text is not None:
            text += part.text.encode("utf-8", "surrogatepass")
        else:
            variables[f"__part_{number}__"] = (part,)
            text += f"${{__part_{number}__}}".encode()
    script = read_script(_STRING, bytes(text), variables)

    fragments: Value = value

    def written(offset: int) -> Fragment:
        return fragments[max(bisect_right(starts, offset) - 1, 0)]

    def locate(path: str, offset: int) -> Place:
        if path != _STRING:
            return script.sources[path].place(offset) if path in script.sources else source.place(offset)
        return source.place(written(offset).offset)

    def mark(piece: Fragment) -> Fragment:
        if piece.path != _STRING:
            return piece
        part = written(piece.offset)
        return replace(piece, sure=piece.sure and part.sure, default=piece.default or part.default)

    script.commands = [
        replace(command, words=tuple(tuple(map(mark, word)) for word in command.words), sure=command.sure and call.sure)
        for command in script.commands
    ]
    understand(script, locate, meaning)

"""Renders chat templates as transformers does, in a process of their own that cannot do harm.

A template is a program that came with a checkpoint. It runs only in jinja2's ImmutableSandboxedEnvironment, with the
filters, globals and tags that transformers gives it (utils/chat_template_utils.py): `tojson`, `raise_exception`,
`strftime_now`, loop controls and the `generation` tag. Invariants: the process has MEMORY_LIMIT of address space,
CPU_SECONDS of processor time and may write no file, so that neither a loop nor a bomb outlives the call; an output is
cut off at OUTPUT_LIMIT; what a template does wrong comes back as words, never as an exception of the caller's.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MEMORY_LIMIT = 512 << 20
CPU_SECONDS = 5
WALL_SECONDS = 30.0
_OUT_OF_MEMORY = 3
_ENDS = {-int(signal.SIGXCPU): "time", -int(signal.SIGKILL): "time", _OUT_OF_MEMORY: "memory"}
"""What the renderer's exit status says about the call it was at."""
OUTPUT_LIMIT = 4 << 20
"""Characters of one rendering; longer prompts exceed every context window."""


@dataclass(frozen=True)
class Rendering:
    """What came of one call.

    fault: "", "refused", "broken", "unsafe" (`text` is then the error's), "too-large", "memory", "time", "no-jinja2".
    """

    text: str
    fault: str = ""

    @property
    def good(self) -> bool:
        """Return whether `text` is the rendering."""
        return not self.fault


@dataclass(frozen=True)
class Call:
    """What a template is rendered with. variables: further names it sees, such as `enable_thinking` or `tools`."""

    messages: list[dict[str, Any]]
    generation: bool = False
    variables: tuple[tuple[str, Any], ...] = ()


def render(template: str, special: dict[str, str], calls: Sequence[Call]) -> list[Rendering]:
    """Render a template once for each call, in one process; special: token texts by role, such as "bos_token"."""
    task = {
        "template": template,
        "calls": [
            {
                **special,
                "tools": None,
                "documents": None,
                **dict(call.variables),
                "messages": call.messages,
                "add_generation_prompt": call.generation,
            }
            for call in calls
        ],
    }
    try:
        sent = json.dumps(task)
    except (TypeError, ValueError, RecursionError):
        return [Rendering("the messages are not plain data", "refused")] * len(calls)
    lines, fault = _run(sent)
    renderings = [Rendering(*line) for line in lines[: len(calls)]]
    return renderings + [Rendering("", fault)] * (len(calls) - len(renderings))


def _run(sent: str) -> tuple[list[tuple[str, str]], str]:
    """Return what the renderer answered, a pair a call, and why it ended before the last call, if it did."""
    paths = [path for path in sys.path if path]
    code = f"import sys; sys.path = {paths!r}; from probes.readers.chat_template import serve; serve()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as child:
        fault = "time"
        try:
            said, _ = child.communicate(sent, timeout=WALL_SECONDS)
            fault = _ENDS.get(child.returncode, "broken")
        except subprocess.TimeoutExpired:
            child.kill()
            said, _ = child.communicate()
    answers: list[tuple[str, str]] = []
    for line in said.splitlines():
        with contextlib.suppress(ValueError):
            text, wrong = json.loads(line)
            answers.append((text, wrong))
    return answers, fault


def serve() -> None:
    """Read one task from stdin and write a line a call: the text and the fault. Runs in the process of `render`."""
    task = json.loads(sys.stdin.read())
    _limit()
    try:
        compiled = _compile_safely(task["template"])
        for call in task["calls"]:
            answer = compiled if isinstance(compiled, tuple) else _render_one(compiled, call)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    except MemoryError:
        sys.exit(_OUT_OF_MEMORY)


def _compile_safely(source: str) -> Any:
    """Return the compiled template, or what is wrong with it. The compiler folds constants, so it may be a bomb too."""
    try:
        return _compile(source)
    except ImportError:
        return "the Python package jinja2 is not installed", "no-jinja2"
    except (MemoryError, OverflowError):
        return "", "memory"
    except RecursionError:
        return "it is nested too deeply", "broken"
    except Exception as error:  # jinja2's compiler raises more than TemplateError on hostile input
        return str(error)[:200], "broken"


def _limit() -> None:
    """Bound memory, processor time and files of this process before anything of the template runs."""
    try:
        import resource
    except ImportError:
        return
    for which, limit in (
        (resource.RLIMIT_AS, MEMORY_LIMIT),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (limit, limit))


def _render_one(template: Any, variables: dict[str, Any]) -> tuple[str, str]:
    from jinja2.exceptions import SecurityError

    pieces: list[str] = []
    left = OUTPUT_LIMIT
    try:
        for piece in template.generate(**variables):
            left -= len(piece)
            if left < 0:
                break
            pieces.append(piece)
    except (SecurityError, _RefusedError) as error:
        return str(error)[:200], "unsafe" if isinstance(error, SecurityError) else "refused"
    except (MemoryError, OverflowError):
        pieces.clear()
        return "", "memory"
    except Exception as error:  # a template may fail in any way that Python knows
        return f"{type(error).__name__}: {str(error)[:200]}", "broken"
    return ("".join(pieces), "") if left >= 0 else ("", "too-large")


class _RefusedError(Exception):
    """A template called `raise_exception`."""


def _refuse(message: object) -> None:
    raise _RefusedError(str(message)[:200])


def _strftime_now(form: object) -> str:
    import datetime as dt

    return dt.datetime.now().astimezone().strftime(str(form)[:100])


def _tojson(value: Any, **options: Any) -> str:
    """Write JSON as transformers' filter does: without HTML escapes, non-ASCII as it is unless asked otherwise."""
    kept = {key: options[key] for key in ("indent", "separators", "sort_keys") if key in options}
    return json.dumps(value, ensure_ascii=bool(options.get("ensure_ascii", False)), **kept)


def _compile(source: str) -> Any:
    """Compile a template in the sandbox. Raises jinja2's errors, and ImportError where jinja2 is missing."""
    import jinja2
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}`: marks what the assistant wrote; the text inside is rendered as it is."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> nodes.Node:
            """Return the body between the tags, in a scope of its own as transformers' tag has it."""
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_inside"), [], [], body).set_lineno(line)

        @staticmethod
        def _inside(caller: Any) -> Iterator[str]:
            rendered: Iterator[str] = caller()
            return rendered

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, "jinja2.ext.loopcontrols"],
        loader=jinja2.FunctionLoader(lambda _name: None),
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(source)

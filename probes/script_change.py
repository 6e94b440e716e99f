"""The changed copy of a launch script that an experiment asks for (DESIGN §6).

Each part of the change is made as text and the copy is read again: a part counts as done when every training command
has what was asked for and is otherwise as it was; else the text stays and the part is left to a person, with the line
to look at. The copy of a bash script must pass `bash -n`, which reads a script without running it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from probes import script_edit_bash as edits
from probes.readers.launch_model import Launch
from probes.script_state import State, read, split_flag, with_flag, with_variable, without_flag
from runbook.changing import Changed
from runbook.errors import EvidenceError
from runbook.flow.model import Change
from runbook.text import Text

LIMIT = 2 << 20
"""Bytes of a launch script that is edited."""
SYNTAX_SECONDS = 20.0
_EXCLUDES = {
    "debug-rollout-only": ("debug-train-only", "load-debug-rollout-data"),
    "debug-train-only": ("debug-rollout-only",),
    "load-debug-rollout-data": ("debug-rollout-only",),
    "kl-coef": ("kl-loss-coef",),
    "use-rollout-logprobs": ("use-tis",),
    "use-tis": ("use-rollout-logprobs",),
}
"""Flags that cannot stand beside each other (slime/utils/arguments.py)."""
PLACEHOLDER = re.compile(r"(?<![\w${])(?:/DIR\b|[A-Z]{2,}(?:_[A-Z]+)*)(?![\w}])")
"""What stands in a flow's words for a value that only a person knows."""
_BESIDE = re.compile(
    r"^[^#\n]*(?:BASH_SOURCE|(?:dirname|realpath|readlink)\b[^\n]*\$\{?0\b|\$\{0[%#]"
    r"|(?:dirname|abspath|realpath|Path)\([^\n]*__file__|sys\.argv\[0\])",
    re.MULTILINE,
)
"""How a script asks where it lies itself."""
_SUBMIT = {"bash": ("bash",), "python": ("python3",)}


@dataclass
class _Copy:
    """The copy as far as it is edited, with what is to be told."""

    path: str
    text: str
    launch: Launch
    state: State
    original: Launch
    notes: list[Text] = field(default_factory=list)
    left: list[Text] = field(default_factory=list)


def change_script(path: str, change: Change) -> Changed:
    """Return the changed copy of the launch script at `path`. Raises EvidenceError for what cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise EvidenceError(f"{path}: {error.strerror}", "give a launch script that can be read") from error
    if len(data) > LIMIT:
        raise EvidenceError(f"{path}: larger than {LIMIT >> 20} MiB", "give the launch script itself")
    text = data.decode("utf-8", "surrogateescape")
    launch, state = read(path, text)
    if not launch.jobs:
        why = f" ({launch.gaps[0].why})" if launch.gaps else ""
        raise EvidenceError(f"{path}: no training command was found in it{why}", "give the script that starts train.py")
    copy = _Copy(path, text, launch, state, launch)
    for flag in change.remove:
        _remove(copy, split_flag(flag)[0])
    for flag in (*change.add, *(f"{name} {value}" for name, value in change.set.items())):
        _put(copy, *split_flag(flag))
    for name, value in change.env.items():
        _variable(copy, name, value)
    _syntax(copy, text)
    if launch.kind == "bash" and "\r\n" in text:
        copy.notes.append(
            Text(
                "Windows line ends, which bash cannot run: take them out of the copy with sed -i 's/\\r$//'.",
                "脚本使用 Windows 换行符，bash 无法运行：可对副本执行 sed -i 's/\\r$//' 去除。",
            )
        )
    beside = bool(_BESIDE.search(text))
    if beside:
        copy.notes.append(
            Text(
                "The script looks for files beside itself: run the copy from the original's folder.",
                "脚本会在自身所在目录查找文件：请在原脚本目录中运行副本。",
            )
        )
    submit = _SUBMIT.get(launch.kind, ())
    return Changed(path, copy.text, tuple(copy.notes), tuple(copy.left), submit, beside)


def _try(copy: _Copy, candidates: Iterable[bytes], wanted: State) -> bool:
    """Take the first candidate that amounts to what is wanted."""
    for candidate in candidates:
        text = candidate.decode("utf-8", "surrogateescape")
        launch, state = read(copy.path, text)
        if state.commands == wanted.commands and state.gaps <= copy.state.gaps:
            copy.text, copy.launch, copy.state = text, launch, state
            return True
    return False


def _bytes(copy: _Copy) -> bytes:
    return copy.text.encode("utf-8", "surrogateescape")


def _line(copy: _Copy, flag: str) -> str:
    """Return where a flag stands in the original, else where its command begins, as `FILE:LINE`."""
    jobs = copy.original.jobs
    place = next((one.place for job in jobs if (one := job.last(flag))), jobs[0].place)
    return f"{os.path.basename(place.path)}:{place.line}"


def _remove(copy: _Copy, flag: str) -> None:
    if not any(flag in one.flags for one in copy.state.commands):
        copy.notes.append(_not_there(copy, flag))
        return
    where = _line(copy, flag)
    if not _try(copy, edits.removed(_bytes(copy), copy.path, copy.launch, flag), without_flag(copy.state, flag)):
        copy.left.append(Text(f"Take --{flag} out by hand: {where}.", f"请手动移除 --{flag}：{where}。"))


def _not_there(copy: _Copy, flag: str) -> Text:
    """Say that there is nothing to remove, or where the flag may still come from."""
    gap = next((gap for job in copy.launch.jobs for gap in job.gaps), None)
    if gap is None:
        return Text(f"--{flag} is not there: nothing to remove.", f"没有 --{flag}，无需移除。")
    where = f"{os.path.basename(gap.place.path)}:{gap.place.line}"
    return Text(
        f"--{flag} was not found, but {gap.what} ({where}) could not be followed: make sure that it is not in there.",
        f"未找到 --{flag}，但 {gap.what}（{where}）无法展开：请确认其中没有该参数。",
    )


def _put(copy: _Copy, flag: str, words: tuple[str, ...]) -> None:
    shown = " ".join((f"--{flag}", *words))
    held = {one.flags.get(flag) for one in copy.state.commands}
    if held == {words}:
        copy.notes.append(
            Text(f"{shown} is there already ({_line(copy, flag)}).", f"{shown} 已存在（{_line(copy, flag)}）。")
        )
    else:
        before = next((one for one in held if one is not None), None)
        if before is not None:
            was = " ".join((f"--{flag}", *before))
            copy.notes.append(Text(f"{was} becomes {shown}.", f"{was} 改为 {shown}。"))
        candidates = edits.put(_bytes(copy), copy.path, copy.launch, flag, words)
        if not _try(copy, candidates, with_flag(copy.state, flag, words)):
            where = _line(copy, flag)
            copy.left.append(Text(f"Put {shown} in by hand: {where}.", f"请手动加入 {shown}：{where}。"))
    copy.notes.extend(_conflicts(copy, flag))
    copy.notes.extend(_blanks(shown, " ".join(words)))


def _conflicts(copy: _Copy, flag: str) -> Iterator[Text]:
    opposite = flag.removeprefix("no-") if flag.startswith("no-") else f"no-{flag}"
    for other in (opposite, *_EXCLUDES.get(flag, ())):
        if any(other in one.flags for one in copy.state.commands):
            where = _line(copy, other)
            yield Text(
                f"--{flag} conflicts with --{other} ({where}): keep one of them.",
                f"--{flag} 与 --{other}（{where}）冲突：只保留其一。",
            )


def _blanks(shown: str, value: str) -> Iterator[Text]:
    """Say which words of a value stand for what only a person knows."""
    for found in dict.fromkeys(PLACEHOLDER.findall(value)):
        yield Text(f"Put your value for {found} in {shown}.", f"请把 {shown} 中的 {found} 换成实际值。")


def _variable(copy: _Copy, name: str, value: str) -> None:
    if all(one.env.get(name) == value for one in copy.state.commands):
        copy.notes.append(Text(f"{name}={value} is set already.", f"{name}={value} 已设置。"))
        return
    wanted = with_variable(copy.state, name, value)
    copy.notes.extend(_blanks(f"{name}={value}", value))
    if not _try(copy, edits.variable(_bytes(copy), copy.path, copy.launch, name, value), wanted):
        copy.left.append(
            Text(
                f"Set {name}={value} for the job by hand, in its runtime env.",
                f"请手动在 runtime env 中设置 {name}={value}。",
            )
        )


def _syntax(copy: _Copy, original: str) -> None:
    """Give the original back when bash refuses the copy and not the original."""
    if copy.launch.kind != "bash" or copy.text == original:
        return
    why = _refused(copy.text)
    if why and not _refused(original):
        copy.text = original
        left = Text(
            f"bash -n refused the copy ({why}): make the whole change by hand.",
            f"bash -n 不接受副本（{why}）：请手动修改。",
        )
        copy.left[:] = [left]


def _refused(text: str) -> str | None:
    """Return what `bash -n` says against a script, None when it accepts it or there is no bash."""
    bash = shutil.which("bash")
    if bash is None:
        return None
    try:
        done = subprocess.run(  # `-n` reads and never runs; nothing of the script is on the command line
            [bash, "-n"],
            input=text.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=SYNTAX_SECONDS,
            check=False,
            env={"PATH": os.defpath},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[0] if lines else "no reason given") if done.returncode else None

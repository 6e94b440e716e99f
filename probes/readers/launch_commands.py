"""From the commands of a script to what they mean: training jobs, their flags and environment, and Ray nodes.

Flags follow argparse as slime and Megatron use it (`allow_abbrev=False`, unknown flags ignored, the last
occurrence wins). A word that is unknown and may itself hold flags is kept as a gap of the job, so that "not given"
is never concluded from a command line that is not wholly known.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice

import msgspec

from probes.readers.bash_script import read_script
from probes.readers.bash_values import Value, known, show
from probes.readers.bash_walk import Command, Script
from probes.readers.launch_model import Gap, Job, Occurrence, Place, RayStart, Setting, Token

Locate = Callable[[str, int], Place]

_WRAPPERS = frozenset({
    "nohup", "exec", "time", "sudo", "command", "nice", "stdbuf", "unbuffer", "setsid", "numactl", "timeout", "env",
    "ionice", "taskset",
})  # fmt: skip
_REMOTE = frozenset({
    "ssh", "pdsh", "mpirun", "mpiexec", "srun", "kubectl", "docker", "pssh", "parallel-ssh", "clush", "ansible",
    "salloc", "sbatch", "parallel",
})  # fmt: skip
_TRAINING = frozenset({
    "actor-num-nodes", "actor-num-gpus-per-node", "rollout-batch-size", "num-rollout", "rollout-num-gpus",
    "colocate", "rollout-function-path",
})  # fmt: skip
_SWITCHES = frozenset({
    "colocate", "offload", "offload-train", "offload-rollout", "no-offload-train", "no-offload-rollout",
    "debug-rollout-only", "debug-train-only", "sequence-parallel", "use-kl-loss", "use-tis", "moe-permute-fusion",
    "balance-data", "use-dynamic-batch-size", "apply-chat-template", "rollout-shuffle", "attention-softmax-in-fp32",
    "accumulate-allreduce-grads-in-fp32", "use-fault-tolerance", "ci-test", "use-wandb", "use-critic",
})  # fmt: skip
"""Flags that take no value, so that an unknown word behind one may itself hold flags."""
MAX_VARIABLES = 1000
"""Variables of one runtime env that are read; slime's scripts pass a dozen."""
_WHOLE_WORD = re.compile(r"\$(?:\{[^{}/]*\}|\w+|\(.*\)|@|\*)", re.DOTALL)


@dataclass
class Meaning:
    """What the commands of one script amount to."""

    jobs: list[Job] = field(default_factory=list)
    ray_starts: list[RayStart] = field(default_factory=list)
    spreads: list[Place] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def token(value: Value, locate: Locate, fallback: Place) -> Token:
    """Return a word as a token at the place of its first fragment."""
    place = locate(value[0].path, value[0].offset) if value else fallback
    reason = next((part.reason for part in value if part.text is None), "")
    return Token(known(value), show(value), place, all(p.sure for p in value), any(p.default for p in value), reason)


def setting(name: str, value: Value, locate: Locate, fallback: Place) -> Setting:
    """Return an environment variable at the place of its value."""
    word = token(value, locate, fallback)
    return Setting(name, word.text, word.shown, word.place, word.sure, word.default)


def understand(script: Script, locate: Locate, meaning: Meaning | None = None, depth: int = 0) -> Meaning:
    """Read every command of a walked script."""
    meaning = meaning if meaning is not None else Meaning()
    for command in script.commands:
        _command(command, locate, meaning, depth)
    for what, why, path, offset in script.gaps:
        meaning.gaps.append(Gap(what, why, locate(path, offset)))
    return meaning


def _command(command: Command, locate: Locate, meaning: Meaning, depth: int) -> None:
    place = locate(command.path, command.offset)
    env = {name: setting(name, value, locate, place) for name, value in command.env.items()}
    words = _unwrap(list(command.words), env, locate, place)
    if not words:
        return
    names = [*(known(word) or "" for word in words[:3]), "", ""]
    name = os.path.basename(names[0])
    if name in _REMOTE:
        meaning.spreads.append(place)
        _nested(words[1:], place, meaning, depth, remote=True)
    elif name == "eval":
        _nested(words[1:], place, meaning, depth, remote=command.loop)
    elif name in ("bash", "sh") and "-c" in (known(word) for word in words[1:4]):
        at = [known(word) for word in words].index("-c")
        _nested(words[at + 1 : at + 2], place, meaning, depth, remote=command.loop)
    elif name == "ray" and names[1] == "start":
        meaning.ray_starts.append(_ray_start(words[2:], command, locate, place))
    elif name == "ray" and names[1:3] == ["job", "submit"]:
        _submit(words[3:], command, env, locate, place, meaning)
    elif name.startswith("--") and meaning.jobs:
        meaning.gaps.append(Gap(names[0], "this line is a command of its own: the continuation above it ended", place))
    else:
        job = _python(words, locate, place, env)
        if job is not None:
            meaning.jobs.append(msgspec.structs.replace(job, sure=command.sure))


def _unwrap(words: list[Value], env: dict[str, Setting], locate: Locate, place: Place) -> list[Value]:
    """Drop `nohup`, `env A=B`, `timeout 10` and their like from the front."""
    while words and os.path.basename(known(words[0]) or "") in _WRAPPERS:
        wrapper = os.path.basename(known(words[0]) or "")
        words = words[1:]
        while words:
            text = show(words[0])
            if assigned := re.match(r"([A-Za-z_]\w*)=", text):
                name = assigned[1]
                env[name] = Setting(
                    name,
                    None if known(words[0]) is None else text[len(name) + 1 :],
                    text[len(name) + 1 :],
                    token(words[0], locate, place).place,
                )
            elif not (
                text.startswith("-")
                or (wrapper in ("timeout", "taskset", "nice") and re.fullmatch(r"[\d.]+[smhd]?|0x\w+", text))
            ):
                break
            words = words[1:]
    return words


def _nested(words: Sequence[Value], place: Place, meaning: Meaning, depth: int, *, remote: bool) -> None:
    """Read commands inside a string (ssh, bash -c); all of them are cited at the line of the string.

    Where a condition guards a part of the string, none of its flags is sure.
    """
    text = " ".join(show(word) for word in words)
    if depth > 3 or not re.search(r"\bray\b|\.py\b", text):
        return
    inner = Meaning()
    start = re.search(r"\bray\s+(?:start|job)\b|\bpython[\d.]*\s|\btorchrun\s", text)
    for candidate in (text, text[start.start() :] if start else ""):
        inner = understand(
            read_script(place.path, candidate.encode("utf-8", "surrogatepass")),
            lambda _path, _offset: place,
            depth=depth + 1,
        )
        if inner.jobs or inner.ray_starts:
            break
    for node in inner.ray_starts:
        meaning.ray_starts.append(
            RayStart(
                node.head,
                node.num_gpus,
                node.counted,
                node.node_ip,
                place,
                remote or node.repeated,
                node.sure,
                node.default,
            )
        )
    sure = all(part.sure for word in words for part in word)
    meaning.jobs += inner.jobs if sure else map(_doubted, inner.jobs)
    meaning.spreads += inner.spreads


def _doubted(job: Job) -> Job:
    """Return a job of which no flag is sure."""
    doubted = msgspec.structs.replace
    flags = {name: tuple(doubted(one, sure=False) for one in ones) for name, ones in job.flags.items()}
    return doubted(job, flags=flags)


def _option(words: Sequence[Value], name: str) -> Value | None:
    """Return the value of `--name value` or `--name=value` as a value with its fragments, None when absent."""
    found: Value | None = None
    for index, word in enumerate(words):
        text = show(word)
        if text == name:
            found = words[index + 1] if index + 1 < len(words) else ()
        elif text.startswith(name + "="):
            found = cut(word, len(name) + 1)
    return found


def cut(word: Value, length: int) -> Value:
    """Drop the first `length` characters, which must be known text."""
    rest = list(word)
    while rest and length and rest[0].text is not None:
        text = rest[0].text
        dropped = min(length, len(text))
        length -= dropped
        head = rest.pop(0)
        if text[dropped:]:
            offset = head.offset + len(text[:dropped].encode("utf-8", "replace"))
            rest.insert(0, replace(head, text=text[dropped:], offset=offset))
    return tuple(rest)


def _ray_start(words: Sequence[Value], command: Command, locate: Locate, place: Place) -> RayStart:
    count, address = _option(words, "--num-gpus"), _option(words, "--node-ip-address")
    text = known(count) if count is not None else None
    head = any(show(word) == "--head" for word in words)
    gpus = int(text) if text is not None and re.fullmatch(r"\d{1,6}", text) else None
    node_ip = token(address, locate, place) if address is not None else None
    default = bool(count) and any(part.default for part in count or ())
    return RayStart(head, gpus, count is not None, node_ip, place, command.loop, command.sure, default)


def _submit(
    words: Sequence[Value], command: Command, env: dict[str, Setting], locate: Locate, place: Place, meaning: Meaning
) -> None:
    texts = [known(word) for word in words]
    split = (
        texts.index("--")
        if "--" in texts
        else next((i for i, text in enumerate(texts) if re.fullmatch(r"(?:\S*/)?python[\d.]*", text or "")), len(words))
    )
    options, inner = words[:split], list(words[split:])
    if inner and known(inner[0]) == "--":
        inner = inner[1:]
    inner = _unwrap(inner, env, locate, place)
    job = _python(inner, locate, place, env, submitted=True)
    if job is None and inner:  # the entrypoint as one string, or in a shell of its own
        shell = os.path.basename(show(inner[0])) in ("bash", "sh")
        before = len(meaning.jobs)
        _nested(inner[-1:] if shell else inner, place, meaning, 1, remote=False)
        job = meaning.jobs.pop() if len(meaning.jobs) > before else None
    if job is None:
        return
    runtime, path = _option(options, "--runtime-env-json"), _option(options, "--runtime-env")
    variables = runtime_env(runtime, locate, place) if runtime else {}
    gaps = list(job.gaps)
    if path is not None:
        gaps.append(Gap(show(path), "the runtime env is in a file of its own", place))
    has = runtime is not None or path is not None
    meaning.jobs.append(
        Job(job.entry, job.flags, place, variables, has, env, tuple(gaps), command.sure, submitted=True)
    )


def runtime_env(value: Value, locate: Locate, place: Place) -> dict[str, Setting]:
    """Return env_vars of a runtime env in JSON; parts that are unknown stay spelled as written inside the strings."""
    text = show(value)
    pairs: dict[str, str] = {}
    try:
        decoded = json.loads(text, strict=False)
        inner = decoded.get("env_vars") if isinstance(decoded, dict) else None
        if isinstance(inner, dict):
            pairs = {str(name): item if isinstance(item, str) else json.dumps(item) for name, item in inner.items()}
    except (ValueError, RecursionError):
        pairs = dict(re.findall(r'"([A-Za-z_]\w*)"\s*:\s*"([^"]*)"', text))
    pieces = list(value)
    starts = list(accumulate((len(show((part,))) for part in pieces), initial=0))
    found: dict[str, Setting] = {}
    for name, item in islice(pairs.items(), MAX_VARIABLES):
        where, at = place, 0
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            at = match.start()
            part = pieces[bisect_right(starts, at) - 1]
            if part.text is not None:
                ahead = text[starts[bisect_right(starts, at) - 1] : at]
                where = locate(part.path, part.offset + len(ahead.encode("utf-8", "replace")))
                break
        written = text.find(item, at + len(name))
        last = written + max(len(item), 1) - 1
        inside = pieces[bisect_right(starts, written) - 1 : bisect_right(starts, last)] if written >= 0 else pieces
        known_item = None if any(part.text is None for part in inside) else item
        sure, default = all(part.sure for part in inside), any(part.default for part in inside)
        found[name] = Setting(name, known_item, item, where, sure, default)
    return found


def _python(
    words: Sequence[Value], locate: Locate, place: Place, env: dict[str, Setting], *, submitted: bool = False
) -> Job | None:
    """Return the training job of `python3 train.py --flag ...`; None for any other command."""
    if not words or not re.fullmatch(
        r"python[\d.]*|torchrun|\$\{?\w*[Pp][Yy][Tt][Hh][Oo][Nn]\w*\}?", os.path.basename(show(words[0]))
    ):
        return None
    at = next((i for i, word in enumerate(words[1:40], 1) if show(word).endswith(".py")), None)
    if at is None:
        return None
    entry = show(words[at])
    occurrences, gaps = flags_of(words[at + 1 :], locate, place)
    by_name: dict[str, list[Occurrence]] = {}
    for one in occurrences:
        by_name.setdefault(one.flag, []).append(one)
    flags = {name: tuple(ones) for name, ones in by_name.items()}
    if not (os.path.basename(entry).startswith("train") or _TRAINING & flags.keys() or (submitted and flags)):
        return None
    return Job(entry, flags, place, {}, has_runtime_env=False, env=env, gaps=tuple(gaps))


def flags_of(words: Iterable[Value], locate: Locate, place: Place) -> tuple[list[Occurrence], list[Gap]]:
    """Split words into flags with their values, in order."""
    found: list[Occurrence] = []
    gaps: list[Gap] = []
    flag, values, where, sure = "", list[Token](), place, True

    def close() -> None:
        if flag:
            found.append(Occurrence(flag, tuple(values), where, sure))

    for word in words:
        one = token(word, locate, place)
        match = re.match(r"--([A-Za-z][\w.-]*)(=?)", one.shown)
        if match and (match[2] or match.end() == len(one.shown)):
            close()
            flag, where, sure, values = match[1], one.place, one.sure, []
            if match[2]:
                rest = one.shown[match.end() :]
                values = [Token(None if one.text is None else rest, rest, one.place, one.sure, one.default, one.reason)]
            continue
        if one.text is None and _WHOLE_WORD.fullmatch(one.shown) and (not flag or values or flag in _SWITCHES):
            gaps.append(Gap(one.shown, one.reason, one.place))
            continue
        values.append(one)
    close()
    return found, gaps

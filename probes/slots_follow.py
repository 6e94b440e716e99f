"""What a launch script and a log name: checkpoints, dumps and the driver, followed to where they lie now.

A ticket folder often holds copies: where an absolute path is not there, its last part beside the script is tried,
and the item says so. A path that is nowhere is still named, so that it shows as missing.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator

from probes.readers.arguments import Arguments
from probes.readers.launch import read_launch
from probes.readers.logfiles import LogFile, expand, window
from probes.readers.torch_dist import TRACKER
from probes.settings import HEAD_LIMIT, MANY_LOGS, read_table
from runbook.evidence import Follower, Item, Reference
from runbook.text import Text

_FLAGS = (
    ("hf-checkpoint", "hf_checkpoint"),
    ("load", "megatron_load"),
    ("ref-load", "megatron_ref"),
    ("save-debug-rollout-data", "rollout_dump"),
    ("load-debug-rollout-data", "rollout_dump"),
    ("save-debug-train-data", "train_dump"),
)
_SAVED = re.compile(rb"Save debug (rollout|train) data (?:from \d+ DP shard\(s\) )?to (\S[^\r\n\x1b]*)")
_CORE = re.compile(rb"coredump: Writing ELF file to (\S[^\r\n\x1b]*)")
_CORE_FOLDER = re.compile(rb"coredump: Current working directory is (\S[^\r\n\x1b]*)")
TAIL_LIMIT = 4 << 20
"""Bytes at the end of a log in which the paths of dumps are looked for as well."""
MANY_DUMPS = 200
"""Dumps that one template may name; a long run writes thousands."""


def _place(path: str, near: str) -> str:
    """Return where `path` is now: as written, relative to `near`, or its last part beside it; else as written."""
    if os.path.exists(path) or not near:
        return path
    for candidate in (os.path.join(near, path), os.path.join(near, os.path.basename(os.path.normpath(path)))):
        if os.path.exists(candidate):
            return candidate
    return path


def _named(slot: str, path: str, near: str, by_en: str, by_zh: str) -> Iterator[Reference]:
    """Yield what `path` stands for; a template of dumps stands for the files that match it."""
    if not path or "\0" in path or path in ("None", "0"):
        return
    if slot in ("rollout_dump", "train_dump") and "{" in path:
        yield from _dumps(slot, path, near, by_en, by_zh)
        return
    if (
        slot == "hf_checkpoint"
        and re.fullmatch(r"[\w.-]+/[\w.-]+", path)
        and not os.path.exists(path)
        and not os.path.exists(os.path.join(near, path))
    ):
        return  # the name of a model on the hub, not a path
    there = _place(path, near)
    if (
        slot.startswith("megatron")
        and os.path.isfile(os.path.join(there, "config.json"))
        and not os.path.exists(os.path.join(there, TRACKER))
    ):
        return  # slime reads a Hugging Face folder as well; it is no Megatron checkpoint
    moved = there != path and os.path.isabs(path)
    en, zh = (
        (f"{by_en} names {path}, found beside it", f"{by_zh} 指向 {path}，在其旁边找到")
        if moved
        else (f"named by {by_en}", f"由 {by_zh} 指定")
    )
    yield Reference(slot, there, Text(en, zh), near)


def _dumps(slot: str, template: str, near: str, by_en: str, by_zh: str) -> Iterator[Reference]:
    pattern = re.sub(r"\\?\{[^{}]*\\?\}", "*", glob.escape(template).replace("[{]", "{").replace("[}]", "}"))
    patterns = [pattern] if os.path.isabs(template) else [os.path.join(glob.escape(near), pattern)]
    tail = os.sep.join(pattern.split(os.sep)[-2:])
    patterns += [os.path.join(glob.escape(near), tail), os.path.join(glob.escape(near), os.path.basename(pattern))]
    why = Text(f"named by {by_en}", f"由 {by_zh} 指定")
    for each in patterns if os.path.basename(pattern) != "*.pt" else patterns[:-1]:
        files = sorted(glob.iglob(each))[:MANY_DUMPS]
        if files:
            yield from (Reference(slot, file, why, near) for file in files)
            return
    yield Reference(slot, template, why, near)


def follow_launch(item: Item) -> Iterator[Reference]:
    """Yield what the flags of a launch script name."""
    launch = read_launch(item.path)
    near = os.path.dirname(os.path.abspath(item.path))
    for job in launch.jobs:
        for flag, slot in _FLAGS:
            last = job.last(flag)
            if last is not None and last.text and last.sure:
                yield from _named(slot, last.text, near, f"--{flag}", f"--{flag}")
        details = job.last("dump-details")
        if details is not None and details.text:
            yield from _details(details.text, near)
        if job.entry and not job.entry.startswith("$"):
            for folder in (near, os.path.dirname(near)):
                path = os.path.join(folder, job.entry)
                if os.path.isfile(path):
                    yield Reference("driver", path, Text("the job's entry point", "作业的入口脚本"), near)
                    break


def _details(folder: str, near: str) -> Iterator[Reference]:
    for kind, slot in (("rollout_data", "rollout_dump"), ("train_data", "train_dump")):
        yield from _named(slot, os.path.join(folder, kind, "{rollout_id}.pt"), near, "--dump-details", "--dump-details")


def follow_log(item: Item) -> Iterator[Reference]:
    """Yield what the arguments table and the dump lines of a log name."""
    near = os.path.dirname(os.path.abspath(item.path)) if not os.path.isdir(item.path) else item.path
    files, _ = expand((item.path,))
    for file in sorted(files, key=lambda one: "driver" not in one.path)[:MANY_LOGS]:
        head = window(file, 0, HEAD_LIMIT)
        table = read_table(file, head)
        if table is not None:
            yield from _of_table(table, near)
        yield from _of_lines(file, head, near)


def _of_table(table: Arguments, near: str) -> Iterator[Reference]:
    for flag, slot in _FLAGS:
        value = table.value(flag.replace("-", "_"))
        if value and not (slot == "megatron_load" and value == table.value("ref_load")):
            yield from _named(slot, value, near, "the log's arguments table", "日志的参数表")


def _of_lines(file: LogFile, head: bytes, near: str) -> Iterator[Reference]:
    tail = b""
    if file.packing == "plain" and file.size > HEAD_LIMIT:
        tail = window(file, max(HEAD_LIMIT, file.size - TAIL_LIMIT), TAIL_LIMIT)
    seen: set[bytes] = set()
    for found in (*_SAVED.finditer(head), *_SAVED.finditer(tail)):
        if found[2] not in seen and len(seen) < MANY_DUMPS:
            seen.add(found[2])
            slot = "rollout_dump" if found[1] == b"rollout" else "train_dump"
            yield from _named(
                slot, found[2].decode("utf-8", "replace").strip(), near, "a line of the log", "日志中的一行"
            )
    yield from _cores(head, near)
    yield from _cores(tail, near)


def _cores(text: bytes, near: str) -> Iterator[Reference]:
    """Yield the GPU core dumps that the driver says it wrote, those that are there: a job leaves one a rank."""
    for found in [*_CORE.finditer(text)][:MANY_DUMPS]:
        path = found[1].decode("utf-8", "replace").strip()
        folder = _CORE_FOLDER.search(text, found.end(), found.end() + 4096)
        if "\0" not in path and not os.path.isabs(path) and folder:
            path = os.path.join(folder[1].decode("utf-8", "replace").strip(), path)
        if "\0" not in path and os.path.isfile(_place(path, near)):
            yield from _named("cuda_coredump", path, near, "a line of the log", "日志中的一行")


LAUNCH_NAMES = Follower("launch", follow_launch)
LOG_NAMES = Follower("log", follow_log)

"""The corrected `ignore` list of a config.json, as rows to read and as a patch to apply.

Pure functions over the file's own bytes: only the entries that change are touched, so key order, indentation and
everything else stay as they are. Whoever owns the session folder writes the result; nothing here does.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from probes.hf_names import LAYER
from probes.quant_plan import Matrix
from probes.quant_rules import library_rule_matches, sglang_rule_matches, slime_rule_matches
from probes.readers.json_places import line_of
from probes.readers.quant_config import QuantConfig
from runbook.finding import Citation, Proposal, Table
from runbook.text import Text, sanitise

RULES_SHOWN = 40

NEW_LINE = "+"
"""What stands for the number of a line that is not there yet."""

Edit = tuple[int, int, bytes]
"""Bytes [start, end) of the file and what replaces them."""


@dataclass(frozen=True)
class Advice:
    """What to change.

    words: a sentence behind a blank, or nothing. tables: the lines. citations: their place. proposals: the edit itself.
    """

    words: Text
    tables: tuple[Table, ...]
    citations: tuple[Citation, ...]
    proposals: tuple[Proposal, ...] = ()


def rules_for(tensors: Iterable[str]) -> tuple[str, ...]:
    """Return the ignore rules that make slime leave these tensors alone, one for all layers and experts.

    A tensor outside the layers is named in full, as slime's guide does ("model.embed_tokens.weight").
    """
    rules = []
    for name in tensors:
        match = LAYER.match(name)
        if match is None:
            rules.append("lm_head" if name == "lm_head.weight" else name)
            continue
        module = match["rest"].removesuffix(".weight")
        pattern = r"\.".join(r"\d+" if part.isdigit() else re.escape(part) for part in module.split("."))
        rules.append("re:.*" + pattern + r"\..*")
    return tuple(dict.fromkeys(rules))


def written(rule: str) -> str:
    """Return a rule as it stands in JSON: quoted, backslashes doubled."""
    return json.dumps(rule, ensure_ascii=False)


def edits(quant: QuantConfig, add: Sequence[str], replace: Mapping[int, str]) -> list[Edit]:
    """Return the edits that add rules to the ignore list and replace entries by position."""
    data = quant.config.data
    here = (*quant.at, quant.ignore_key)
    texts = {number: written(rule).encode() for number, rule in replace.items()}
    found = [
        (place.start, place.end, text)
        for number, text in texts.items()
        if (place := quant.places.get((*here, number))) is not None
    ]
    new = [written(rule).encode() for rule in add]
    entries = sorted(key[-1] for key in quant.places if len(key) == len(here) + 1 and key[:-1] == here)
    if not new:
        return found
    if entries:
        final = (*here, entries[-1])
        last = quant.places[final]
        begin = data.rfind(b"\n", 0, last.start) + 1
        margin = data[begin : last.start]
        joint = b"," + (b"\n" + margin if not margin.strip() and begin else b" ")
        changed = texts.get(int(entries[-1]), data[last.start : last.end])
        found = [edit for edit in found if edit[0] != last.start]
        return [*found, (last.start, last.end, changed + b"".join(joint + text for text in new))]
    listed = quant.places.get(here)
    if listed is not None:
        return [(listed.start, listed.end, b"[" + b", ".join(new) + b"]")]
    holder = quant.places.get(quant.at)
    if holder is None:
        return []
    text = b'\n    "' + quant.ignore_key.encode() + b'": [' + b", ".join(new) + b"],"
    return [(holder.start + 1, holder.start + 1, text)]


def corrected(quant: QuantConfig, add: Sequence[str], replace: Mapping[int, str]) -> bytes:
    """Return the whole config.json with these rules added and replaced."""
    data = quant.config.data
    for start, end, text in sorted(edits(quant, add, replace), reverse=True):
        data = data[:start] + text + data[end:]
    return data


def patch_text(quant: QuantConfig, add: Sequence[str], replace: Mapping[int, str]) -> str:
    """Return the change as a unified diff of config.json, which `patch -p0` applies in the checkpoint's folder."""
    before = quant.config.data.decode("utf-8", "replace").splitlines(keepends=True)
    after = corrected(quant, add, replace).decode("utf-8", "replace").splitlines(keepends=True)
    lines = list(difflib.unified_diff(before, after, "config.json", "config.json"))
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def table(quant: QuantConfig, add: Sequence[str], replace: Mapping[int, str]) -> Table | None:
    """Return the lines to change in config.json: number, what stands there, what must stand there."""
    data = quant.config.data
    rows: list[tuple[str, str, str]] = []
    for start, end, text in sorted(edits(quant, add, replace)):
        begin, stop = data.rfind(b"\n", 0, start) + 1, data.find(b"\n", end)
        stop = stop if stop >= 0 else len(data)
        after = data[begin:start] + text + data[end:stop]
        if len(after) > 400:
            rows.append((str(line_of(data, start)), _show(data[start:end]), _show(text)))
            continue
        first, *rest = after.split(b"\n")
        rows.append((str(line_of(data, start)), _show(data[begin:stop]), _show(first)))
        rows.extend((NEW_LINE, "", _show(line)) for line in rest)
    title = Text("Lines to change in config.json (+ is a new line)", "config.json 中要改的行（+ 为新增行）")
    return Table(title, ("line", "now", "change to"), tuple(rows)) if rows else None


def advise(quant: QuantConfig | None, add: Sequence[str]) -> Advice:
    """Say which line of config.json to change so that the ignore list has these rules; nothing when there are none."""
    if quant is None or not add:
        return Advice(Text("", ""), (), () if quant is None else (quant.cite(quant.ignore_key),))
    last = len(quant.ignore) - 1
    key: tuple[str | int, ...] = (quant.ignore_key, last) if last >= 0 else (quant.ignore_key,)
    line, rules = quant.line(*key) or quant.line(), ", ".join(map(written, add))
    shown = table(quant, add, {})
    if shown is not None and any(row[0] == NEW_LINE for row in shown.rows):
        words = Text(
            f" In config.json, end line {line} with a comma and after it add the line {rules}.",
            f"在 config.json 第 {line} 行末尾加逗号，并在其后加一行 {rules}。",
        )
    else:
        words = Text(
            f" In config.json, line {line}, add {rules} to the ignore list.",
            f"在 config.json 第 {line} 行的 ignore 列表中加入 {rules}。",
        )
    cited = tuple(dict.fromkeys((quant.cite(quant.ignore_key), quant.cite(*key))))
    edit = Proposal("config.json.patch", quant.config.path, patch_text(quant, add, {}))
    return Advice(words, (shown,) if shown else (), cited, (edit,))


def rules_table(quant: QuantConfig, matrices: Sequence[Matrix]) -> Table:
    """Show how each rule of the list fares against these matrices in the three programs."""
    rows = []
    for number, rule in enumerate(quant.ignore[:RULES_SHOWN]):
        line = quant.line(quant.ignore_key, number)
        slime = any(slime_rule_matches(rule, one.name) for one in matrices)
        engine = any(sglang_rule_matches(rule, one.module) for one in matrices)
        library = any(library_rule_matches(rule, one.module) for one in matrices)
        marks = tuple("covers" if hit else "-" for hit in (slime, engine, library))
        rows.append((str(line or ""), _show(written(rule).encode()), *marks))
    names = ", ".join(sanitise(one.name, 80) for one in matrices[:3])
    title = Text(f"Which rule covers {names}", f"哪条规则覆盖 {names}")
    return Table(title, ("line", "rule", "slime", "SGLang", "compressed-tensors"), tuple(rows))


def _show(line: bytes) -> str:
    return sanitise(line.strip(), 400)

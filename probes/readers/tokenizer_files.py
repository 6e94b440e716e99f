"""Reads the tokenizer of a Hugging Face checkpoint folder: vocabulary, special tokens, stop tokens, chat templates.

Files are read as transformers reads them (tokenization_utils_base.py): a template in `chat_template.jinja` wins over
`chat_template.json`, that over the key in `tokenizer_config.json`; `additional_chat_templates/` holds named ones; the
special tokens of `tokenizer_config.json` win over `special_tokens_map.json`. Invariants: every file is a regular file
of bounded size, or it is named in `faults`; nothing is executed, and no template is rendered here; the vocabulary is
loaded by the `tokenizers` library alone, and only when asked for.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from typing import Any

JSON_LIMIT = 16 << 20
"""Bytes of one configuration file: real ones have kilobytes, those with a long added_tokens_decoder a megabyte."""
VOCABULARY_LIMIT = 128 << 20
"""Bytes of tokenizer.json: those of 262,144 entries have 33 MB."""
TEMPLATE_LIMIT = 1 << 20
"""Bytes of one chat template: the longest published ones have 30 kB."""
MAX_TEMPLATES = 64
_SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token")
_UNREADABLE = (
    ("tekken.json", "a tekken vocabulary"),
    ("tiktoken.model", "a tiktoken vocabulary"),
    ("tokenizer.model", "a sentencepiece vocabulary"),
    ("vocab.json", "vocab.json and merges.txt without the rules of splitting"),
)


@dataclass(frozen=True)
class NamedTemplate:
    """A chat template. name: "default" or the name that the files give it. path: the file that holds it."""

    name: str
    text: str
    path: str


@dataclass(frozen=True)
class StopIds:
    """End tokens that a file lists. key: the key that holds them; data: the bytes of the file, for citations."""

    path: str
    key: str
    ids: tuple[int, ...]
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class TokenizerFiles:
    """What the files say.

    special: text by role ("bos_token", ...). added: id to text of added tokens, from tokenizer_config.json. templates:
    the default first. vocabulary: tokenizer.json when it is there, else "". without: why no vocabulary can be read.
    stops: one entry a file that lists end tokens. seen: the files that were read. faults: (path, what is wrong).
    """

    folder: str
    special: dict[str, str]
    added: dict[int, str]
    templates: tuple[NamedTemplate, ...]
    vocabulary: str
    without: str
    stops: tuple[StopIds, ...]
    seen: tuple[str, ...]
    faults: tuple[tuple[str, str], ...]

    @property
    def template(self) -> NamedTemplate | None:
        """Return the template that is used when none is named."""
        return next((one for one in self.templates if one.name == "default"), None)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Return the ids at which an engine stops by the files: those of generation_config.json and config.json."""
        return tuple(dict.fromkeys(number for one in self.stops for number in one.ids))


def read_file(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file; raise OSError for anything else and for a file larger than `limit`."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise OSError("is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"has more than {limit >> 20} MiB")
    return data


class _Folder:
    """Reads the files of one folder and keeps account of what was read and what could not be."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen: list[str] = []
        self.faults: list[tuple[str, str]] = []

    def raw(self, name: str, limit: int) -> bytes | None:
        path = os.path.join(self.path, name)
        try:
            data = read_file(path, limit)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.faults.append((path, getattr(error, "strerror", None) or str(error)))
            return None
        self.seen.append(path)
        return data

    def json(self, name: str) -> tuple[dict[str, Any], bytes]:
        """Return the object that a JSON file holds, empty when it is absent or is not one."""
        data = self.raw(name, JSON_LIMIT)
        if data is None:
            return {}, b""
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            self.faults.append((os.path.join(self.path, name), "is not a JSON object"))
            return {}, data
        return value, data


def read_tokenizer(folder: str) -> TokenizerFiles:
    """Read the tokenizer files of a checkpoint folder; what is absent is empty, what is broken is in `faults`."""
    files = _Folder(folder)
    config, _ = files.json("tokenizer_config.json")
    mapped, _ = files.json("special_tokens_map.json")
    special = {role: text for role in _SPECIAL if (text := _token(config.get(role)) or _token(mapped.get(role)))}
    stops = tuple(stop for name in ("generation_config.json", "config.json") if (stop := _stops(files, name)))
    vocabulary = os.path.join(folder, "tokenizer.json")
    present = os.path.isfile(vocabulary)
    without = "" if present else _without(folder)
    return TokenizerFiles(
        folder,
        special,
        _added(config),
        _templates(files, config),
        vocabulary if present else "",
        without,
        stops,
        tuple(files.seen),
        tuple(files.faults),
    )


def _without(folder: str) -> str:
    try:
        names = set(os.listdir(folder))
    except OSError as error:
        return f"the folder cannot be listed ({error.strerror})"
    for name, what in _UNREADABLE:
        if name in names:
            return f"it holds {what} ({name}), not tokenizer.json"
    named = sorted(name for name in names if name.endswith(".tiktoken"))
    return f"it holds a tiktoken vocabulary ({named[0]})" if named else "it holds no tokenizer.json"


def _token(value: object) -> str:
    """Return a token's text, whether it is written as a string or as an AddedToken object."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _added(config: dict[str, Any]) -> dict[int, str]:
    table = config.get("added_tokens_decoder")
    if not isinstance(table, dict):
        return {}
    return {int(key): text for key, one in table.items() if key.isascii() and key.isdigit() and (text := _token(one))}


def _stops(files: _Folder, name: str) -> StopIds | None:
    config, data = files.json(name)
    value = config.get("eos_token_id")
    if value is None and isinstance(config.get("text_config"), dict):
        value = config["text_config"].get("eos_token_id")
    ids = tuple(
        one for one in (value if isinstance(value, list) else [value]) if isinstance(one, int) and one is not True
    )
    return StopIds(os.path.join(files.path, name), "eos_token_id", ids, data) if ids else None


class _Templates:
    """Collects templates by name; what was added first wins."""

    def __init__(self, files: _Folder) -> None:
        self.files = files
        self.found: dict[str, NamedTemplate] = {}

    def add(self, name: object, text: object, file: str) -> None:
        """Take one template, if it is one."""
        if not isinstance(name, str) or not isinstance(text, str) or not text or name in self.found:
            return
        path = os.path.join(self.files.path, file)
        if len(text) > TEMPLATE_LIMIT:
            self.files.faults.append((path, "its chat template is too long"))
        elif len(self.found) < MAX_TEMPLATES:
            self.found[name] = NamedTemplate(name, text, path)

    def add_value(self, value: object, file: str) -> None:
        """Take the value of a `chat_template` key: one template, or several by name, as an object or a list."""
        if isinstance(value, str):
            self.add("default", value, file)
        elif isinstance(value, dict):
            for name, text in value.items():
                self.add(name, text, file)
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, dict):
                    self.add(one.get("name"), one.get("template"), file)

    def add_file(self, name: str, file: str) -> None:
        """Take a file that holds nothing but a template."""
        data = self.files.raw(file, TEMPLATE_LIMIT)
        if data is not None:
            self.add(name, data.decode("utf-8", "replace"), file)


def _templates(files: _Folder, config: dict[str, Any]) -> tuple[NamedTemplate, ...]:
    """Return the templates, one a name; of several sources of one name that one which transformers takes."""
    templates = _Templates(files)
    templates.add_file("default", "chat_template.jinja")
    templates.add_value(files.json("chat_template.json")[0].get("chat_template"), "chat_template.json")
    templates.add_value(config.get("chat_template"), "tokenizer_config.json")
    try:
        more = sorted(os.listdir(os.path.join(files.path, "additional_chat_templates")))[:MAX_TEMPLATES]
    except OSError:
        more = []
    for name in more:
        if name.endswith(".jinja"):
            templates.add_file(name[: -len(".jinja")], os.path.join("additional_chat_templates", name))
    return tuple(sorted(templates.found.values(), key=lambda one: one.name != "default"))

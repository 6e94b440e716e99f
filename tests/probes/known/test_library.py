"""How the library is read: lazily, once, and never half."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from probes import known as library
from probes.known import Asked, build, entries, known, load_shelf, shelves, signatures
from probes.readers.logscan import signature
from runbook.errors import RunbookError

ENTRY = """
about: x
asked: [known.in_log]
parts: {WHO: (?:you|me)}
signatures:
  - id: one
    role: benign
    means: {en: x}
    proves_not: y
    literals: [seen by]
    pattern: [seen by <WHO>, seen by all]
    source: [{project: a/b, place: c}]
    positive: [seen by me]
    negative: [seen by her]
"""


def test_nothing_is_read_before_it_is_asked() -> None:
    """Importing every probe reads no file of the library; the first use of a signature does."""
    code = (
        "from runbook.catalog import probe_modules\nprobe_modules()\n"
        "from probes import faults, known\nprint(known.shelves.cache_info().currsize)\n"
        "faults.IMA.label\nprint(known.shelves.cache_info().currsize)\n"
        "faults.IMA.pattern\nprint(known.shelves.cache_info().currsize)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "1"]


def test_a_known_signature_is_that_of_its_entry() -> None:
    """By label, literals and expression; the same one each time."""
    each, entry = known("address-taken"), entries()["address-taken"]
    assert each.literals == tuple(one.encode() for one in entry.literals)
    assert each.pattern.search(b"OSError: [Errno 98] Address already in use")
    assert known("address-taken") is each
    assert {each: 1}[known("address-taken")] == 1


def test_an_unknown_id_fails_when_it_is_used() -> None:
    """A misspelt id is an error of whoever wrote it, and other attributes are plainly absent."""
    with pytest.raises(KeyError):
        _ = known("no-such-entry").literals
    with pytest.raises(AttributeError):
        _ = known("no-such-entry").colour  # type: ignore[attr-defined]


def test_parts_and_alternatives_make_one_expression(tmp_path: Path) -> None:
    """Parts are put in by name, alternatives are joined; without a pattern the literals are it."""
    (tmp_path / "a.yaml").write_text(ENTRY)
    shelf = load_shelf(str(tmp_path / "a.yaml"))
    each = build(shelf.signatures[0], shelf.parts)
    assert each.expression == b"seen by (?:you|me)|seen by all"
    assert signatures()["not-held"] == signature("not-held", " not found in params_dict")


@pytest.mark.parametrize(
    "text", ["[", "about: x", ENTRY.replace("role: benign", "role: villain"), ENTRY + "  - {id: two}\n", "a: \x00"]
)
def test_a_file_that_is_none_names_itself(tmp_path: Path, text: str) -> None:
    """Broken YAML, missing and unknown fields are one error that names the file."""
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(RunbookError, match="broken"):
        load_shelf(str(path))


def test_a_probe_gets_the_entries_of_its_files() -> None:
    """All files that name the probe, and no other."""
    asked = Asked("port.in_log")
    assert list(asked.entries()) == [each.id for each in shelves()["start"].signatures]
    assert [each.label for each in asked.signatures()] == list(asked.entries())
    assert Asked("nobody.in_log").signatures() == ()


def test_every_file_of_the_folder_is_read() -> None:
    """The files beside the code are the library."""
    assert set(shelves()) == {path.stem for path in Path(library.FOLDER).glob("*.yaml")}

"""Tests of runbook.discovery on real trees, also hostile ones, with slots and followers of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runbook.discovery import DEPTH, ENTRIES, Found, discover, recognise, resolve
from runbook.errors import EvidenceError
from runbook.evidence import Candidate, Follower, Item, Match, Reference, Slot
from runbook.text import Text
from tests.helpers import is_safe

WHY = Text("content", "内容")


def is_log(candidate: Candidate) -> Match | None:
    """Know a log by its first line."""
    return Match(50, WHY) if candidate.head.startswith(b"LOG") else None


def is_launch(candidate: Candidate) -> Match | None:
    """Know a launch script by its second word; it outranks a log."""
    return Match(60, WHY) if b" launch" in candidate.head[:20] else None


def is_model(candidate: Candidate) -> Match | None:
    """Know a model folder by its config; what lies inside belongs to it."""
    return Match(90, WHY) if "config.json" in candidate.names else None


def is_collection(candidate: Candidate) -> Match | None:
    """Know a folder of logs, which does not keep discovery from looking inside."""
    return Match(10, WHY, closed=False) if candidate.is_dir and candidate.name == "logs" else None


def breaks(candidate: Candidate) -> Match | None:
    """Raise what a careless recogniser raises."""
    raise ValueError(candidate.path)


def follow_launch(item: Item) -> Iterator[Reference]:
    """Yield what a launch script names, one `slot=path` a line."""
    with open(item.path, "rb") as file:
        for line in file.read().splitlines():
            slot, equals, path = os.fsdecode(line).partition("=")
            if equals:
                yield Reference(slot, path, Text("named", "提到"), near=os.path.dirname(item.path))


def follow_badly(item: Item) -> Iterator[Reference]:
    """Raise while following."""
    raise ValueError(item.path)


SLOTS = {
    slot.name: slot
    for slot in (
        Slot("broken", WHY, breaks),
        Slot("launch", WHY, is_launch),
        Slot("log", WHY, is_log, many=True),
        Slot("model", WHY, is_model),
        Slot("logs", WHY, is_collection, many=True),
        Slot("dump", WHY),
        Slot("ray", WHY, holds="url"),
    )
}
FOLLOWERS = (Follower("log", follow_badly), Follower("launch", follow_launch))


def look(root: Path | str, *given: tuple[str, str]) -> Found:
    """Discover with the slots of this file."""
    return discover(str(root), given, SLOTS, FOLLOWERS)


def taken(found: Found, slot: str, root: Path) -> list[str]:
    """Return what is in a slot, relative to `root`."""
    return [os.path.relpath(path, root) for path in found.evidence.paths(slot)]


def write(path: Path, text: str = "LOG\n") -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_content_decides_not_the_name(tmp_path: Path) -> None:
    """A log under an odd name is found, a file that is only named like one is not; each item says why and whence."""
    write(tmp_path / "slurm-4711.o")
    write(tmp_path / "job.log", "something else")
    write(tmp_path / "deep" / "er" / "x")
    found = look(tmp_path)
    assert taken(found, "log", tmp_path) == ["slurm-4711.o", "deep/er/x"]
    assert [(item.why, item.origin) for item in found.evidence.items] == [(WHY, "found")] * 2
    assert found.notes == ()
    assert found.evidence.root == str(tmp_path)


def test_run_may_be_a_file(tmp_path: Path) -> None:
    """A single file as RUN is looked at like one in a folder."""
    path = write(tmp_path / "x")
    assert look(path).evidence.paths("log") == (str(path),)


def test_the_best_match_takes_the_candidate(tmp_path: Path) -> None:
    """A file that two slots know goes to the one with the higher score; a recogniser that raises knows nothing."""
    path = write(tmp_path / "x", "LOG launch\n")
    assert look(tmp_path).evidence.paths("launch") == (str(path),)
    assert look(tmp_path).evidence.paths("log") == ()
    best = recognise(Candidate(str(path), is_dir=False, size=11), SLOTS)
    assert best is not None
    assert best[0] == "launch"


def test_equals_are_told_with_how_to_choose(tmp_path: Path) -> None:
    """What two slots know equally well goes to the one declared first, and one note names both, paths and options.

    When one of the two was given nobody has to choose, and a lower score is no rival.
    """
    slots = {
        **SLOTS,
        "trace": Slot("trace", WHY, is_log, many=True),
        "worse": Slot("worse", WHY, lambda one: None if one.is_dir else Match(49, WHY), many=True),
    }
    paths = [write(tmp_path / "run" / name) for name in ("a", "b", "c", "d")]
    found = discover(str(tmp_path / "run"), (), slots, FOLLOWERS)
    assert taken(found, "log", tmp_path / "run") == ["a", "b", "c", "d"]
    (note,) = found.notes
    assert note.en == (
        f"{paths[0]}, {paths[1]}, {paths[2]} and 1 more may be log or trace; taken as log, "
        "choose with --log PATH / --trace PATH"
    )
    assert "--trace PATH" in note.zh
    given = discover(str(tmp_path / "run"), (("trace", str(paths[0])),), slots, FOLLOWERS)
    assert given.notes == ()


def test_a_closed_folder_is_one_item(tmp_path: Path) -> None:
    """What lies in a folder that belongs together is not looked at; another recognised folder is looked into."""
    write(tmp_path / "model" / "config.json")
    write(tmp_path / "model" / "train.log")
    write(tmp_path / "logs" / "a")
    found = look(tmp_path)
    assert taken(found, "model", tmp_path) == ["model"]
    assert taken(found, "log", tmp_path) == ["logs/a"]
    assert taken(found, "logs", tmp_path) == ["logs"]


def test_a_recogniser_that_breaks_is_told_and_takes_nothing_down(tmp_path: Path) -> None:
    """What a recogniser raises that no content explains is a note with its slot; the file goes to who knows it."""

    def bug(candidate: Candidate) -> Match | None:
        raise TypeError(candidate.name)

    write(tmp_path / "x")
    found = discover(str(tmp_path / "x"), (), {**SLOTS, "bug": Slot("bug", WHY, bug)}, FOLLOWERS)
    assert found.evidence.paths("log") == (str(tmp_path / "x"),)
    assert [note.en for note in found.notes] == [f"could not be read: {tmp_path / 'x'}: bug: TypeError('x')"]


def test_nothing_known_is_said(tmp_path: Path) -> None:
    """A folder without evidence gives no item and a note that names it."""
    write(tmp_path / "holiday.jpg", "x")
    found = look(tmp_path)
    assert found.evidence.items == ()
    assert str(tmp_path) in found.notes[0].en


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A RUN or a given path that does not exist, and a slot that nobody declared, are errors that name it."""
    with pytest.raises(EvidenceError, match="gone"):
        look(tmp_path / "gone")
    with pytest.raises(EvidenceError, match=r"--dump .*gone"):
        look(tmp_path, ("dump", str(tmp_path / "gone")))
    with pytest.raises(EvidenceError, match="'nonsense'"):
        look(tmp_path, ("nonsense", str(tmp_path)))


def test_given_evidence_replaces_what_would_be_found(tmp_path: Path) -> None:
    """A slot that was given is not filled from RUN or by a launch script; an address need not be a path."""
    write(tmp_path / "run" / "found.log")
    write(tmp_path / "run" / "run.sh", "# launch\nlog=found.log\nmodel=m\n")
    write(tmp_path / "run" / "m" / "config.json")
    mine = write(tmp_path / "mine", "no log at all")
    found = look(tmp_path / "run", ("log", str(mine)), ("ray", "http://head:8265"))
    assert found.evidence.paths("log") == (str(mine),)
    assert found.evidence.paths("ray") == ("http://head:8265",)
    assert [item.origin for item in found.evidence.items if item.slot in ("log", "ray")] == ["given", "given"]
    assert taken(found, "model", tmp_path) == ["run/m"]


def test_only_given_evidence(tmp_path: Path) -> None:
    """Without RUN nothing is searched, but what a given launch script names is followed."""
    write(tmp_path / "job.log")
    write(tmp_path / "m" / "config.json")
    script = write(tmp_path / "run.sh", "# launch\nmodel=m\n")
    found = look("", ("launch", str(script)))
    assert found.evidence.paths("log") == ()
    assert taken(found, "model", tmp_path) == ["m"]


def test_what_is_named_is_found_near_the_script_or_in_run(tmp_path: Path) -> None:
    """A relative name is tried beside the script, then in RUN; one that is nowhere is missing, never dropped."""
    write(tmp_path / "scripts" / "run.sh", "# launch\ndump=near.pt\nmodel=models/m\nlog=/gone/x.log\n")
    write(tmp_path / "scripts" / "near.pt", "x")
    write(tmp_path / "models" / "m" / "weights", "x")
    found = look(tmp_path)
    assert taken(found, "dump", tmp_path) == ["scripts/near.pt"]
    assert taken(found, "model", tmp_path) == ["models/m"]
    assert found.evidence.paths("log") == ()
    missing = found.evidence.missing("log")
    assert [(item.path, item.origin, item.missing) for item in missing] == [("/gone/x.log", "named", True)]


def test_names_are_followed_further(tmp_path: Path) -> None:
    """A script that names a script is followed, in a circle only once."""
    write(tmp_path / "a" / "run.sh", "# launch\nlaunch=../b/two.sh\n")
    write(tmp_path / "b" / "two.sh", "x\nlaunch=../a/run.sh\ndump=d\n")
    write(tmp_path / "b" / "d", "x")
    found = look(tmp_path)
    assert sorted(os.path.realpath(path) for path in found.evidence.paths("launch")) == [
        str(tmp_path / "a" / "run.sh"),
        str(tmp_path / "b" / "two.sh"),
    ]
    assert [os.path.realpath(path) for path in found.evidence.paths("dump")] == [str(tmp_path / "b" / "d")]


def test_what_is_named_goes_before_what_was_found(tmp_path: Path) -> None:
    """Of two models the one that the launch script names is used, and there is nothing to ask."""
    write(tmp_path / "a-model" / "config.json")
    write(tmp_path / "z-model" / "config.json")
    write(tmp_path / "run.sh", "# launch\nmodel=z-model/../../elsewhere\n")
    elsewhere = tmp_path.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    found = look(tmp_path)
    first = found.evidence.first("model")
    assert first is not None
    assert os.path.realpath(first) == str(elsewhere)
    assert found.notes == ()


def test_equal_candidates_are_told(tmp_path: Path) -> None:
    """Two models of equal standing are both kept, and a note names them and the option to choose with."""
    write(tmp_path / "a" / "config.json")
    write(tmp_path / "b" / "config.json")
    found = look(tmp_path)
    assert taken(found, "model", tmp_path) == ["a", "b"]
    assert len(found.notes) == 1
    assert "--model" in found.notes[0].en
    assert str(tmp_path / "b") in found.notes[0].en


def test_links_that_go_round_end(tmp_path: Path) -> None:
    """Links to a parent, to each other, to themselves and to nothing end; each folder is looked at once."""
    write(tmp_path / "real" / "x")
    (tmp_path / "real" / "up").symlink_to(tmp_path)
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert taken(look(tmp_path), "log", tmp_path) == ["real/x"]


def test_run_may_be_a_link(tmp_path: Path) -> None:
    """RUN given by a link to its folder, as `latest` mostly is, is looked into as the folder itself."""
    write(tmp_path / "real" / "x")
    (tmp_path / "latest").symlink_to(tmp_path / "real")
    assert taken(look(tmp_path / "latest"), "log", tmp_path) == ["latest/x"]


def test_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    """A FIFO would block and a device would never end: neither is opened, also when it is RUN itself."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    write(tmp_path / "x")
    assert taken(look(tmp_path), "log", tmp_path) == ["x"]
    assert look(tmp_path / "pipe").evidence.items == ()


def test_the_search_is_bounded_and_says_so_once(tmp_path: Path) -> None:
    """Of very many entries the first ENTRIES are looked at; one note says that the rest was not."""
    many = tmp_path / "many"
    many.mkdir()
    for number in range(ENTRIES + 200):
        os.mknod(many / f"{number:06}")
    for number in range(5):
        write(tmp_path / f"zz{number}" / "x")
    found = look(tmp_path)
    assert found.evidence.paths("log") == ()
    limits = [note.en for note in found.notes if str(ENTRIES) in note.en]
    assert len(limits) == 1
    assert str(many) in limits[0]


def test_the_search_has_a_depth(tmp_path: Path) -> None:
    """A file DEPTH folders below RUN is found, one deeper is not."""
    folder = tmp_path
    for _ in range(DEPTH - 1):
        folder = folder / "d"
    write(folder / "x")
    write(folder / "d" / "y")
    assert [Path(path).name for path in look(tmp_path).evidence.paths("log")] == ["x"]


def test_what_cannot_be_read_is_told() -> None:
    """A folder and a file without permission are named in a note: not seen is not the same as not there."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        write(root / "shut" / "x")
        write(root / "shut.log")
        write(root / "open.log")
        (root / "shut").chmod(0)
        (root / "shut.log").chmod(0)
        nobody = os.geteuid() == 0
        if nobody:
            os.seteuid(65534)
        try:
            found = look(root)
        finally:
            if nobody:
                os.seteuid(0)
            (root / "shut").chmod(0o755)
    assert taken(found, "log", root) == ["open.log"]
    assert len(found.notes) == 1
    for path in (root / "shut", root / "shut.log"):
        assert f"{path}: Permission denied" in found.notes[0].en


@pytest.mark.parametrize(
    "name", [b"a\x1b[2Jb", b"new\nline", b"[rank7] x", b"\xe2\x80\xaeabc", b" ", b"-rf", b"$(touch x)"]
)
def test_hostile_names_are_taken_as_they_are(name: bytes, tmp_path: Path) -> None:
    """A file is found under any name; the path stays what the system needs to open it, and notes are safe to print."""
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "wb") as file:
        file.write(b"LOG\n")
    found = look(tmp_path)
    assert [os.fsencode(taken_path) for taken_path in found.evidence.paths("log")] == [path]
    os.makedirs(path + b".d")
    empty = look(os.fsdecode(path + b".d"))
    assert all(is_safe(note.en) and is_safe(note.zh) for note in empty.notes)


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    """A path that is not UTF-8 cannot stand in a journal: it is told, refused as RUN, and never breaks the rest."""
    odd = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xff.log"))
    Path(odd).write_bytes(b"LOG\n")
    write(tmp_path / "x")
    (tmp_path / "run.sh").write_bytes(b"# launch\ndump=\xff.log\n")
    found = look(tmp_path)
    assert taken(found, "log", tmp_path) == ["x"]
    assert "not UTF-8" in found.notes[0].en
    assert is_safe(found.notes[0].en)
    assert [item.path for item in found.evidence.missing("dump")] == [str(tmp_path / ".log")]
    with pytest.raises(EvidenceError, match="not UTF-8"):
        look(odd)
    with pytest.raises(EvidenceError, match="not UTF-8"):
        look(tmp_path, ("log", odd))


def test_resolving_a_name(tmp_path: Path) -> None:
    """A name is taken as it stands, else relative to the given folders in order; an absolute one is not moved."""
    write(tmp_path / "a" / "x")
    write(tmp_path / "b" / "x")
    near = (str(tmp_path / "b"), str(tmp_path / "a"))
    assert resolve(str(tmp_path / "a" / "x"), near) == (str(tmp_path / "a" / "x"), True)
    assert resolve("x", near) == (str(tmp_path / "b" / "x"), True)
    assert resolve("y", near) == ("y", False)
    assert resolve("/y", ("", str(tmp_path))) == ("/y", False)


def test_a_follower_that_fills_one_slot_is_asked_while_it_is_empty(tmp_path: Path) -> None:
    """What asks an address for a log is not asked where a log was found or given, nor twice in one round."""
    asked: list[str] = []
    log = write(tmp_path / "fetched" / "job.log")

    def fetch(item: Item) -> Iterator[Reference]:
        asked.append(item.path)
        yield Reference("log", str(log), Text("fetched", "获取"))

    followers = (Follower("ray", fetch, fills="log"),)
    address = ("ray", "http://head:8265")

    def logs(root: str, *given: tuple[str, str]) -> tuple[str, ...]:
        return discover(root, given, SLOTS, followers).evidence.paths("log")

    assert logs("", address, ("ray", "http://other:8265")) == (str(log),)
    assert asked == ["http://head:8265"]
    run = write(tmp_path / "run" / "x")
    assert logs(str(tmp_path / "run"), address) == (str(run),)
    assert logs("", address, ("log", str(run))) == (str(run),)
    assert asked == ["http://head:8265"]


def test_a_note_of_a_follower_reaches_the_person() -> None:
    """A Text among what a follower yields is a note, and no evidence."""
    note = Text("two jobs may be meant", "可能有两个任务")
    followers = (Follower("ray", lambda _: [note]),)
    found = discover("", (("ray", "http://head:8265"),), SLOTS, followers)
    assert found.notes == (note,)
    assert [item.slot for item in found.evidence.items] == ["ray"]

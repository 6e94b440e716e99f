"""A ticket is written whole, privately, only where it may be, and only when nothing private is left in it."""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from runbook.catalog import Catalog
from runbook.errors import RedactionError, SessionError, UsageError
from runbook.session.desk import Desk
from runbook.session.journal import Journal
from runbook.ticket.export import KEY_FILE, finish, local_identity, people_of, write_private, write_ticket
from runbook.ticket.redact import Identity
from runbook.ticket.renderers import Renderer, renderer
from runbook.ticket.transcript import Transcript
from tests.runbook.ticket.sample import drawn_finding, drawn_state, sample, triage_state, walked_state

PRIVATE = ("lihua", "wang.fang", "gpu-node-17", "10.12.0.7", "9c1d4e7f8a2b3c4d", "corp.example")


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("drawn", [False, True], ids=["words", "pictures"])
@pytest.mark.parametrize("format", ["markdown", "json", "html"])
def test_nothing_private_is_in_a_finished_ticket(format: str, drawn: bool) -> None:
    """Names, hosts, addresses and keys of the evidence are in no format of the ticket, nor in its pictures."""
    state = drawn_state(drawn_finding()) if drawn else walked_state()
    content, key = finish(sample(state), renderer(format), local_identity((*people_of(state), "lihua")))
    for private in PRIVATE:
        assert private.encode() not in content
    assert b"user-1" in content
    assert key.names["user", "lihua"] == "user-1"


def test_what_a_person_chose_is_hidden() -> None:
    """A word given by the person is hidden like any other name."""
    content, _ = finish(sample(triage_state()), renderer("markdown"), Identity(("lihua",), (), ("grpo-235b",)))
    assert b"grpo" not in content
    assert b"hidden-1" in content


def test_a_leaking_renderer_is_refused_by_the_second_look() -> None:
    """When the layout brings something private back, nothing comes out; the message names the place, not the value."""

    def leak(transcript: Transcript) -> bytes:
        return renderer("markdown").render(transcript) + b"\nby lihua, key hf_" + b"aBcDeFgHiJ" * 4

    with pytest.raises(RedactionError) as raised:
        finish(sample(triage_state()), replace(renderer("markdown"), render=leak), Identity(("lihua",)))
    assert "column 4" in raised.value.message
    assert "and 1 more" in raised.value.message
    assert "lihua" not in str(raised.value)
    assert "aBcDeFgHiJ" not in str(raised.value)


def test_every_part_of_a_format_that_is_no_text_is_looked_at() -> None:
    """A format with parts is scanned part by part, and the part is named."""
    odd = Renderer(".bin", lambda _: b"x", lambda _: [("a.txt", "fine"), ("b.txt", "at 10.9.8.7")])
    with pytest.raises(RedactionError, match=r"b\.txt, line 1, column 4"):
        finish(sample(triage_state()), odd, Identity())


def test_what_is_known_of_this_machine() -> None:
    """The name of this host and everybody who worked on the session are private from the start."""
    identity = local_identity(people_of(walked_state()), ("Tiger",))
    assert {"lihua", "wang.fang"} <= set(identity.people)
    assert socket.gethostname() in identity.machines
    assert identity.chosen == ("Tiger",)


def _desk(sessions: Path, root: Path) -> tuple[Desk, Path]:
    journal = Journal.create(sessions, 1795977000.0)
    desk = Desk(Catalog(loaded={}), journal, session_id=journal.id)
    desk.begin(str(root))
    return desk, journal.folder


def test_a_ticket_is_written_into_the_session_with_its_key_beside_it(tmp_path: Path) -> None:
    """By default it goes into the session folder, never over another one; files are private; the key stays there."""
    desk, folder = _desk(tmp_path / "sessions", tmp_path / "run")
    first = write_ticket(desk, "markdown", None, folder)
    second = write_ticket(desk, "markdown", None, folder)
    desk.close()
    assert first == folder / "ticket-1.md"
    assert second == folder / "ticket-2.md"
    assert first.read_text().startswith("# Nothing wrong was found")
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in _files(folder)} == {0o600}
    assert KEY_FILE in _files(folder)


def test_an_existing_file_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    """A name that is taken is refused and its content stays; with overwrite it is replaced."""
    desk, folder = _desk(tmp_path / "sessions", tmp_path / "run")
    target = tmp_path / "ticket.md"
    target.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_ticket(desk, "markdown", str(target), folder)
    assert target.read_text() == "mine"
    assert write_ticket(desk, "markdown", str(target), folder, overwrite=True) == target
    assert target.read_text().startswith("# ")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    desk.close()


def test_the_run_stays_as_it_is_unless_asked(tmp_path: Path) -> None:
    """A target inside RUN, also through a symbolic link, is refused; asked for, it is written."""
    run = tmp_path / "run"
    (run / "sub").mkdir(parents=True)
    (tmp_path / "alias").symlink_to(run)
    desk, folder = _desk(tmp_path / "sessions", run)
    for inside in (run / "t.md", run / "sub" / "t.md", tmp_path / "alias" / "t.md"):
        with pytest.raises(UsageError, match="inside the run"):
            write_ticket(desk, "markdown", str(inside), folder)
    assert _files(run) == {"sub"}
    assert write_ticket(desk, "markdown", str(run / "t.md"), folder, into_run=True) == run / "t.md"
    assert write_ticket(desk, "markdown", str(tmp_path / "running.md"), folder) == tmp_path / "running.md"
    desk.close()


def test_a_dash_is_stdout(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """With "-" the ticket goes to stdout and no file but the key is made."""
    desk, folder = _desk(tmp_path / "sessions", tmp_path / "run")
    assert write_ticket(desk, "json", "-", folder) is None
    desk.close()
    assert capfdbinary.readouterr().out.startswith(b"{\n")
    assert not [name for name in _files(folder) if name.startswith("ticket")]


def test_a_session_that_can_only_be_read_is_exported_elsewhere(tmp_path: Path) -> None:
    """When the key cannot be kept beside the journal, a ticket for another place is written all the same."""
    desk, folder = _desk(tmp_path / "sessions", tmp_path / "run")
    (folder / KEY_FILE).mkdir()
    assert write_ticket(desk, "markdown", str(tmp_path / "t.md"), folder) == tmp_path / "t.md"
    with pytest.raises(SessionError, match=KEY_FILE):
        write_ticket(desk, "markdown", None, folder)
    desk.close()


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """A missing folder gives an error naming the path; no draft stays behind after a refused overwrite."""
    with pytest.raises(SessionError, match="cannot be written"):
        write_private(str(tmp_path / "no" / "t.md"), b"x", overwrite=False)
    (tmp_path / "t.md").write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"):
        write_private(str(tmp_path / "t.md"), b"x", overwrite=False)
    assert _files(tmp_path) == {"t.md"}
    assert (tmp_path / "t.md").read_bytes() == b"old"


def test_without_hard_links_the_file_still_appears_and_none_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system without hard links a new file is renamed into place, an existing one refused."""

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    write_private(str(tmp_path / "t.md"), b"x", overwrite=False)
    with pytest.raises(UsageError):
        write_private(str(tmp_path / "t.md"), b"y", overwrite=False)
    assert (tmp_path / "t.md").read_bytes() == b"x"


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    """A format that no module provides gives an error with those that there are."""
    desk, folder = _desk(tmp_path / "sessions", tmp_path)
    with pytest.raises(UsageError, match="no ticket format") as raised:
        write_ticket(desk, "docx", None, folder)
    assert "markdown" in raised.value.hint
    desk.close()


def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    """What is no regular file is refused as a target, also where overwriting is allowed."""
    desk, folder = _desk(tmp_path / "sessions", tmp_path / "run")
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with pytest.raises(UsageError, match="no regular file"):
        write_ticket(desk, "markdown", str(fifo), folder, overwrite=True)
    desk.close()
    assert stat.S_ISFIFO(fifo.lstat().st_mode)

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
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.journal import Journal
from runbook.ticket.choices import CHOICES_FILE, Choices, remember
from runbook.ticket.export import (
    KEY_FILE,
    draft_of,
    finish,
    finished,
    local_identity,
    people_of,
    prepare,
    put,
    write_private,
    write_ticket,
)
from runbook.ticket.outgoing import Attachment, Outgoing
from runbook.ticket.redact import Identity
from runbook.ticket.renderers import Renderer, formats, renderer
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


def _noted(sessions: Path) -> tuple[Desk, Path]:
    desk, folder = _desk(sessions, sessions / "run")
    desk.append(ev.Noted("The plan of lihua is to sell it.\nCall the vendor.", "lihua"))
    return desk, folder


def test_what_was_dropped_in_a_session_is_in_no_later_ticket(tmp_path: Path) -> None:
    """Every format leaves it out and says so in the redaction report; taken back, it is there again."""
    desk, folder = _noted(tmp_path)
    remember(folder, Choices(("vendor",), ("The plan of lihua is to sell it.",)))
    for format in formats():
        text = prepare(desk, format, folder).text
        assert "sell it" not in text, format
        assert "vendor" not in text, format
        assert "left out by the sender" in text.replace("\\", ""), format
        assert "lines left out by" in " ".join(text.split()), format
    remember(folder, Choices())
    assert "sell it" in prepare(desk, "markdown", folder).text
    assert "vendor" in prepare(desk, "markdown", folder).text
    desk.close()


def test_a_drop_that_is_given_goes_before_what_the_session_keeps(tmp_path: Path) -> None:
    """An explicit list, also an empty one, is taken instead of the remembered one; hidden words are hidden besides."""
    desk, folder = _noted(tmp_path)
    remember(folder, Choices(("vendor",), ("The plan of lihua is to sell it.",)))
    text = prepare(desk, "markdown", folder, drop=(), hide=("plan",)).text
    assert "sell it" in text
    assert "vendor" not in text
    assert "plan" not in text
    desk.close()


def test_nothing_leaves_while_the_choices_cannot_be_read(tmp_path: Path) -> None:
    """A damaged file of choices stops every ticket; nothing is written."""
    desk, folder = _noted(tmp_path)
    (folder / CHOICES_FILE).write_text("{")
    before = _files(folder)
    with pytest.raises(SessionError, match=CHOICES_FILE):
        write_ticket(desk, "markdown", None, folder)
    assert _files(folder) == before
    desk.close()


def test_a_layout_that_brings_a_dropped_text_back_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look also looks for what was dropped; the message names the line and not the text."""
    desk, folder = _noted(tmp_path)
    leak = Renderer(".md", lambda _: b"first\nthe plan\\_of\nthe house\n")
    monkeypatch.setattr("runbook.ticket.export.renderer", lambda _: leak)
    with pytest.raises(RedactionError, match=r"line 2 .*21 characters") as raised:
        prepare(desk, "markdown", folder, drop=("the plan_of the house",))
    assert "house" not in str(raised.value)
    assert raised.value.line == "the plan_of the house"
    desk.close()


def test_what_is_written_is_the_draft_that_was_looked_at(tmp_path: Path) -> None:
    """A note that comes after the draft was made is not in the ticket of that draft."""
    desk, folder = _noted(tmp_path)
    draft = draft_of(desk, folder)
    desk.append(ev.Noted("nobody looked at this", "lihua"))
    assert "nobody looked" not in finished(draft, "markdown", folder).text
    assert "nobody looked" in prepare(desk, "markdown", folder).text
    assert not any(name.startswith("ticket") for name in _files(folder))
    desk.close()


def test_what_goes_along_is_written_beside_the_ticket(tmp_path: Path) -> None:
    """An attachment has the ticket's name before its own; an existing one is not overwritten unless asked."""
    leaving = Outgoing("t", "markdown", ".md", b"body", (Attachment("whole.json", "application/json", b"{}"),))
    paths = put(leaving, str(tmp_path / "ticket-1.md"))
    assert [path.name for path in paths] == ["ticket-1.md", "ticket-1.md-whole.json"]
    assert [path.read_bytes() for path in paths] == [b"body", b"{}"]
    with pytest.raises(UsageError, match="exists already"):
        put(leaving, str(tmp_path / "ticket-1.md"))

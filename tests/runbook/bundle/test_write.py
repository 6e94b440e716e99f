"""What leaves in a bundle: nothing private, the same everywhere, and always something that opens."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import stat
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runbook.bundle import excerpts, write
from runbook.bundle.archive import unpack
from runbook.bundle.excerpts import Wanted, collect
from runbook.bundle.form import CATALOG, JOURNAL, MANIFEST, Excerpt
from runbook.bundle.read import open_bundle, read_bundle
from runbook.bundle.redaction import Redaction, leave_out
from runbook.bundle.write import prepare_bundle, write_bundle
from runbook.errors import RedactionError, SessionError, UsageError
from runbook.finding import Verdict, cite, found
from runbook.flow.load import flow_hash
from runbook.flow.model import Node
from runbook.runner import Runner
from runbook.session import events as ev
from runbook.session.desk import Desk
from runbook.session.opening import new_session
from runbook.text import Text
from runbook.ticket.choices import Choices, remember
from runbook.ticket.export import write_ticket
from runbook.walk import By
from runbook.window import FILES
from tests.runbook.bundle.cooking import catalog, items, reread
from tests.runbook.tui.kitchen import both

TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
PRIVATE = ("lihua", "wangfang", "gpu-node-17", "10.12.0.7", TOKEN, "corp.example", "MIIEpAIBAAKCAQEA")
ROOT = "/home/lihua/grpo"
LOG = f"""\
ssh lihua@gpu-node-17.corp.example
export HF_TOKEN={TOKEN}
[rank0] connecting to 10.12.0.7:6379
-----BEGIN RSA PRIVATE KEY-----
MIIEpAIBAAKCAQEA7bq0Zx2m3n4o5p6q7r8s9t0uAvBwCxDyEzF1G2H3I4J5K6L7
-----END RSA PRIVATE KEY-----
oven: OFF says wangfang on gpu-node-17 with {TOKEN}
saved by lihua to /home/lihua/grpo/out
"""


def secret_session(folder: Path) -> Desk:
    """Return an open session over a log in which much is private; the caller closes it."""
    home = folder / "home" / "lihua" / "grpo"
    home.mkdir(parents=True)
    path = str(home / "lihua@gpu-node-17.log")
    Path(path).write_text(LOG)
    desk = new_session(catalog(), str(folder / "sessions"))
    desk.begin(str(home))
    desk.append(items(("log", path)))
    line = LOG.splitlines()[6]
    offset = LOG.index("oven: OFF")
    finding = found(
        Verdict.PROBLEM, "cold", f"wangfang of {ROOT} switched it off.", "烤箱已关闭。",
        citations=(cite(path, line, line=7, offset=offset),),
    )  # fmt: skip
    desk.append(ev.Found(msgspec.structs.replace(finding, probe="kitchen.oven")))
    desk.append(ev.Noted("ask lihua, key in the log", "wangfang", "bread", "oven-hot"))
    desk.append(ev.Answered("bread", "oven-hot", "cold", By.PERSON, "wangfang", ("kitchen.oven",)))
    return desk


def everything(content: bytes) -> str:
    """Return all that a bundle says: its names and its members, with what JSON escapes undone."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        texts = [file.read(name).decode() for name in file.namelist()]
    return "\n".join(
        (*file.namelist(), *texts, *(re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), t) for t in texts))
    )


def test_nothing_private_is_in_it(tmp_path: Path) -> None:
    """Names, hosts, addresses, tokens and keys stand in no member and no name; ids and flows are as they were."""
    desk = secret_session(tmp_path)
    text = everything(prepare_bundle(desk, desk.folder).body)
    desk.close()
    for private in (*PRIVATE, socket.gethostname()):
        assert private not in text
    assert "user-1" in text
    assert "secret-1" in text
    assert '"kitchen.oven"' in text


def test_pseudonyms_agree_in_journal_excerpts_and_tickets(tmp_path: Path) -> None:
    """One person has one name in the bundle, in its ticket, in a later ticket, and the citation opens its excerpt."""
    desk = secret_session(tmp_path)
    (tmp_path / "b.zip").write_bytes(prepare_bundle(desk, desk.folder).body)
    later = write_ticket(desk, "json", str(tmp_path / "later.json"), desk.folder)
    assert later is not None
    bundle = read_bundle(str(tmp_path / "b.zip"))
    opened = open_bundle(bundle)
    finding = opened.state.findings_of()["kitchen.oven"]
    (cited,) = finding.citations
    window = bundle.excerpts.open(cited.path, cited)
    assert window.at == 6
    line = window.lines[6].raw.decode()
    assert line == cited.excerpt
    person, host = re.findall(r"says (user-\d+) on (host-\d+) with", line)[0]
    assert opened.state.notes[0].who == person
    assert opened.state.walk("bread").steps[0].who == person
    assert finding.summary.en.startswith(f"{person} of ")
    ticket = unpack(str(tmp_path / "b.zip"))["ticket.txt"].decode()
    assert line[:60] in ticket or f"says {person} on {host}" in ticket
    assert f"says {person} on {host}" in later.read_text()
    assert [item.path for item in opened.state.items] == [cited.path]
    assert cited.path.startswith(opened.state.root)
    desk.close()
    opened.close()


def test_places_stay_true_where_text_was_hidden(tmp_path: Path) -> None:
    """Offsets, sizes and numbers of the lines are those of the file as it was, whatever the pseudonyms' lengths."""
    desk = secret_session(tmp_path)
    (tmp_path / "b.zip").write_bytes(prepare_bundle(desk, desk.folder).body)
    bundle = read_bundle(str(tmp_path / "b.zip"))
    (path,) = [path for path in bundle.excerpts.by_path if path.endswith(".log")]
    window = bundle.excerpts.open(path)
    expected, offset = [], 0
    for number, line in enumerate(LOG.splitlines(keepends=True), 1):
        expected.append((offset, len(line), number))
        offset += len(line)
    assert [(line.offset, line.size, line.number) for line in window.lines] == expected
    desk.close()


def test_the_same_session_gives_the_same_bytes(session: Path) -> None:
    """But for the time of writing, also when the first export left a key behind."""
    desk = reread(session)
    first, second = (prepare_bundle(desk, session, now=1.0).body for _ in range(2))
    third = prepare_bundle(desk, session, now=2.0).body
    desk.close()
    assert first == second
    assert first != third
    members, later = (zipfile.ZipFile(io.BytesIO(one)) for one in (first, third))
    assert [name for name in members.namelist() if members.read(name) != later.read(name)] == [MANIFEST]
    changed = {
        key
        for key, value in json.loads(members.read(MANIFEST)).items()
        if json.loads(later.read(MANIFEST))[key] != value
    }
    assert changed == {"written"}


def test_a_word_that_was_chosen_is_hidden_everywhere(session: Path) -> None:
    """--hide reaches excerpts, notes and tickets."""
    desk = reread(session)
    text = everything(prepare_bundle(desk, session, hide=("loaf", "yeast is fresh")).body)
    desk.close()
    assert "loaf 7" not in text
    assert "hidden-1" in text
    assert "yeast is fresh" not in text


def test_what_was_chosen_in_the_session_holds(session: Path) -> None:
    """Words hidden and texts dropped in the preview of the ticket are kept out of the bundle too."""
    line = "[rank3] 03:01:00 oven: OFF"
    remember(session, Choices().hiding("yeast is fresh").dropping({line}))
    desk = reread(session)
    text = everything(prepare_bundle(desk, session).body)
    desk.close()
    assert "yeast is fresh" not in text
    assert "03:01:00 oven" not in text


def test_a_dropped_text_is_gone_from_every_member(session: Path, tmp_path: Path) -> None:
    """The line that a person left out of the ticket is in no event, no excerpt and no ticket; the rest stays."""
    desk = reread(session)
    content = prepare_bundle(desk, session, drop=("[rank3] 03:01:00 oven: OFF",)).body
    (tmp_path / "b.zip").write_bytes(content)
    desk.close()
    assert "03:01:00 oven" not in everything(content)
    bundle = read_bundle(str(tmp_path / "b.zip"))
    assert bundle.manifest.dropped == 1
    window = bundle.excerpts.open("again/kitchen.log")
    assert window.lines[59].raw.startswith(b"[rank4] 03:00:00 loaf 60")
    assert b"oven" not in window.lines[60].raw


def test_what_is_left_is_refused_by_member_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the redaction misses something in an excerpt, nothing is written, and the place is named, not the value."""
    desk = secret_session(tmp_path)

    def leaks(*given: Any, **options: Any) -> Redaction:
        redacted = leave_out(*given, **options)
        (one, *rest) = redacted.excerpts
        leak = msgspec.structs.replace(one.lines[2], text=f"again {TOKEN}")
        lines = (*one.lines[:2], leak, *one.lines[3:])
        return redacted._replace(excerpts=(msgspec.structs.replace(one, lines=lines), *rest))

    monkeypatch.setattr(write, "leave_out", leaks)
    with pytest.raises(RedactionError) as raised:
        write_bundle(desk, str(tmp_path / "b.zip"), desk.folder)
    desk.close()
    assert re.search(r"excerpts/001-\S+\.jsonl, line 4 still holds a", raised.value.message)
    assert TOKEN not in str(raised.value)
    assert raised.value.word == TOKEN
    assert not (tmp_path / "b.zip").exists()


def test_flows_of_ones_own_are_looked_at_too(session: Path) -> None:
    """A flow that no installed package brings, with an address in it, is not let out."""
    own = catalog()
    bread = own.loaded["bread"]
    node = Node(clear=both("Ask at 10.12.0.7 port 22."))
    flow = msgspec.structs.replace(bread.flow, nodes={**bread.flow.nodes, "all-well": node})
    loaded = {**own.loaded, "bread": bread._replace(flow=flow, hash=flow_hash(flow))}
    desk = Desk(replace(own, loaded=loaded), session_id=session.name)
    with pytest.raises(RedactionError, match=r"catalog\.json, line \d+ still holds an address"):
        prepare_bundle(desk, session)
    desk.close()


def test_it_appears_whole_private_and_never_over_another(session: Path) -> None:
    """Mode 0600, no draft left, an existing file refused, and nothing inside the run unless asked."""
    desk = reread(session)
    path = write_bundle(desk, None, session)
    assert path == session / "ticket-1.zip"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name for p in session.iterdir() if "draft" in p.name) == []
    with pytest.raises(UsageError, match="exists already"):
        write_bundle(desk, str(path), session)
    with pytest.raises(UsageError, match="inside the run"):
        write_bundle(desk, "run/b.zip", session)
    inside = write_bundle(desk, "run/b.zip", session, into_run=True)
    assert inside is not None
    assert inside.exists()
    desk.close()


def test_a_session_without_a_journal_has_no_bundle(tmp_path: Path) -> None:
    """A triage in memory, or a bundle that was opened, is no session: the reason is told."""
    desk = Desk(catalog())
    with pytest.raises(SessionError, match=r"journal\.jsonl"):
        prepare_bundle(desk, tmp_path)
    desk.close()


@pytest.mark.parametrize("gone", ["missing", "folder", "denied", "pipe"])
def test_files_that_changed_meanwhile_cost_their_excerpt_only(session: Path, tmp_path: Path, gone: str) -> None:
    """A cited file that is gone, is a folder or a pipe now is in the bundle as that; the rest is whole."""
    log = Path("again/kitchen.log")
    log.unlink()
    if gone == "folder":
        log.mkdir()
    elif gone == "pipe":
        os.mkfifo(log)
    elif gone == "denied":
        log.symlink_to(log.absolute())
    desk = reread(session)
    (tmp_path / "b.zip").write_bytes(prepare_bundle(desk, session).body)
    bundle = read_bundle(str(tmp_path / "b.zip"))
    (cited,) = desk.state.findings_of("run-2")["kitchen.oven"].citations
    window = bundle.excerpts.open("again/kitchen.log", cited)
    assert window.kind == ("folder" if gone == "folder" else "missing")
    assert (window.why != "") == (window.kind == "missing")
    assert bundle.excerpts.open("run/scale.txt").lines[0].raw == b"scale 512 g"
    assert bundle.excerpts.open("changed.sh").lines == FILES.open("changed.sh").lines
    desk.close()


def hanging(files: Sequence[Wanted], room: int) -> list[Excerpt]:
    """Stand in for a disk that hangs on one file."""
    if any(one.path == "again/kitchen.log" for one in files):
        threading.Event().wait()
    return collect(files, room)


def test_a_disk_that_hangs_costs_one_excerpt_only(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one file never answers, its lines are absent and named in the manifest; those of all others are there."""
    for name, value in (("collect", hanging), ("DEADLINE", 2.0), ("ONE_DEADLINE", 6.0)):
        monkeypatch.setattr(write, name, value)
    desk = reread(session)
    (tmp_path / "b.zip").write_bytes(prepare_bundle(desk, session).body)
    desk.close()
    bundle = read_bundle(str(tmp_path / "b.zip"))
    assert bundle.manifest.left_out == ("again/kitchen.log",)
    assert bundle.excerpts.open("again/kitchen.log").kind == "absent"
    assert bundle.excerpts.open("run/scale.txt").lines[0].raw == b"scale 512 g"


def never(files: Sequence[Wanted], room: int) -> list[Excerpt]:
    """Stand in for a disk that answers nothing any more."""
    threading.Event().wait()
    return collect(files, room)


def test_a_disk_that_hangs_for_all_files_is_given_up_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred files of a hung disk do not cost a deadline each: once the time is over none is asked for."""
    asked: list[tuple[int, float]] = []
    answer = write._answer

    def counted(runner: Runner, files: Sequence[Wanted], room: int, deadline: float) -> object:
        asked.append((len(files), deadline))
        return answer(runner, files, room, deadline)

    for name, value in (("collect", never), ("_answer", counted)):
        monkeypatch.setattr(write, name, value)
    for name, seconds in (("DEADLINE", 0.5), ("ONE_DEADLINE", 0.3), ("AGAIN_DEADLINE", 0.5)):
        monkeypatch.setattr(write, name, seconds)
    taken = write._collected([Wanted(f"run/{number}.log") for number in range(300)])
    assert [one.path for one in taken] == [f"run/{number}.log" for number in range(300)]
    assert {(one.kind, one.size, one.lines) for one in taken} == {("text", -1, ())}
    assert asked[0] == (300, 0.5)
    assert 1 <= len(asked[1:]) <= 3, "each that was asked for took 0.3 s of 0.5 s, or what was left"
    assert all(0 < deadline <= 0.3 for _, deadline in asked[1:])


def test_a_slow_file_ends_before_its_deadline() -> None:
    """What a worker has found when it looks up no more is taken before the file is given up."""
    assert excerpts.SECONDS < write.ONE_DEADLINE < write.DEADLINE


def test_events_of_attached_runs_and_copies_are_redacted_too(tmp_path: Path) -> None:
    """Paths, diffs, commands and remarks of experiments hold no name; ids of flow, node and run stay."""
    desk = secret_session(tmp_path)
    told = (Text(f"not checked, ask lihua with {TOKEN}", "未核对"),)
    desk.append(
        ev.CopyChanged(
            "bread",
            "other-flour",
            f"{ROOT}/a.sh",
            "",
            f"+ export HF_TOKEN={TOKEN}\n",
            told,
            told,
            f"cd {ROOT} && sh a.sh",
        )
    )
    desk.append(ev.RunAttached("bread", "other-flour", "run-2", f"{ROOT}/again", (), told))
    (tmp_path / "b.zip").write_bytes(prepare_bundle(desk, desk.folder).body)
    opened = open_bundle(read_bundle(str(tmp_path / "b.zip")))
    copy = opened.state.copies["bread", "other-flour"]
    assert copy.of == "/home/user-1/grpo/a.sh"
    assert copy.command == "cd /home/user-1/grpo && sh a.sh"
    assert copy.diff == "+ export HF_TOKEN=secret-1\n"
    assert opened.state.runs == {"run-2": "/home/user-1/grpo/again"}
    assert json.loads(unpack(str(tmp_path / "b.zip"))[CATALOG])["flows"][0]["hash"] == catalog().hashes["bread"]
    assert TOKEN.encode() not in unpack(str(tmp_path / "b.zip"))[JOURNAL]
    desk.close()
    opened.close()

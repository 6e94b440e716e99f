"""Tests of `send` and `outbox` as a person calls them, in processes of their own, against a real Roundup."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runbook import small
from tests.runbook.cli.world import World
from tests.runbook.trackers.site import PASSWORD, Site, roundup_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve one tracker for all tests of this file."""
    with roundup_site(tmp_path_factory.mktemp("roundup")) as found:
        yield found


@pytest.fixture(autouse=True)
def _clean_line(site: Site) -> None:
    site.relay.lose.clear()
    site.relay.hold = ""
    site.relay.held.clear()


@pytest.fixture(scope="module")
def _kept(_site: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Keep a session over a small run, of which every test gets a copy."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "site").symlink_to(_site)
    made = World(folder)
    assert made("run", "small", made.log(small.GARBLED), stdin="q\n").returncode in (0, 1, 3)
    return made


@pytest.fixture
def session(_kept: World, world: World) -> str:
    """Return the id of a session that is kept in the world of the test."""
    shutil.copytree(_kept.folder / "state", world.folder / "state")
    (journal,) = (world.folder / "state" / "slime-runbook" / "sessions").glob("*/journal.jsonl")
    return journal.parent.name


def outbox(world: World) -> Path:
    """Return the folder of the outbox."""
    return world.folder / "state" / "slime-runbook" / "outbox"


def entries(world: World) -> list[str]:
    """Return the ids of the entries."""
    return sorted(path.name for path in outbox(world).iterdir())


def is_comment(world: World, name: str) -> bool:
    """Return whether an entry is a comment on a ticket that is there."""
    return "#" in json.loads((outbox(world) / name / "entry.json").read_text())["content"]["to"]


def wait_until_held(site: Site, sender: subprocess.Popen[bytes]) -> None:
    """Wait until the relay holds a request of a sender back; fail when the sender ends before."""
    while not site.relay.held.wait(0.05):
        assert sender.poll() is None, "the sender ended before it was held"


def test_without_yes_nothing_is_sent(world: World, session: str, site: Site) -> None:
    """A dry run says where to, as whom, what and what was hidden; it opens no connection and writes no entry."""
    seen = list(site.relay.seen)
    done = world("send", session, "--to", site.address, "--attach", "html", **site.environment)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "Nothing was sent", f"a new ticket in {site.url} (Roundup)", "ROUNDUP_LOGIN (set), ROUNDUP_PASSWORD (set)",
        "The checkpoint was not loaded", "ticket-html.html (text/html", "load: not loaded", "\nslime-runbook ",
    ):  # fmt: skip
        assert words in done.stdout
    assert PASSWORD not in done.stdout
    assert site.relay.seen == seen
    assert not outbox(world).exists()
    unset = world("send", session, "--to", f"{site.address}#3", "--lang", "zh")
    assert "ROUNDUP_LOGIN（未设置" in unset.stdout
    assert "尚未发送" in unset.stdout


def test_a_dry_run_loads_no_client_library(world: World, session: str) -> None:
    """Where no library is installed the dry run works, and sending names what to install; nothing is kept."""
    broken = world.folder / "broken"
    broken.mkdir()
    for name in ("github", "gitlab", "jira", "keyring"):
        (broken / f"{name}.py").write_text("raise ImportError('not here')\n")
    path = f"{broken}:{world.environment['PYTHONPATH']}"
    for address, variables in (
        ("github:o/r", ("GITHUB_TOKEN",)),
        ("gitlab:o/r", ("GITLAB_TOKEN",)),
        ("jira+https://h.invalid/OPS", ("JIRA_TOKEN",)),
    ):
        assert world("send", session, "--to", address, PYTHONPATH=path).returncode == 0
        done = world("send", session, "--to", address, "--yes", PYTHONPATH=path, **dict.fromkeys(variables, "planted"))
        assert (done.returncode, done.stdout) == (2, "")
        assert "slime-runbook[trackers]" in done.stderr
    assert not outbox(world).exists()


def test_a_session_is_posted(world: World, session: str, site: Site) -> None:
    """Stdout is the address of the ticket and no more; what stands there is the redacted ticket with its file."""
    done = world(
        "send", session, "--to", site.address, "--yes", "--attach", "html", "--title", "Bad load of lihua-7 again",
        "--hide", "lihua-7", "--hide", "not loaded", **site.environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    url = done.stdout.strip()
    issue = site.issue(url.rpartition("issue")[2])
    text = site.text(issue["messages"][0]["id"])
    assert re.fullmatch(r"Bad load of hidden-\d again", issue["title"])
    assert "lihua-7" not in text
    assert "not loaded" not in text
    page = site.content(issue["files"][0]["id"])
    assert page.startswith(b"<!DOCTYPE html>") or page.lower().startswith(b"<!doctype html>")
    assert b"lihua-7" not in page
    listed = world("outbox", "list").stdout
    assert "posted" in listed
    assert url in listed


def test_a_run_is_triaged_and_posted(world: World, site: Site) -> None:
    """Of a run, triage is done in a new session, which records where its ticket went."""
    run = world.log(small.GARBLED)
    done = world("send", run, "--to", site.address, "--yes", **site.environment)
    assert done.returncode == 0, done.stderr
    session = world("sessions", "list").stdout.split()[0]
    journal = (world.folder / "state" / "slime-runbook" / "sessions" / session / "journal.jsonl").read_text()
    assert done.stdout.strip() in journal
    assert f"session {session}" in done.stderr


def test_a_comment_is_posted(world: World, session: str, site: Site) -> None:
    """`--comment-on N` and `#N` add to a ticket that is there; both at once must mean the same one."""
    item = (
        world("send", session, "--to", site.address, "--yes", **site.environment).stdout.strip().rpartition("issue")[2]
    )
    for words in (("--to", site.address, "--comment-on", item), ("--to", f"{site.address}#{item}")):
        assert "/msg" in world("send", session, *words, "--yes", **site.environment).stdout
    assert len(site.issue(item)["messages"]) == 3
    clash = world("send", session, "--to", f"{site.address}#{item}", "--comment-on", "9999")
    assert (clash.returncode, clash.stdout) == (2, "")
    assert "two tickets" in clash.stderr


def test_without_a_route_it_waits_in_the_outbox(world: World, session: str, site: Site) -> None:
    """Exit code 3 and words that say where it waits; later `outbox send` posts it, once; then it can be dropped."""
    before = site.count("issue")
    site.relay.stop()
    try:
        done = world("send", session, "--to", site.address, "--yes", **site.environment)
        still = world("outbox", "send", **site.environment)
    finally:
        site.relay.start()
    assert (done.returncode, done.stdout) == (3, "")
    (entry,) = entries(world)
    assert f"slime-runbook outbox send {entry}" in done.stderr
    assert "no route" in done.stderr
    assert (still.returncode, still.stdout) == (3, "")
    assert "waiting" in world("outbox", "list").stdout
    sent = world("outbox", "send", **site.environment)
    assert sent.returncode == 0, sent.stderr
    assert sent.stdout.startswith(f"{entry}  posted  {site.url}/issue")
    assert world("outbox", "send", **site.environment).stdout == ""
    assert world("outbox", "send", entry, **site.environment).stdout == sent.stdout
    assert site.count("issue") == before + 1
    assert world("outbox", "drop").returncode == 0
    assert world("outbox", "list").stdout == ""


def test_a_killed_sender_is_resumed(world: World, session: str, site: Site) -> None:
    """Kill -9 between the issue and its file: the next sender adds the file to the same issue, and nothing else."""
    before = site.counts()
    site.relay.hold = "POST /tracker/rest/data/file"
    command = world.command("send", session, "--to", site.address, "--yes", "--attach", "html")
    with subprocess.Popen(
        command, env={**world.environment, **site.environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as sender:
        wait_until_held(site, sender)
        os.kill(sender.pid, signal.SIGKILL)
    assert [now - then for now, then in zip(site.counts(), before, strict=True)] == [1, 1, 0]
    site.relay.hold = ""
    listed = world("outbox", "list").stdout
    assert "1/2" in listed
    sent = world("outbox", "send", **site.environment)
    assert sent.returncode == 0, sent.stderr
    assert [now - then for now, then in zip(site.counts(), before, strict=True)] == [1, 1, 1]
    assert len(site.issue(sent.stdout.strip().rpartition("issue")[2])["files"]) == 1


def test_a_sender_killed_in_the_first_post_posts_once(world: World, session: str, site: Site) -> None:
    """Kill -9 before the answer to the first post: what arrived is found and finished."""
    before = site.counts()
    site.relay.hold = "POST /tracker/rest/data/issue"
    command = world.command("send", session, "--to", site.address, "--yes")
    with subprocess.Popen(
        command, env={**world.environment, **site.environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as sender:
        wait_until_held(site, sender)
        os.kill(sender.pid, signal.SIGKILL)
    site.relay.hold = ""
    assert world("outbox", "send", **site.environment).returncode == 0
    assert [now - then for now, then in zip(site.counts(), before, strict=True)] == [1, 1, 0]


def test_one_session_is_one_ticket(world: World, session: str, site: Site) -> None:
    """A refused entry is taken over by the next send; then another ticket has to be asked for, a comment has not."""
    before = site.counts()
    to = ("send", session, "--to", site.address)
    bad = world(*to, "--yes", **{**site.environment, "ROUNDUP_PASSWORD": "wrong"})
    assert bad.returncode == 2
    (entry,) = entries(world)
    done = world(*to, "--yes", "--title", "The second title", **site.environment)
    url = done.stdout.strip()
    assert done.returncode == 0, done.stderr
    assert entries(world) == [entry]
    assert site.issue(url.rpartition("issue")[2])["title"] == "The second title"
    assert (world("outbox", "send", **site.environment).stdout, world("outbox", "drop").returncode) == ("", 0)
    for words in ((), ("--yes",)):
        second = world(*to, *words, **site.environment)
        assert (second.returncode, second.stdout) == (2, "")
        assert url in second.stderr
        assert "--again" in second.stderr
        assert f"#{url.rpartition('issue')[2]}" in second.stderr
    assert url in world("sessions", "show", session).stdout
    assert site.counts()[0] == before[0] + 1
    assert world(*to, "--comment-on", url.rpartition("issue")[2], "--yes", **site.environment).returncode == 0
    assert world(*to, "--yes", "--again", **site.environment).returncode == 0
    assert site.counts()[0] == before[0] + 2


def test_every_entry_says_what_became_of_it(world: World, session: str, site: Site) -> None:
    """Of several entries each has one line with its id, posted or why not; one without a login makes it 3."""
    site.relay.stop()
    try:
        for to in (site.address, f"{site.address}#99999"):
            assert world("send", session, "--to", to, "--yes", **site.environment).returncode == 3
    finally:
        site.relay.start()
    new, comment = sorted(entries(world), key=lambda name: is_comment(world, name))
    unset = world("outbox", "send", PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    assert (unset.returncode, unset.stdout) == (3, "")
    for id in (new, comment):
        assert [line.count("ROUNDUP_LOGIN is not set") for line in unset.stderr.splitlines() if id in line] == [1]
    sent = world("outbox", "send", **site.environment)
    assert sent.returncode == 3
    assert sent.stdout.startswith(f"{new}  posted  {site.url}/issue")
    assert [line for line in sent.stderr.splitlines() if f"{comment}  not posted" in line]


def test_damaged_entries_keep_no_other_back(world: World, session: str, site: Site) -> None:
    """A damaged entry is told with exit code 2, and the sound one beside it is sent."""
    site.relay.stop()
    try:
        for to in (site.address, f"{site.address}#1"):
            assert world("send", session, "--to", to, "--yes", **site.environment).returncode == 3
    finally:
        site.relay.start()
    good, bad = sorted(entries(world), key=lambda name: is_comment(world, name))
    (outbox(world) / bad / "entry.json").write_bytes(b'{"id": "\x1b[2J')
    sent = world("outbox", "send", **site.environment)
    assert sent.returncode == 2
    assert sent.stdout.startswith(f"{good}  posted  {site.url}/issue")
    assert bad in sent.stderr
    assert "\x1b" not in sent.stderr
    listed = world("outbox", "list")
    assert listed.returncode == 2
    assert [line.split()[1] for line in listed.stdout.splitlines() if line.startswith(bad)] == ["DAMAGED"]
    assert any(line.startswith(good) and "posted" in line for line in listed.stdout.splitlines())
    assert world("outbox", "drop", bad, good).returncode == 0
    assert entries(world) == []


def test_the_token_is_nowhere(world: World, session: str, site: Site) -> None:
    """After posts, refusals and a bad line, no file under the home folder and no output holds the password."""
    wrong, again = "wrong-" + PASSWORD, ("--yes", "--again")
    site.relay.lose.append("POST /tracker/rest/data/issue")
    told = [
        world("send", session, "--to", site.address, "--yes", "--attach", "html", **site.environment),
        world("send", session, "--to", f"{site.address}#99999", "--yes", **site.environment),
        world("send", session, "--to", site.address, *again, **{**site.environment, "ROUNDUP_PASSWORD": wrong}),
        world("send", session, "--to", site.address, *again, **{**site.environment, "ROUNDUP_PASSWORD": f"a\n{wrong}"}),
        world(
            "send", session, "--to", site.address.replace("://", f"://admin:{PASSWORD}@"), "--yes", **site.environment
        ),
        world("outbox", "list"),
        world("outbox", "send", **site.environment),
    ]
    assert [done.returncode for done in told] == [0, 2, 2, 2, 2, 0, 3]
    assert "401" in told[2].stderr
    for done in told:
        assert PASSWORD not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    files = [path for path in world.folder.rglob("*") if path.is_file() and "site" not in path.parts]
    assert any(path.name == "entry.json" for path in files)
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--to", "github"), "neither"),
        (("--to", "github:a/b#x"), "#12"),
        (("--to", "nowhere:a/b"), "no kind of tracker 'nowhere'"),
        (("--to", "jira:OPS"), "no server"),
        (("--to", "gitlab+http://gitlab.example.com:a/b"), "http://"),
        (("--to", "github:a/b", "--comment-on", "x y"), "blank"),
        (("--to", "github:a/b", "--format", "html"), "GitHub does not show html"),
        (("--to", "github:a/b#1", "--label", "x"), "no labels"),
        (("--to", "github:a/b", "--label", "bob@corp.example.com"), "private"),
        (("--to", "github:a/b#1", "--title", "x"), "no title"),
        (("--to", "github:a/b", "--yes"), "GITHUB_TOKEN"),
        ((), "--to"),
    ],
)  # fmt: skip
def test_wrong_usage_is_told(world: World, session: str, words: tuple[str, ...], told: str) -> None:
    """What cannot be sent like this is told by the part that is wrong, with exit code 2, and nothing is kept."""
    done = world("send", session, *words, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not outbox(world).exists()


def test_a_session_that_is_not_there_is_told(world: World) -> None:
    """What is neither a session nor a path is told, and so is an entry that is not there."""
    for words in (("send", "nothing", "--to", "github:a/b"), ("outbox", "send", "nothing"), ("outbox", "drop", "x")):
        done = world(*words)
        assert (done.returncode, done.stdout) == (2, "")


THIRD = """
from runbook.trackers.model import Attaches, Kind, Posted

class Wall:
    def __init__(self, address, secrets):
        self.place = address.place
    def create(self, title, body, labels, mark):
        open(self.place, "w").write(body)
        return Posted("1", "https://wall.example/1")

TRACKER = Kind("wall", "Wall", "wall:FILE", ("text",), Attaches.NEVER, 0, 0, False, "", lambda a: a, lambda a: (), Wall)
"""


def test_a_tracker_of_another_package_is_found(world: World, session: str) -> None:
    """An entry point adds a kind; one that is broken is told by name and keeps no other from working."""
    other = world.folder / "other"
    (other / "wall-1.0.dist-info").mkdir(parents=True)
    (other / "wall.py").write_text(THIRD)
    (other / "wreck.py").write_text("raise RuntimeError('\\x1b[2Jbroken')\n")
    info = other / "wall-1.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wall\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[slime_runbook.trackers]\nwall = wall\nwreck = wreck\ngithub = wreck\n")
    path = f"{other}:{world.environment['PYTHONPATH']}"
    done = world("send", session, "--to", "wall:wall.txt", "--yes", PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "https://wall.example/1\n"), done.stderr
    assert "load: not loaded" in (world.folder / "wall.txt").read_text()
    wreck = world("send", session, "--to", "wreck:x", PYTHONPATH=path)
    assert wreck.returncode == 2
    assert "'wreck'" in wreck.stderr
    assert "\x1b" not in wreck.stderr
    assert world("send", session, "--to", "github:o/r", PYTHONPATH=path).returncode == 0
    assert "wall" in world("send", session, "--to", "nowhere:x", PYTHONPATH=path).stderr


def test_hostile_evidence_does_not_reach_the_terminal(world: World) -> None:
    """What a dry run prints of a hostile log holds no control characters."""
    run = world.log(b"start\ntext: garbled\nload: not loaded\x1b[2J\x07\xe2\x80\xae\n")
    done = world("send", run, "--to", "github:o/r", "--title", "x\x1b]0;y\x07\u202ez")
    assert done.returncode == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)

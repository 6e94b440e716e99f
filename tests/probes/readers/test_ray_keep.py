"""What is kept of a cluster: private, whole, and not for ever."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers import ray_keep
from probes.readers.ray_keep import Cluster


def test_two_addresses_never_share_a_folder() -> None:
    """Addresses that differ have folders of their own below the cache, whose names tell no machine."""
    folders = {Cluster(url).folder for url in ("http://a:1/b", "http://a:1_b", "http://a:1", "http://a_1")}
    assert len(folders) == 4
    assert all(os.path.basename(os.path.dirname(folder)) == "ray" for folder in folders)
    assert "secret-head" not in Cluster("http://secret-head:8265").folder


@given(st.text(max_size=200), st.text(max_size=200))
def test_names_are_plain_and_stay_different(one: str, other: str) -> None:
    """Any text becomes a file name of plain characters, and different texts different ones."""
    first, second = ray_keep.plain(one), ray_keep.plain(other)
    for name in (first, second):
        assert len(name) < 100
        assert name.isascii()
        assert name.replace("-", "").replace("_", "").isalnum() or not name.strip("-_")
    assert (first == second) == (one == other)


def test_what_is_old_is_removed_when_something_new_comes() -> None:
    """Answers and logs older than two weeks go; younger ones and the rest of the folder stay."""
    cluster, now = Cluster("http://head:8265"), time.time()
    old = ray_keep.keep(cluster, "a.json", b"{}", now - 15 * 86400)
    young = ray_keep.keep(cluster, "a.json", b"{}", now - 86400)
    logs = [Path(cluster.folder, "jobs", name) for name in ("old", "young")]
    for log in logs:
        assert ray_keep.prepare(str(log))
    os.utime(logs[0], (now - 15 * 86400,) * 2)
    kept = ray_keep.keep(cluster, "b.json", b"[]", now)
    assert not os.path.exists(old)
    assert os.path.exists(young)
    assert Path(kept).read_bytes() == b"[]"
    assert [log.exists() for log in logs] == [False, True]


def test_only_an_answer_of_now_is_used_again() -> None:
    """An answer of ten seconds ago is used, one of the past or of the future is not."""
    cluster, now = Cluster("http://head:8265"), 1_790_000_000.0
    path = ray_keep.keep(cluster, "a.json", b"{}", now)
    assert ray_keep.fresh(cluster, "a.json", now + 5) == path
    assert ray_keep.fresh(cluster, "b.json", now + 5) == ""
    assert ray_keep.fresh(cluster, "a.json", now + 11) == ""
    assert ray_keep.fresh(cluster, "a.json", now - 1) == ""


def test_a_lock_is_held_by_one_and_does_not_stop_work(tmp_path: Path) -> None:
    """Nobody gets it while it is held; who has waited until the deadline goes on without it."""
    order: list[str] = []
    path = str(tmp_path / "turn")
    entered = threading.Event()

    def second() -> None:
        entered.set()
        with ray_keep.held(path, time.monotonic() + 30):
            order.append("second")

    with ray_keep.held(path, time.monotonic() + 30):
        waiter = threading.Thread(target=second)
        waiter.start()
        entered.wait(5)
        with ray_keep.held(path, time.monotonic()):
            order.append("late")
        order.append("first")
    waiter.join(10)
    assert order == ["late", "first", "second"]


def test_a_file_in_the_way_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cache is a file, nothing is kept, and the lock and the writing do no harm."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLIME_RUNBOOK_CACHE", str(tmp_path / "file"))
    cluster = Cluster("http://head:8265")
    assert ray_keep.keep(cluster, "a.json", b"{}", time.time()) == ""
    assert ray_keep.fresh(cluster, "a.json", time.time()) == ""
    with ray_keep.turn(cluster, time.monotonic() + 5):
        assert not ray_keep.append(os.path.join(cluster.folder, "x"), b"")

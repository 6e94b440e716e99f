"""Tests of runbook.ledger.fingerprint: the same fault has the same print in every run, another fault has another."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.finding import Citation, Finding, Verdict, cite
from runbook.flow.model import Node
from runbook.ledger.fingerprint import LENGTH, RULES, fingerprint, same
from runbook.text import EXCERPT_LIMIT, Text
from runbook.triage import Standing, Verdicted
from tests.helpers import hostile_text, is_safe

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 39.38 GiB "
    "of which 3.76 GiB is free."
)
WATCHDOG = (
    "[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=131072000, Timeout(ms)=600000) ran for 600081 milliseconds"
)
LATER = (
    "[rank13]:[E323 01:02:03.4 ProcessGroupNCCL.cpp:631] [Rank 13] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=88812, OpType=BROADCAST, NumelIn=8, Timeout(ms)=1800000) ran for 1800012 milliseconds"
)

EQUAL = {
    "Ray's prefix and colours": (
        "\x1b[36m(SGLangEngine pid=952)\x1b[0m RuntimeError: CUDA error: an illegal memory access was encountered",
        "(SGLangEngine pid=31, ip=10.150.236.219) RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ),
    "how often Ray saw it": (
        "(Actor pid=19603)  loading distributed checkpoint from /x\x1b[32m [repeated 7x across cluster] (Ray)\x1b[0m",
        "(Actor pid=4)  loading distributed checkpoint from /x",
    ),
    "rank, time, thread and counters": (
        WATCHDOG,
        LATER,
    ),
    "sizes in other units": (OOM, OOM.replace("3.91 GiB", "512.00 MiB").replace("3.76 GiB", "981.4 KiB")),
    "time and ranks of a server": (
        "[2025-11-06 01:16:21 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "[2026-08-21 10:00:00 DP0 TP13 EP0] Scheduler hit an exception: Traceback (most recent call last):",
        "[2026-08-21 10:00:00] Scheduler hit an exception: Traceback (most recent call last):",
    ),
    "the address of a service": (
        "http_utils.py:189 - Max retries (60) reached, failing... (url=http://192.0.2.2:3000/generate)",
        "http_utils.py:191 - Max retries (5) reached, failing... (url=http://gpu-a.cluster.local:30122/generate)",
    ),
    "where a checkpoint lies": (
        "[2026-11-29 18:24:35] checkpoint.py:128 - Load checkpoint (path=/data/ckpt/b-tracker-missing)",
        "[2026-11-30 08:14:35] checkpoint.py:128 - Load checkpoint (path=~/models/Qwen3-4B/iter_0000500)",
    ),
    "where a program lies": (
        '  File "/root/slime/train.py", line 116, in train',
        '  File "/opt/venv-2/lib/python3.12/site-packages/train.py", line 9, in train',
    ),
    "pointers, ids, addresses": (
        "RayTaskError: train() (pid=19388, ip=192.0.2.2, actor_id=e20f9c69f1c161346c1caa7001000000, at 0x7fa381)",
        "RayTaskError: train() (pid=7, ip=fe80::1%eth0, actor_id=aaaabbbbccccddddeeeeffff02000000, at 0x55e1)",
    ),
    "a UUID": (
        "Xid 79 on GPU-8f1e2d3c-0000-1111-2222-333344445555 fell off the bus",
        "Xid 79 on GPU-ffffeeee-dddd-cccc-bbbb-aaaa99998888 fell off the bus",
    ),
    "few hex digits": (
        "Worker ID: 5f1c Node ID: aa Worker IP address: 192.0.2.2 exit type: SYSTEM_ERROR",
        "Worker ID: ffffffffffffffff2b205804f73dae9d Node ID: 1b Worker IP address: 10.0.0.7 exit type: SYSTEM_ERROR",
    ),
    "machines": (
        "Nov 30 15:22:01 node7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "Dec  3 01:00:59 gpu-0412.dc1.example.net kernel: NVRM: Xid (PCI:0000:86:00): 79, GPU has fallen off the bus.",
    ),
    "a rank and its node": (
        "RuntimeError: Rank 3, node host-a, device 3, iteration 0: Unexpected result nan",
        "RuntimeError: Rank 120, node worker7, device 0, iteration 41: Unexpected result nan",
    ),
    "progress bars": (
        "Loading shards:  45%|████▌     | 5/11 [00:03<00:04,  1.40it/s]",
        "Loading shards:   0%|     | 0/61 [00:00<?, ?it/s]Loading shards:   2%|▏    | 1/61 [00:03<03:04,  3.07s/it]",
    ),
    "shapes": (
        "Global shape mismatch for loaded (torch.Size([151936, 2560])) and expected ((152064, 2560))",
        "Global shape mismatch for loaded (torch.Size([4096])) and expected ((8192, 1024, 3))",
    ),
    "numbers however they are written": (
        "{'train/loss': -0.25, 'train/ppo_kl': 1e-05, 'train/step': 0}",
        "{'train/loss': 12.0, 'train/ppo_kl': -3.9621503353118896, 'train/step': 1_000}",
    ),
    "the name that Ray drew": ("Job 'raysubmit_WexbsS7P8MNwyhZQ' failed", "Job 'raysubmit_aaaaBBBB1234cccc' failed"),
}
"""What may differ in a line between two runs, with lines that differ in that only; most are of real logs."""

DIFFERENT = {
    "the access and the assert": (
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: device-side assert triggered",
    ),
    "prefill and decode": ("Prefill out of memory. Try to lower it.", "Decode out of memory. Try to lower it."),
    "the collective": (WATCHDOG, WATCHDOG.replace("BROADCAST", "ALLREDUCE")),
    "the parameter": (
        "Parameter model.layers.0.mlp.gate.weight_packed not found in params_dict",
        "Parameter model.layers.0.mlp.up_proj.weight_packed not found in params_dict",
    ),
    "the program": ('  File "/x/y/train.py", line 1, in train', '  File "/x/y/rollout.py", line 1, in train'),
    "the route": ("400 for url: http://10.0.0.1:3/generate", "400 for url: http://10.0.0.1:3/weights_checker"),
    "what was missing": (
        "FileNotFoundError: No such file: '/a/b/latest_checkpointed_iteration.txt'",
        "FileNotFoundError: No such file: '/a/b/config.json'",
    ),
    "a number and none": ("{'train/loss': 0.1, 'train/ppo_kl': 0.0}", "{'train/loss': nan, 'train/ppo_kl': 0.0}"),
    "the flag": ("   --actor-num-nodes 2", "   --actor-num-gpus-per-node 2"),
}

LINES = sorted({line for lines in (*EQUAL.values(), *DIFFERENT.values()) for line in lines})


@pytest.mark.parametrize("name", EQUAL)
def test_what_differs_from_run_to_run_makes_no_difference(name: str) -> None:
    """Lines of one fault from several runs read the same, and say something."""
    first, *others = (same(line) for line in EQUAL[name])
    assert [other for other in others if other != first] == []
    assert re.search(r"[A-Za-z]{3}", first)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_tells_faults_apart_makes_a_difference(name: str) -> None:
    """Lines of two faults do not read the same, however alike they look."""
    first, second = DIFFERENT[name]
    assert same(first) != same(second)


def with_digits(line: str, digits: list[int]) -> str:
    """Return the line with other digits at the places of its digits."""
    new = iter(digits)
    return re.sub(r"\d", lambda _: str(next(new)), line)


@given(st.data(), st.one_of(st.sampled_from(LINES), hostile_text, st.text(alphabet="ab01. :-/[]x%|@#,_e", max_size=60)))
def test_other_digits_never_change_it(data: st.DataObject, line: str) -> None:
    """Whatever stands beside them: another digit in its place makes the same text."""
    line = "".join(char for char in line if not char.isdigit() or char.isascii())
    digits = data.draw(st.lists(st.integers(0, 9), min_size=len(line), max_size=len(line)))
    assert same(with_digits(line, digits)) == same(line)


numbers = st.one_of(
    st.integers(0, 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(str),
    st.integers(0, 2**64).map(hex),
    st.uuids().map(str),
    st.binary(min_size=6, max_size=28).map(bytes.hex),
    st.ip_addresses(v=4).map(str),
    st.tuples(st.integers(0, 10**6), st.sampled_from(("GiB", "MB", "kB", "bytes", "s", "ms", "h"))).map(
        lambda pair: f"{pair[0]} {pair[1]}"
    ),
)
"""What programs print of sizes, times, steps, pointers, ids and addresses."""


@given(numbers, numbers, st.integers(0, 4096), st.integers(0, 4096))
def test_numbers_ids_and_ranks_never_change_it(one: str, other: str, rank: int, another: int) -> None:
    """Any two numbers, however they are written, at the place of one; any rank before the line."""
    first = same(f"[rank{rank}]: worker failed with ({one}) while waiting on rank {rank}")
    assert first == same(f"[rank{another}]: worker failed with ({other}) while waiting on rank {another}")
    assert first == "worker failed with (#) while waiting on rank #"


@given(st.data(), st.sampled_from(LINES))
def test_another_word_always_changes_it(data: st.DataObject, line: str) -> None:
    """Any word that is left of a line counts."""
    known = [word for word in re.findall(r"[A-Za-z]{4,}", same(line)) if word in line and word not in ("path", "host")]
    word = data.draw(st.sampled_from(known))
    assert same(line.replace(word, "Qzqzq")) != same(line)


@given(st.one_of(hostile_text, st.text(max_size=600)))
def test_hostile_lines_are_safe_short_and_without_digits(line: str) -> None:
    """Whatever stands in a line, what is kept of it can be drawn, and holds no digit."""
    text = same(line)
    assert is_safe(text)
    assert len(text) <= LENGTH
    assert not re.search(r"\d", text)


def test_a_line_of_a_megabyte_costs_no_more_than_a_short_one() -> None:
    """Only what an excerpt holds is looked at."""
    line = "/a" * 300
    assert same(line * 2000) == same(line[:EXCERPT_LIMIT])


def test_where_a_long_line_was_cut_makes_no_difference() -> None:
    """An excerpt ends elsewhere in every run, since numbers are of other lengths; what counts ends before."""
    keys = [f"'rollout/{name}_mean_of_all_samples'" for name in "abcdefghijkl"]
    short = ", ".join(f"{key}: 0.1" for key in keys)
    long = ", ".join(f"{key}: -3.9621503353118896" for key in keys)
    texts = [cite("job.log", line).excerpt for line in (short, long)]
    assert all(text.endswith("…") for text in texts)
    assert same(texts[0]) == same(texts[1])


def test_every_rule_says_what_writes_it_so() -> None:
    """A rule without a reason would be guesswork."""
    assert [rule for rule in RULES if len(rule.why.split()) < 3] == []


def verdicted(*findings: Finding, cause: str = "c") -> Verdicted:
    """Return a confirmed cause."""
    return Verdicted(cause, Standing.CONFIRMED, "f", "n", Node(cause=cause), findings)


def finding(*excerpts: str, probe: str = "p.x", answer: str = "bad") -> Finding:
    """Return a finding that cites these lines."""
    citations = tuple(Citation("job.log", number, 0, excerpt) for number, excerpt in enumerate(excerpts, 1))
    return Finding(Verdict.PROBLEM, answer, Text("x", "x"), citations, probe=probe)


def test_it_is_of_cause_probe_and_first_line_with_a_word() -> None:
    """The first line that says something counts; another cause or probe makes another print, a later line does not."""
    made = fingerprint(verdicted(finding("0", "step 7: boom", "later 1")))
    assert made is not None
    assert (made.cause, made.probe, made.text) == ("c", "p.x", "step #: boom")
    assert re.fullmatch(r"[0-9a-f]{16}", made.id)
    assert made == fingerprint(verdicted(finding("12", "step 9: boom", "quite another")))
    others = [
        fingerprint(verdicted(finding("step 7: boom"), cause="d")),
        fingerprint(verdicted(finding("step 7: boom", probe="p.y"))),
        fingerprint(verdicted(finding("step 7: bang"))),
    ]
    assert len({made.id, *(other.id for other in others if other is not None)}) == 4


def test_a_finding_without_lines_counts_by_its_answer() -> None:
    """What cites nothing, or only numbers, is told by the word that it answered with; what nothing proves has none."""
    made = fingerprint(verdicted(finding("12", answer="too-small")))
    assert made is not None
    assert made.text == "too-small"
    assert fingerprint(verdicted()) is None


@given(st.integers(0, 200))
def test_what_is_kept_of_a_line_never_ends_within_a_name(ahead: int) -> None:
    """Wherever the limit falls, an address is kept whole, to be hidden, or not at all."""
    line = f"{'so ' * (ahead // 3)}ann.smith@example.com failed {'again ' * 60}"
    made = fingerprint(verdicted(finding(line)))
    assert made is not None
    assert "ann" not in made.text or "ann.smith@example.com " in f"{made.text} "

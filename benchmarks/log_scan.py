"""The log engine beside ripgrep: all signatures in one pass, the index, growth, memory and the first look at the end.

Reach, on one core with the same signatures in the same run: 1.4 times `rg -c` and 4 times rg with
attribution; a second look at a log that grew by 1 % reads only that; memory below 300 MB; the first hits of the end
within a second. Every way runs in a process of its own on one core, in interleaved rounds; speeds are by processor
time, since the machine may be shared. The log is made for the run, or is the file given as argument.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from probes.readers import logindex, logscan
from probes.readers.logfiles import LogFile, expand
from probes.readers.logscan import Coverage, Signature, signature
from probes.signatures import every

ROUNDS = 3
SIZE = 1_000_000_000
NOISE = 8
"""Pieces of ordinary lines, about 4 MB each, of which the log is made."""

_MORE = (
    "Watchdog caught collective operation timeout", "Address already in use", "ncclInternalError", "No space left on",
    "ModuleNotFoundError: ", "ECC error", "Xid (PCI:", "GPU has fallen off the bus", "Connection reset by peer",
    "tokenizers parallelism", "Exited with exit code 139",
)  # fmt: skip
"""Signatures that are added to those of the probes, so that there are about sixty."""
_RARE = (
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB.",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "[2026-08-21 10:00:00] http_utils.py:184 - Error: x, retrying... (attempt 31/60, url=http://10.0.0.1:3000/generate)",
    "Traceback (most recent call last):",
    "Assertion failed: deep_gemm/impl.cuh:31, condition: (x & 0x807fffff) == 0",
    "decoder.layers.self_attention.q_layernorm.weight from model not in state dict, will skip",
    "[2026-08-21 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
)


class Cost(NamedTuple):
    """Processor seconds, wall seconds and peak resident bytes of one run in a process of its own."""

    processor: float
    wall: float
    peak: int


def make(path: Path, size: int) -> None:
    """Write a log as slime's are: 4 % metric lines, 3 % redrawn bars, SGLang's lines, a fault now and then."""
    chance = random.Random(0)
    noise = [b"".join(_line(chance).encode() + b"\n" for _ in range(10_000)) for _ in range(NOISE)]
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(chance.choice(noise))
            file.write(b"(MegatronTrainRayActor pid=19389) " + chance.choice(_RARE).encode() + b"\n")


def _line(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.04:
        many = chance.choice((10, 15, 30, 200))
        values = ", ".join(f"'train/metric_{number}': {chance.random()}" for number in range(many))
        stamp = "\x1b[36m(MegatronTrainRayActor pid=19389)\x1b[0m [2026-08-21 10:00:00] model.py:918 - "
        return f"{stamp}step {chance.randrange(9999)}: {{{values}}}"
    if kind < 0.07:
        return "\r".join(f"Update weights: {done}%|####  | {done}/115 [00:04<00:00, 24.1it/s]" for done in range(40))
    return (
        f"\x1b[36m(SGLangEngine pid=952, ip=10.0.0.{chance.randrange(32)})\x1b[0m [2026-08-21 10:00:00 TP0] "
        f"Decode batch, #running-req: {chance.randrange(256)}, #token: {chance.randrange(99999)}, "
        f"token usage: {chance.random():.2f}, "
        f"cuda graph: True, gen throughput (token/s): {chance.random() * 1000:.2f}, #queue-req: 0"
        + "."
        * chance.randrange(120)
    )


def signatures() -> tuple[Signature, ...]:
    """Return the signatures of all probes, and more up to about sixty."""
    more = _MORE[: max(60 - len(every()), 0)]
    return (*every(), *(signature(f"more-{number}", words) for number, words in enumerate(more)))


def measured(work: Callable[[], object], cache: str) -> Cost:
    """Run `work` in a forked process on one core, with its own cache folder."""
    began = time.perf_counter()
    child = os.fork()
    if not child:
        try:
            os.environ["SLIME_RUNBOOK_CACHE"] = cache
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
            work()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit("a way of reading failed")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss * 1024)


def look(file: LogFile, asked: Sequence[Signature], known: Sequence[Signature]) -> int:
    """Find all hits of `asked`, and return how many there are."""
    return sum(1 for _ in logindex.scan([file], asked, Coverage(), known=known))


def rg_command(rg: str, patterns: str, path: str, *options: str) -> list[str]:
    """Return a command of ripgrep with one thread, over all bytes of the file."""
    return [rg, "-j1", "-a", "--no-filename", *options, "-f", patterns, path]


def rg_attributed(command: Sequence[str], wanted: Sequence[Signature]) -> int:
    """Let ripgrep find the lines, and ask each of them which signatures hit; return how many hits there are.

    Only the expressions are tried of which a literal is in the line: trying all of them is seven times slower.
    """
    searches = [each.pattern.search for each in wanted]
    literals = [(literal, number) for number, each in enumerate(wanted) for literal in each.literals]
    found = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for output in process.stdout:
            number, offset, line = output.split(b":", 2)
            int(number), int(offset)
            line = line.rstrip(b"\r\n")
            for which in dict.fromkeys(which for word, which in literals if word in line):
                found += searches[which](line) is not None
    return found


def bytes_read(work: Callable[[], object]) -> int:
    """Return how many bytes this process asks the system for while it works."""

    def asked() -> int:
        return int(Path("/proc/self/io").read_text(encoding="ascii").split("rchar: ")[1].split()[0])

    before = asked()
    work()
    return asked() - before


def speeds(file: LogFile, wanted: Sequence[Signature], folder: Path) -> dict[str, float]:
    """Return the bytes a processor second of each way, over interleaved rounds."""
    literals, patterns = folder / "literals", folder / "patterns"
    literals.write_bytes(b"\n".join(sorted({each for one in wanted for each in one.literals})) + b"\n")
    plain = [each.pattern.pattern for each in wanted if not {b"(?=", b"(?!", b"(?<"} & _looks(each)]
    patterns.write_bytes(b"\n".join(plain) + b"\n")
    rg = shutil.which("rg") or str(Path(sys.executable).with_name("rg"))
    ways: dict[str, Callable[[], object]] = {
        "first look, index built, all hits": lambda: look(file, wanted, wanted),
        "first look, index built, hits of one probe": lambda: look(file, wanted[:3], wanted),
        "no index, all hits": lambda: sum(1 for _ in logscan.scan([file], wanted, Coverage())),
    }
    if os.path.exists(rg):
        count = rg_command(rg, str(literals), file.path, "-c", "-F")
        ways["rg -c, literals (yardstick)"] = lambda: subprocess.run(count, stdout=subprocess.DEVNULL, check=True)
        regex = rg_command(rg, str(patterns), file.path, "-c", "--regex-size-limit", "1G", "--dfa-size-limit", "1G")
        ways["rg -c, expressions"] = lambda: subprocess.run(regex, stdout=subprocess.DEVNULL, check=True)
        numbered = rg_command(rg, str(literals), file.path, "-n", "-b", "-F")
        ways["rg with attribution (yardstick)"] = lambda: rg_attributed(numbered, wanted)
    else:
        print("ripgrep is not here (pip install ripgrep==14.1.0): no yardstick")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for round_number in range(ROUNDS):
        for name, way in ways.items():
            if round_number and "attribution" in name:
                continue  # the slow one once: the machine is shared
            with tempfile.TemporaryDirectory(dir=folder) as cache:
                seconds[name].append(measured(way, cache).processor)
    return {name: file.size / statistics.median(took) for name, took in seconds.items()}


def _looks(each: Signature) -> set[bytes]:
    return {mark for mark in (b"(?=", b"(?!", b"(?<") if mark in each.pattern.pattern}


def index_figures(file: LogFile, wanted: Sequence[Signature], folder: Path) -> None:
    """Print what a second look costs, also after growth, and the memory of the first."""
    cache = str(folder / "cache")
    os.environ["SLIME_RUNBOOK_CACHE"] = cache
    first = measured(lambda: look(file, wanted[:3], wanted), cache)
    second = measured(lambda: look(file, wanted[:3], wanted), cache)
    print(f"{'first look, then second look':<46}{first.wall:8.2f} s  {second.wall:8.3f} s")
    kept = sum(entry.stat().st_size for entry in os.scandir(folder / "cache" / "logs"))
    print(f"{'index on disk':<46}{kept / 1e6:8.1f} MB of {file.size / 1e6:.0f} MB")
    print(f"{'peak memory of the first look (reach 300 MB)':<46}{first.peak / 1e6:8.0f} MB")
    made = [name for name in os.listdir(folder) if name == "job.log"]
    if made:
        more = file.size // 100
        with open(file.path, "r+b") as log:
            log.seek(0)
            piece = log.read(more)
            log.seek(0, os.SEEK_END)
            log.write(piece)
        grown = expand([file.path])[0][0]
        rare = tuple(each for each in wanted if each.label not in ("metric", "goes-on"))
        read = bytes_read(lambda: look(grown, rare, wanted))
        print(f"{'read after 1 % was appended':<46}{read / 1e6:8.1f} MB  ({more / 1e6:.1f} MB were appended)")
        same = list(logindex.scan([grown], wanted, Coverage(), known=wanted)) == list(
            logscan.scan([grown], wanted, Coverage())
        )
        print(f"{'hits as without an index':<46}{same!s:>8}")
    began = time.perf_counter()
    hit = next(logscan.scan_tail([file], wanted), None)
    print(
        f"{'first hit of the end (reach 1 s)':<46}{time.perf_counter() - began:8.3f} s  ({'found' if hit else 'none'})"
    )


def main() -> None:
    """Print speeds with their ratio to ripgrep's, then the figures of the index."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        given = sys.argv[-1] if os.path.isfile(sys.argv[-1]) and not sys.argv[-1].endswith(".py") else ""
        if not given:
            make(folder / "job.log", int(os.environ.get("LOG_BYTES", SIZE)))
        file = expand([given or str(folder / "job.log")])[0][0]
        wanted = signatures()
        literals = sum(len(each.literals) for each in wanted)
        print(f"{file.size / 1e6:.0f} MB, {len(wanted)} signatures with {literals} literals, {ROUNDS} rounds")
        speed = speeds(file, wanted, folder)
        bare, attributed = speed.get("rg -c, literals (yardstick)"), speed.get("rg with attribution (yardstick)")
        for name, each in speed.items():
            ratios = (
                f"  {each / bare:5.2f} x rg -c  {each / attributed:5.2f} x attributed" if bare and attributed else ""
            )
            print(f"{name:<46}{each / 1e9:8.2f} GB/s{ratios}")
        print("reach: 1.4 x rg -c, 4 x attributed")
        index_figures(file, wanted, folder)


if __name__ == "__main__":
    main()

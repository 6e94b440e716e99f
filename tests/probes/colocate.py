"""The log of a made-up colocated job, line by line as slime prints it at HEAD, that may stop anywhere in a cycle."""

from __future__ import annotations

TRAINER = "\x1b[36m(MegatronTrainRayActor pid=7)\x1b[0m "
ENGINE = "\x1b[36m(SGLangEngine pid=9)\x1b[0m "
MANAGER = "\x1b[36m(RolloutManager pid=3)\x1b[0m "
STOPS = ("generate", "wake", "data", "train-forward", "train", "sleep", "resume", "update", "onload", "generating")
"""Where a job may stop: in each phase, between the trainer's sleep and the engine's return, and at the end."""


class StoppedError(Exception):
    """The job goes no further."""


class Job:
    """Writes lines; `clock` is in seconds since ten o'clock."""

    def __init__(self, stop: tuple[int, str] | None = None) -> None:
        self.lines: list[str] = []
        self.clock = 0.0
        self.stop = stop
        self.cycle = 0

    def say(self, who: str, words: str, after: float = 0.0) -> None:
        """Print a line some seconds after the one before it."""
        self.clock += after
        minutes, second = divmod(int(self.clock), 60)
        hours, minute = divmod(minutes, 60)
        self.lines.append(f"{who}[2026-08-21 {10 + hours:02d}:{minute:02d}:{second:02d}] {words}")

    def at(self, place: str) -> None:
        """Stop here where that is asked for."""
        if self.stop == (self.cycle, place):
            raise StoppedError

    def timer(self, name: str, took: float, place: str = "") -> None:
        """Print a timer's two lines, `took` seconds apart."""
        self.say(TRAINER, f"timer.py:24 - Timer {name} start")
        self.at(place)
        self.say(TRAINER, f"timer.py:32 - Timer {name} end (elapsed: {took:.1f}s)", took)

    def memory(self, what: str, used: float, allocated: float, reserved: float, host: float = 1400.0) -> None:
        """Print a Memory-Usage line of rank 0, in GiB."""
        values = {
            "gpu": "0", "total_GB": 139.8, "free_GB": round(139.8 - used, 2), "used_GB": used,
            "allocated_GB": allocated, "reserved_GB": reserved, "host_total_GB": 2000.0, "host_available_GB": host,
        }  # fmt: skip
        self.say(TRAINER, f"memory_utils.py:49 - [Rank 0] Memory-Usage {what} model: {values}")

    def access(self, word: str, status: str = "200 OK") -> None:
        """Print the answer of an engine."""
        self.say(ENGINE, f'INFO:     192.0.2.2:33898 - "POST /{word}_memory_occupation HTTP/1.1" {status}', 1)

    def run(self, *, engine: float = 3.0, host: float = 1400.0, trainer: float = 80.0) -> None:
        """Print one cycle: engine, GiB that the engine keeps while the trainer is awake; host, GiB available."""
        self.say(MANAGER, "sglang_rollout.py:420 - First rollout sample: ['x'], label: 2, reward: 1", 10)
        self.at("generate")
        self.say(MANAGER, "sglang_rollout.py:446 - Finish rollout: ['x'], label: 2, reward: 1", 90)
        self.access("release")
        self.say(TRAINER, "timer.py:24 - Timer wake_up start")
        self.memory("before wake_up", engine + 1, 0.5, 1.0, host)
        self.at("wake")
        self.memory("after wake_up", engine + trainer + 2, trainer, trainer + 2, host)
        self.say(TRAINER, "timer.py:32 - Timer wake_up end (elapsed: 2.0s)", 2)
        self.timer("data_preprocess", 1, "data")
        self.say(TRAINER, "timer.py:32 - Timer train_wait end (elapsed: 104.0s)")
        self.say(TRAINER, "timer.py:24 - Timer train start")
        self.timer("ref_log_probs", 11, "train-forward")
        self.timer("actor_train", 30 + self.cycle % 3, "train")
        self.say(TRAINER, "timer.py:32 - Timer train end (elapsed: 42.0s)")
        self.say(TRAINER, "timer.py:24 - Timer train_wait start")
        self.say(TRAINER, "timer.py:24 - Timer sleep start")
        self.memory("before offload", engine + trainer + 10, trainer, trainer + 10, host)
        self.at("sleep")
        self.memory("after offload", engine + 1, 0.5, 1.0, host)
        self.say(TRAINER, "timer.py:32 - Timer sleep end (elapsed: 3.0s)", 3)
        self.at("resume")
        self.access("resume")
        self.timer("update_weights", 12 + self.cycle % 3, "update")
        self.at("onload")
        self.access("resume")
        self.at("generating")
        self.cycle += 1


def job(cycles: int, stop: str | None = None, **grows: float) -> Job:
    """Return a job of so many cycles that stops in the last one; grows: what each cycle adds to engine or host."""
    made = Job(None if stop is None else (cycles - 1, stop))
    made.say("", "placement_group.py:125 - Creating placement group with 8 GPUs...")
    made.say(TRAINER, "timer.py:24 - Timer train_wait start", 20)
    try:
        for cycle in range(cycles):
            base = {"engine": 3.0, "host": 1400.0, "trainer": 80.0}
            made.run(**{name: value + grows.get(name, 0.0) * cycle for name, value in base.items()})
    except StoppedError:
        pass
    return made

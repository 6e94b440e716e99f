"""The order of ray.init(), breakpoint() and other calls in a driver, and the stops in remote code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.driver_ast import Driver, read_driver
from tests.probes.scripts import write


def read(folder: Path, text: str, **others: str) -> Driver:
    """Return what a driver with this text does; others: files beside it, by name with __ for a slash."""
    for name, more in others.items():
        write(folder, name.replace("__", "/") + ".py", more)
    driver = read_driver(write(folder, "train.py", text))
    assert driver is not None
    return driver


def told(driver: Driver) -> list[tuple[str, int, str]]:
    """Return kind, line and where of each event."""
    return [(event.kind, event.line, event.where) for event in driver.events]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import ray\nray.init()\nbreakpoint()\n", [("init", 2), ("breakpoint", 3)]),
        ("from ray import init as go\ngo(address='auto')\nbreakpoint()\n", [("init", 2), ("breakpoint", 3)]),
        ("import ray as r\nr.init()\nbreakpoint()\n", [("init", 2), ("breakpoint", 3)]),
        ("def train():\n    breakpoint()\nif __name__ == '__main__':\n    train()\n", [("breakpoint", 2)]),
        ("import ray\n@ray.remote\ndef f():\n    pass\nf.remote()\nbreakpoint()\n", [("init", 5), ("breakpoint", 6)]),
        ("import ray\nray.get(x)\nbreakpoint()\n", [("init", 2), ("breakpoint", 3)]),
        ("args = parse_args()\nstart(args)\nbreakpoint()\n", [("call", 2), ("breakpoint", 3)]),
        ("def f():\n    f()\nf()\n", []),
        ("# breakpoint()\nx = 'breakpoint()'\n", []),
        ("if DEBUG:\n    breakpoint()\n", [("breakpoint", 2)]),
        ("if False:\n    breakpoint()\n", []),
        ("def f():\n    return\n    breakpoint()\nf()\n", []),
        ("import sys\nsys.exit()\nbreakpoint()\n", []),
        ("import pdb; pdb.set_trace()\n", [("console", 1)]),
        ("from pdb import set_trace as st\nst()\n", [("console", 2)]),
        ("from ray.util import pdb\npdb.set_trace()\n", [("breakpoint", 2)]),
        ("import ray\nray.util.rpdb.set_trace()\n", [("breakpoint", 2)]),
        ("class A:\n    def set_trace(self): ...\nA().set_trace()\n", [("call", 3), ("call", 3)]),
        ("try:\n    breakpoint()\nexcept ValueError:\n    pass\n", [("breakpoint", 2)]),
    ],
)
def test_the_main_flow_is_followed(tmp_path: Path, text: str, expected: list[tuple[str, int]]) -> None:
    """Functions count where they are called, unreachable code never, and harmless calls are passed over."""
    driver = read(tmp_path, text)
    main = [event for event in driver.events if event.where == "driver"]
    assert [(event.kind, event.line) for event in main] == expected
    lines = text.split("\n")
    for event in driver.events:
        assert event.text == lines[event.line - 1]
        assert text.encode()[event.offset :].startswith(event.text.encode())


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("import ray\n@ray.remote\ndef f():\n    breakpoint()\n", "worker"),
        ("import ray\n@ray.remote(num_gpus=1)\nclass A:\n    def f(self):\n        breakpoint()\n", "worker"),
        ("from ray import remote\n@remote\ndef f():\n    breakpoint()\n", "worker"),
        ("import ray\nclass A:\n    def f(self):\n        breakpoint()\nB = ray.remote(A)\n", "worker"),
        ("import ray\nclass A:\n    def f(self):\n        breakpoint()\nB = ray.remote(num_gpus=1)(A)\n", "worker"),
        ("class A(TrainRayActor):\n    def f(self):\n        breakpoint()\n", "worker"),
        ("class RolloutManager:\n    def f(self):\n        breakpoint()\n", "worker"),
        ("class A:\n    def f(self):\n        breakpoint()\n", ""),
        ("def reward(args, sample):\n    breakpoint()\n", ""),
        ("@remote_control\ndef f():\n    breakpoint()\n", ""),
    ],
)
def test_a_stop_outside_the_main_flow_has_its_place(tmp_path: Path, text: str, where: str) -> None:
    """What ray.remote or slime makes an actor or task runs in workers; of other functions nothing is known."""
    assert [(event.kind, event.where) for event in read(tmp_path, text).events if event.kind != "init"] == [
        ("breakpoint", where)
    ]


def test_a_file_beside_the_driver_is_followed_one_step(tmp_path: Path) -> None:
    """A function of an imported file runs in place, and its actors are workers; what it calls further away is open."""
    driver = read(
        tmp_path,
        "from lib.actors import start, Trainer\nfrom helper import check\nstart()\ncheck()\n",
        lib__actors=(
            "import ray\nfrom deeper import go\n\ndef start():\n    ray.init()\n\n"
            "class Trainer:\n    def train(self):\n        breakpoint()\n\nmake = ray.remote(Trainer)\n"
        ),
        helper="def check():\n    breakpoint()\n    unused()\n\ndef unused():\n    pdb_like()\n",
        deeper="def go():\n    breakpoint()\n",
    )
    assert told(driver) == [
        ("init", 5, "driver"),
        ("breakpoint", 2, "driver"),
        ("call", 6, "driver"),
        ("breakpoint", 9, "worker"),
    ]
    assert [Path(event.path).name for event in driver.events] == ["actors.py", "helper.py", "helper.py", "actors.py"]


def test_an_actor_is_found_two_imports_away(tmp_path: Path) -> None:
    """As slime's RolloutManager is, by absolute or by relative imports."""
    driver = read(
        tmp_path,
        "from lib.groups import create\ncreate()\n",
        lib__groups="from .actors import A\nfrom . import more\n\ndef create():\n    from lib.third import B\n",
        lib__actors="class A(RayActor):\n    def f(self):\n        breakpoint()\n",
        lib__more="import ray\n@ray.remote\ndef f():\n    breakpoint()\n",
        lib__third="class SGLangEngine:\n    def f(self):\n        import pdb; pdb.set_trace()\n",
    )
    assert [(event.kind, event.where, Path(event.path).name) for event in driver.events] == [
        ("breakpoint", "worker", "actors.py"),
        ("breakpoint", "worker", "more.py"),
        ("console", "worker", "third.py"),
    ]


def test_slimes_parse_args_is_not_followed(tmp_path: Path) -> None:
    """In slime's own folder parse_args lies beside the driver; what it calls does not initialise Ray."""
    driver = read(
        tmp_path,
        "from slime.utils.arguments import parse_args\nargs = parse_args()\nbreakpoint()\n",
        slime__utils__arguments="def parse_args():\n    return megatron_parse_args()\n",
    )
    assert told(driver) == [("breakpoint", 3, "driver")]


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("if args.debug:\n    breakpoint()\n", [("flag", "debug", False)]),
        ("if not args.debug_it:\n    pass\nelse:\n    breakpoint()\n", [("flag", "debug-it", False)]),
        ("def f(args):\n    if not args.debug:\n        return\n    breakpoint()\nf(1)\n", [("flag", "debug", False)]),
        ("args.debug and breakpoint()\n", [("flag", "debug", False)]),
        ("breakpoint() if args.debug else None\n", [("flag", "debug", False)]),
        ("args.quiet or breakpoint()\n", [("flag", "quiet", True)]),
        ("if args.a and args.b:\n    breakpoint()\n", [("flag", "a", False), ("flag", "b", False)]),
        ("if args.a or args.b:\n    breakpoint()\n", [("other", "", False)]),
        ("try:\n    f()\nexcept E:\n    breakpoint()\n", [("other", "", False)]),
        ("if __name__ == '__main__':\n    breakpoint()\n", []),
        ("for x in range(3):\n    breakpoint()\n", []),
    ],
)
def test_a_stop_carries_its_conditions(tmp_path: Path, text: str, conditions: list[tuple[str, str, bool]]) -> None:
    """Every condition in front of a breakpoint is kept, however it is written."""
    (stop,) = [event for event in read(tmp_path, text).events if event.kind == "breakpoint"]
    assert [(guard.kind, guard.name, guard.negated) for guard in stop.guards] == conditions


def test_commented_breakpoints_are_told(tmp_path: Path) -> None:
    """A breakpoint() that was commented out is found with its place; one in a sentence is not."""
    text = "import ray\nray.init()\n    # breakpoint()\nx = 1  # no breakpoint()\n"
    assert read(tmp_path, text).commented == ((3, 22, "    # breakpoint()"),)


@pytest.mark.parametrize("text", ["def (", "\0", "ünï\n)"])
def test_what_is_not_python_is_none(tmp_path: Path, text: str) -> None:
    """Text that does not parse gives None."""
    assert read_driver(write(tmp_path, "train.py", text)) is None


@given(
    st.lists(
        st.sampled_from([
            "breakpoint()\n", "def f():\n", "  f()\n", "f()\n", "ray.init()\n", "x = (\n", ")\n", "\x1b[2J",
            "if a:\n", "  return\n", "import ray.util.pdb as p\n", "from . import f\n", "from .. import *\n",
            "p.set_trace()\n",
            "@ray.remote\n", "class A(B):\n", "try:\n", "except* E:\n", "match x:\n", "ray.remote(f)(g)\n",
        ]),
        max_size=20,
    )
)  # fmt: skip
def test_no_text_raises(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    """Odd text gives events or None."""
    driver = read_driver(write(tmp_path_factory.mktemp("driver"), "t.py", "".join(lines)))
    assert driver is None or all(event.line >= 1 for event in driver.events)

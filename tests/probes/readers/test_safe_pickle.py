"""Foreign pickles are read with stand-ins, and nothing they name is imported or run."""

from __future__ import annotations

import collections
import datetime as dt
import pickle
import resource
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.safe_pickle import HARMLESS, Record, RefusedGlobalError, limited_memory, load
from tests.probes.readers.pickles import calling

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(value=PLAIN, protocol=st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_plain_data_comes_back_unchanged(value: Any, protocol: int) -> None:
    """Numbers, strings, lists, dicts and tuples of every protocol are what pickle itself returns."""
    assert load(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize(
    "name",
    [
        "os system",
        "posix system",
        "builtins eval",
        "builtins getattr",
        "subprocess Popen",
        "torch load",
        "numpy load",
        "shutil rmtree",
        "socket create_connection",
        "functools partial",
        "operator attrgetter",
    ],
)
def test_a_callable_of_the_standard_library_torch_or_numpy_is_refused_by_name(name: str, tmp_path: Path) -> None:
    """What an attack calls is named in the error; its argument, a shell command, is never run."""
    trace = tmp_path / "ran"
    with pytest.raises(RefusedGlobalError) as refused:
        load(calling(name, f"touch {trace}"))
    assert refused.value.name == name.replace(" ", ".")
    assert not trace.exists()


def test_calling_a_foreign_name_is_refused_but_its_object_is_kept_as_data() -> None:
    """A user's class is read without its code, while calling a user's function is refused."""
    with pytest.raises(RefusedGlobalError) as refused:
        load(calling("my_tool run", "x"))
    assert refused.value.name == "my_tool.run"
    opaque: set[str] = set()
    made = load(b"\x80\x02cmy_tool\nReward\n)\x81}X\x05\x00\x00\x00scoreK\x07sb.", opaque=opaque)
    assert isinstance(made, Record)
    assert made.get("score") == 7
    assert opaque == {"my_tool.Reward"}
    assert "my_tool" not in sys.modules


def test_ordinary_containers_and_values_are_read_as_plain_data() -> None:
    """Counters, sets, deques, dates and decimals lose their class and keep their content."""
    value = {
        "counter": collections.Counter("aab"),
        "order": collections.OrderedDict(x=1),
        "default": collections.defaultdict(list, y=[2]),
        "deque": collections.deque([1, 2], maxlen=5),
        "set": {3},
        "day": dt.date(2026, 8, 21),
        "amount": Decimal("1.5"),
        "raw": b"\x00\xff",
    }
    read = load(pickle.dumps(value, 2))
    assert read["counter"] == {"a": 2, "b": 1}
    assert read["order"] == {"x": 1}
    assert read["default"] == {"y": [2]}
    assert read["deque"] == [1, 2]
    assert read["set"] == [3]
    assert read["amount"].args == ("1.5",)
    assert read["day"].source == "datetime.date"
    assert read["raw"] == b"\x00\xff"


@pytest.mark.parametrize("target", ["collections OrderedDict", "torch Size", "datetime date", "builtins list"])
def test_a_pickle_cannot_change_a_stand_in(target: str) -> None:
    """BUILD on a stand-in itself fails, so the next file is read as if this one had never been."""
    module, name = target.split(" ")
    before = HARMLESS[module, name]
    for state in (b"}X\x08\x00\x00\x00may_callK\x01s", b"N}X\x08\x00\x00\x00__call__K\x01s\x86"):
        with pytest.raises((AttributeError, TypeError, pickle.UnpicklingError)):
            load(f"\x80\x02c{module}\n{name}\n".encode("latin1") + state + b"b.")
    assert HARMLESS[module, name] is before
    assert not hasattr(before, "__dict__") or "may_call" not in vars(type(before))
    assert load(pickle.dumps(collections.OrderedDict(a=1), 2)) == {"a": 1}


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x80\x02]r\xff\xff\xff\x7f.",
        b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x.",
        b"\x80\x02c__builtin__\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x10\x85R.",
    ],
    ids=["memo index", "declared bytes", "bytearray size"],
)
def test_a_declared_size_does_not_take_memory(bomb: bytes) -> None:
    """A pickle that claims terabytes ends in an error within the limit, and the limit is lifted again."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises((MemoryError, pickle.UnpicklingError)), limited_memory(64 << 20):
        load(bomb)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_deep_nesting_and_shared_references_are_read_without_recursion() -> None:
    """A list nested 100,000 deep and a tree of shared lists that would unfold to 10^30 items cost nothing."""
    depth = 100_000
    assert isinstance(load(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."), list)
    shared = b"\x80\x02]q\x00" + b"".join(b"]q%c(" % n + b"h%c" % (n - 1) * 10 + b"e" for n in range(1, 31)) + b"."
    read = load(shared)
    assert len(read) == 10
    assert read[0] is read[9]


@given(data=st.binary(max_size=300), head=st.sampled_from([b"", b"\x80\x02", b"\x80\x04\x95"]))
def test_random_bytes_only_ever_raise(data: bytes, head: bytes) -> None:
    """No sequence of opcodes returns anything that is not a stand-in or plain data."""
    try:
        value = load(head + data)
    except (Exception, RefusedGlobalError):
        return
    assert not callable(value) or isinstance(value, type) or type(value).__name__ == "Stub"


def test_reading_imports_neither_torch_nor_numpy() -> None:
    """The reader itself costs no heavy import."""
    code = (
        "import sys, probes.readers.rollout_dump, probes.readers.torch_dist; "
        "print(sorted({'torch', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

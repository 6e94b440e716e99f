"""torch's message of a failed allocation, in the wording of every version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.readers.oom_message import GIB, OomMessage, read

MIB = 1 << 20
NEW = (
    "CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 39.38 GiB of which 3.76 GiB is "
    "free. Including non-PyTorch memory, this process has 35.50 GiB memory in use. Of the allocated memory 34.94 GiB "
    "is allocated by PyTorch, with 1.50 GiB allocated in private pools (e.g., CUDA Graphs), and 175.15 MiB is reserved "
    "by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
)
OLD = (
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 23.69 GiB total capacity; 21.50 GiB already allocated; "
    "10.94 MiB free; 21.84 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting"
)


def message(text: str) -> OomMessage:
    """Return the numbers of a message that has some."""
    found = read(text)
    assert found is not None
    return found


def test_the_sentences_of_torch_2() -> None:
    """Each number is in bytes, and exact to half of its last digit."""
    one = message(NEW)
    assert one.tried == pytest.approx(3.91 * GIB)
    assert one.error == pytest.approx(0.005 * GIB)
    assert (one.gpu, one.others) == (0, ())
    assert one.total == pytest.approx(39.38 * GIB)
    assert one.free == pytest.approx(3.76 * GIB)
    assert one.allocated == pytest.approx(34.94 * GIB)
    assert one.unallocated == pytest.approx(175.15 * MIB)
    assert one.pools == pytest.approx(1.5 * GIB)
    assert one.strangers == pytest.approx(0.12 * GIB, abs=0.001 * GIB)


def test_the_brackets_of_torch_1() -> None:
    """Reserved in total minus allocated is what is reserved and unallocated; the process is not told."""
    one = message(OLD)
    assert (one.gpu, one.this, one.strangers) == (1, None, None)
    assert one.total == pytest.approx(23.69 * GIB)
    assert one.free == pytest.approx(10.94 * MIB)
    assert one.unallocated == pytest.approx(0.34 * GIB)


def test_a_process_that_is_torch_itself_under_another_pid() -> None:
    """In a container torch names itself by the driver's pid: the smallest that holds what it reserved is itself."""
    text = (
        "CUDA out of memory. Tried to allocate 1.22 GiB. GPU 0 has a total capacty of 79.00 GiB of which 0 bytes is "
        "free. Process 11 has 50.00 GiB memory in use. Process 12 has 28.00 GiB memory in use. Of the allocated "
        "memory 26.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
    )
    one = message(text)
    assert one.this == pytest.approx(28 * GIB)
    assert [pid for pid, _ in one.others] == [11]
    assert one.others[0][1] == pytest.approx(50 * GIB)
    assert one.strangers == pytest.approx(51 * GIB)


def test_a_process_of_zero_bytes_is_not_told() -> None:
    """Where the driver cannot tell, torch prints "0 bytes"; then nobody knows what others hold."""
    one = message(NEW.replace("35.50 GiB", "0 bytes"))
    assert one.strangers is None


@pytest.mark.parametrize(
    "text", ["CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "Tried to allocate 1 GiB", ""]
)
def test_no_numbers_no_message(text: str) -> None:
    """Errors that do not say what was tried are none."""
    assert read(text) is None


@given(
    st.one_of(st.text(), st.builds(lambda a, b: NEW[:a] + b + NEW[a:], st.integers(0, len(NEW)), st.text(max_size=5)))
)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Cut, spoilt or foreign text gives finite numbers or none."""
    one = read(text)
    if one is not None:
        assert one.tried >= 0
        assert one.strangers is None or one.strangers >= 0


@given(st.integers(1, 10**6), st.sampled_from(["KiB", "MiB", "GiB"]))
def test_a_printed_size_comes_back(hundredths: int, unit: str) -> None:
    """A size as c10 prints it, two decimals and a unit, is read back to within its error."""
    exact = hundredths / 100 * 1024 ** {"KiB": 1, "MiB": 2, "GiB": 3}[unit]
    one = message(f"out of memory. Tried to allocate {hundredths / 100:.2f} {unit}. GPU 0 has")
    assert abs(one.tried - exact) <= one.error

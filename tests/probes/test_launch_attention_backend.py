"""Flash Attention or not, and models that cannot take it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.launch_attention_backend import attention_backend
from tests.probes.asking import word
from tests.probes.scripts import ask, ask_script, script, table, write


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--num-layers 2", "--attention-backend flash"), "ok:flash"),
        (("--num-layers 2", "--attention-backend fused"), "warning:not-flash"),
        (("--num-layers 2",), "warning:not-flash"),
        (("--num-layers 2", "--multi-latent-attention"), "ok:latent-attention"),
        (("--num-layers 2", "--attention-backend $B"), "unknown"),
    ],
)
def test_a_whole_script_tells(tmp_path: Path, flags: tuple[str, ...], expected: str) -> None:
    """The flag, its default and latent attention are told apart."""
    assert word(ask_script(attention_backend, tmp_path, script(*flags))) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"attention_backend": "AttnBackend.flash"}, "ok:flash"),
        ({"attention_backend": "AttnBackend.auto", "multi_latent_attention": False}, "warning:not-flash"),
    ],
)
def test_the_table_tells(tmp_path: Path, rows: dict[str, object], expected: str) -> None:
    """The arguments table alone answers as well."""
    assert word(ask(attention_backend, log=write(tmp_path, "job.log", table(**rows)))) == expected


def test_quoted_flags_leave_it_open(tmp_path: Path) -> None:
    """Nothing is concluded from what a partial command does not say."""
    assert word(ask_script(attention_backend, tmp_path, script("--micro-batch-size 1", whole=False))) == "unknown"

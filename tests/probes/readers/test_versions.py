"""Versions from pip freeze, pip list and image tags."""

from __future__ import annotations

from hypothesis import given

from probes.readers.versions import parse_versions, read_versions
from tests.helpers import hostile_bytes


def test_every_form_is_read_with_its_line() -> None:
    """Pins, extras, pip's table and an image tag; names compare as PEP 503 says and the first mention wins."""
    text = (
        b"# made by pip freeze\nray[default]==2.49.2\nSGLang_Router == 0.3.2\nslime @ git+https://h/x\n"
        b"Package    Version\n---------- -------\ntransformer-engine 2.10.0+cu12\ndebugpy==1.8.0 ; python_version>'3'\n"
        b"image: registry:5000/slimerl/slime:v0.3.1\nray==9\n"
    )
    found = parse_versions("v.txt", text)
    assert {name: one.text for name, one in found.items()} == {
        "ray": "2.49.2",
        "sglang-router": "0.3.2",
        "slime": "git+https://h/x",
        "transformer-engine": "2.10.0+cu12",
        "debugpy": "1.8.0",
        "image:slime": "v0.3.1",
    }
    assert (found["debugpy"].citation.line, found["debugpy"].citation.offset) == (8, text.index(b"debugpy"))


def test_prose_has_no_versions() -> None:
    """Sentences, URLs and options are passed over."""
    assert parse_versions("v", b"we use ray here\nhttp://slime:8080/x\n--hash=sha256:00\n") == {}


def test_an_absent_file_has_none() -> None:
    """A path that is not there gives nothing."""
    assert read_versions(["/nowhere"]) == {}


@given(hostile_bytes)
def test_no_bytes_raise(data: bytes) -> None:
    """Whatever the bytes, each version's excerpt is safe text."""
    for one in parse_versions("v", data).values():
        assert "\x1b" not in one.citation.excerpt

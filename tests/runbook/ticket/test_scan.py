"""The second look refuses what the redaction may have missed, and names the place without giving it away."""

from __future__ import annotations

import pytest

from runbook.ticket.scan import Left, scan

KEY = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"


@pytest.mark.parametrize(
    "text",
    [
        f"x {KEY} y",
        "ghp_" + "a1B2c3D4" * 5,
        "glpat-a1B2c3D4e5F6g7H8i9J0",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefABCDEF",
        "sk-ant-api03-" + "a1B2c3D4" * 5,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.s5",
        "-----BEGIN RSA PRIVATE KEY-----",
        "mail someone.else@corp.example.com",
        "/home/alice/x",
        "/Users/Alice/x",
        "wandb_key ............. 0123456789abcdef0123",
        '"api_key": "a8f3k2m9x7c1v5b4"',
        "ip=10.1.2.3",
        "postgres://svc:hunter2@db/x",
    ],
)
def test_a_coarse_net_is_cast(text: str) -> None:
    """Tokens, keys, mail addresses, homes and addresses are found without anything known about them."""
    left = scan(f"first line\n{text}", {})
    assert left
    assert left[0].line == 2


def test_the_place_is_named_and_the_value_is_not() -> None:
    """Line and column point at the value; of a secret only its length is shown, of a name its first characters."""
    left = scan(f"a\nbc {KEY}\n/home/alice.liddell", {})
    assert left == [Left(2, 4, "a token", KEY), Left(3, 1, "the home of a user", "alice.liddell")]
    assert [place.shown for place in left] == [f"{len(KEY)} characters", "alic…"]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("by alice.", 4),
        ("run_alice_1", 5),
        ("ALICE and alice", 11),
        ("%2Fhome%2Falice", 7),
        (r"alice\_x", 1),
        ("al&#105;ce", 1),
        ("ali\u200bce", 1),
        (r"ali\u0063e", 1),
    ],
)
def test_a_known_value_is_found_even_under_escapes(text: str, column: int) -> None:
    """A value of the key that still stands as a word is found as written and under HTML, JSON and URL escapes."""
    left = scan(text, {"alice": "user"})
    assert [(place.line, place.column, place.shown) for place in left if "hidden elsewhere" in place.what] == [
        (1, column, "a…")
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x\nS3cret|\n|Value77 y", 2),
        ("S3cret\n  Value77", 1),
        ("a <b>S3cret</b>Value77", 1),
        ("a\n\nS3cr\u00adetVal&#117;e77", 3),
        ("S3cret\\\nValue77", 1),
        ("S3cretVal%75e77", 1),
    ],
)
def test_a_known_secret_is_found_in_pieces(text: str, line: int) -> None:
    """A secret that a table's bar, a line break, a tag or an escape tears apart is found; the first line is named."""
    left = scan(text, {"S3cretValue77": "secret"})
    assert [place.line for place in left] == [line]
    assert "S3cret" not in left[0].shown


@pytest.mark.parametrize("text", ["malice", "alicea", "Alice", "user-1"])
def test_a_known_name_inside_another_word_is_no_leak(text: str) -> None:
    """Names are sought as words, users with the case of their letters."""
    assert scan(text, {"alice": "user", "ser": "user"}) == []


def test_a_secret_and_a_chosen_word_are_found_inside_other_words() -> None:
    """A long secret and a word that a person chose may stand nowhere, not even in a longer word."""
    assert len(scan("xS3cretValuex Tigers", {"S3cretValue": "secret", "tiger": "hidden"})) == 2


@pytest.mark.parametrize(
    "text",
    [
        "secret-1 user-2 host-3 ip-4 mail-5 phone-6",
        "wandb_key ..................... secret-1",
        "3.9.1.7 12.4.1.0 cublas 12.4.5.8 nvidia-cuda-nvrtc-cu12 12.4.127.0",
        "NCCL version 2.10.0.1 ==9.10.2.21 127.0.0.1 0.0.0.0 255.255.255.0 0.5.15.1",
        "/home/user-1/x /root/x /home/root/x",
        "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432 model.layers.0.mlp.gate.weight git@github.com:a/b.git",
        "hf_checkpoint_path_of_the_model_that_is_converted",
    ],
)
def test_what_is_fine_is_let_through(text: str) -> None:
    """Pseudonyms, versions, loopback addresses, hashes, tensor names and flags do not stop an export."""
    assert scan(text, {}) == []

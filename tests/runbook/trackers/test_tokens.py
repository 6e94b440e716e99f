"""Tests of tokens: where they come from, and that they do not show."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import sys
import types
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbook.errors import UsageError
from runbook.trackers.tokens import Credential, Secret, Veil, is_set, secrets_for

TOKEN = 'planted-Tok3n/with+odd=ch%rs"x'
ONE = Credential(("A_TOKEN", "B_TOKEN"), "a token that may write")


def test_the_environment_is_asked_in_order() -> None:
    """The first variable that is set counts, blanks around it do not; the secret goes by the first name."""
    found = secrets_for([ONE], "host", {"A_TOKEN": "  ", "B_TOKEN": f" {TOKEN}\n"}, keyring=False)
    assert found["A_TOKEN"].reveal() == TOKEN
    assert is_set(ONE, {"B_TOKEN": "x"}) == "B_TOKEN"
    assert is_set(ONE, {"A_TOKEN": " "}) == ""


def test_what_is_missing_is_named() -> None:
    """Without a token the error names the variables, what they are for, and the keyring."""
    with pytest.raises(UsageError) as caught:
        secrets_for([ONE], "host", {}, keyring=False)
    assert "A_TOKEN" in caught.value.message
    assert "a token that may write" in caught.value.message
    assert "B_TOKEN" in caught.value.hint
    assert "keyring set slime-runbook A_TOKEN" in caught.value.hint


@pytest.mark.parametrize("value", ["a\nb", "x\x00y", "tökén", "a\rb"])
def test_what_is_no_token_is_refused_without_being_shown(value: str) -> None:
    """A value that no header can carry is refused by the name of its variable: a library would quote it."""
    with pytest.raises(UsageError) as caught:
        secrets_for([ONE], "host", {"A_TOKEN": value}, keyring=False)
    assert "A_TOKEN" in caught.value.message
    assert value not in f"{caught.value.message}{caught.value.hint}"


@pytest.mark.parametrize(
    ("kept", "expected"), [({"A_TOKEN@host": "mine", "A_TOKEN": "any"}, "mine"), ({"B_TOKEN": "any"}, "any")]
)
def test_the_keyring_is_asked_for_the_host_first(
    monkeypatch: pytest.MonkeyPatch, kept: dict[str, str], expected: str
) -> None:
    """Where the environment has none, the keyring's entry for the host goes before the one for all hosts."""
    import keyring
    from keyring.backend import KeyringBackend

    class Kept(KeyringBackend):
        priority = 1.0

        def get_password(self, service: str, username: str) -> str | None:
            assert service == "slime-runbook"
            return kept.get(username)

        def set_password(self, service: str, username: str, password: str) -> None:
            raise NotImplementedError

    before = keyring.get_keyring()
    keyring.set_keyring(Kept())  # type: ignore[no-untyped-call]
    try:
        assert secrets_for([ONE], "host", {})["A_TOKEN"].reveal() == expected
    finally:
        keyring.set_keyring(before)


def test_a_keyring_that_breaks_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyring that is not installed, or raises, is as one without the entry."""
    broken = types.ModuleType("keyring")
    for module in (None, broken):
        monkeypatch.setitem(sys.modules, "keyring", module)
        with pytest.raises(UsageError, match="A_TOKEN"):
            secrets_for([ONE], "host", {})


def test_a_secret_does_not_show() -> None:
    """Neither printing nor formatting nor pickling a secret gives it away, and it is in no dictionary of the object."""
    secret = Secret(TOKEN)
    shown = f"{secret} {secret!r} {[secret]} {secret!s:>50} {copy.copy}"
    assert TOKEN not in shown
    assert not hasattr(secret, "__dict__")
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret.reveal() == TOKEN


@pytest.mark.parametrize(
    "form",
    [
        lambda t: t,
        lambda t: quote(t, safe=""),
        lambda t: json.dumps({"a": t}),
        lambda t: base64.b64encode(t.encode()).decode(),
        lambda t: "Basic " + base64.b64encode(f"admin-login:{t}".encode()).decode(),
    ],
    ids=["plain", "url", "json", "base64", "basic"],
)
def test_a_veil_covers_every_form(form: object) -> None:
    """The token is covered as it is, in an address, in JSON, in Base64 and as a basic login."""
    assert callable(form)
    veil = Veil([Secret("admin-login"), Secret(TOKEN)])
    text = str(form(TOKEN))
    covered = veil.over(f"said: {text} again {text}.")
    assert text not in covered
    assert TOKEN not in covered
    assert covered.startswith("said: ")
    assert covered.endswith(".")


@given(st.text('ab%/"\\+=', min_size=4, max_size=12), st.text('ab%/"\\+= ', max_size=20))
def test_nothing_of_a_secret_is_left(secret: str, around: str) -> None:
    """Whatever stands around it, a covered text holds the secret no more."""
    assert secret not in Veil([Secret(secret)]).over(f"{around}|{secret}|{around}").replace("***", "\n")

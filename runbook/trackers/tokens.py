"""Tokens: from the environment or the keyring of the desktop, for as long as something is being sent.

Invariants: a token stands in no argument, file, log or error; `Secret` shows its value only to who asks by name
(`reveal`), and whatever a server or a library says passes through `Veil.over`, which covers it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, NoReturn
from urllib.parse import quote, quote_plus

from runbook.errors import UsageError

SERVICE = "slime-runbook"
"""Name under which the keyring is asked."""

COVER = "***"
_LEAST = 4


class Credential(NamedTuple):
    """Something that has to be known to log in.

    names: environment variables, the first one that is set counts. what: in words.
    """

    names: tuple[str, ...]
    what: str


class Secret:
    """A token that is not shown by accident: not by `repr`, not in a format, not by pickling."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the token."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


class Veil:
    """Covers secrets in a text, also in the forms in which they travel."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        forms: set[str] = set()
        values = [secret.reveal() for secret in secrets]
        pairs = [f"{one}:{other}" for one in values for other in values if one != other]
        for value in (*values, *pairs):
            encoded = base64.b64encode(value.encode()).decode()
            forms |= {
                value,
                quote(value, safe=""),
                quote_plus(value),
                json.dumps(value)[1:-1],
                encoded,
                encoded.rstrip("="),
            }
        self._forms = sorted((form for form in forms if len(form) >= _LEAST), key=len, reverse=True)

    def over(self, text: str) -> str:
        """Return the text without any secret."""
        for form in self._forms:
            text = text.replace(form, COVER)
        return text


def is_set(credential: Credential, environment: Mapping[str, str]) -> str:
    """Return the name of the variable that holds a credential, "" when none does."""
    return next((name for name in credential.names if environment.get(name, "").strip()), "")


def secrets_for(
    credentials: Iterable[Credential], host: str, environment: Mapping[str, str], *, keyring: bool = True
) -> dict[str, Secret]:
    """Return the secrets by the first name of their credentials.

    host: server they are for, by which the keyring may keep different ones. Raises UsageError naming what is missing
    and how to give it.
    """
    found: dict[str, Secret] = {}
    for credential in credentials:
        name = is_set(credential, environment)
        value = environment[name] if name else _kept(credential, host) if keyring else ""
        if not value.strip():
            first = credential.names[0]
            raise UsageError(
                f"nothing is sent: {first} is not set ({credential.what})",
                f"export {' or '.join(credential.names)}, or keep it: keyring set {SERVICE} {first}",
            )
        if not value.strip().isascii() or not value.strip().isprintable():
            raise UsageError(
                f"{name or credential.names[0]}: it holds characters that no token has",
                "set it again, without line breaks and quotation marks",
            )
        found[credential.names[0]] = Secret(value.strip())
    return found


def _kept(credential: Credential, host: str) -> str:
    """Return what the keyring keeps, "" when there is none; a keyring that cannot be used keeps nothing."""
    try:
        import keyring

        for name in credential.names:
            for user in (f"{name}@{host}", name):
                value = keyring.get_password(SERVICE, user)
                if value:
                    return value
    except Exception:  # backends raise what they like, and a missing keyring is no fault
        return ""
    return ""

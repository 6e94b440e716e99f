"""The HTTP session that trackers share.

Invariants: certificates are checked; proxies come from the environment, logins never from `.netrc`; a redirect is an
error, so that no token follows one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import requests


def new_session(heard: dict[str, str] | None = None) -> requests.Session:
    """Return a session that follows no redirect. heard: where the Retry-After of the last answer is put."""
    import requests

    session = requests.Session()
    session.max_redirects = 0
    session.auth = _as_it_is  # any value here keeps requests from asking .netrc

    def listen(response: requests.Response, *_: Any, **__: Any) -> None:
        if heard is not None:
            heard["after"] = response.headers.get("Retry-After", "")

    session.hooks["response"].append(listen)
    return session


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request

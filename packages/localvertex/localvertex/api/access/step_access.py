"""The tokens of runs: each has its own, which allows its steps the calls that they need, and ends with the run."""

import hmac
import re
import secrets
import threading
from collections.abc import Callable

from localvertex_base.userinput.step_endpoint import StepEndpoint

COLLECTIONS = ("models", "endpoints")
"""Paths that steps may call, with everything below them. A job with this token could leave the sandbox of its step."""

_PATHS = re.compile(rf"/v1/projects/[^/]+/locations/[^/]+/(?:{'|'.join(COLLECTIONS)})(?:[/:].*)?", re.S)

_PREDICTIONS = re.compile(r"/v1/projects/[^/]+/locations/[^/]+/endpoints/[^/]+:predict")

_NUM_BYTES = 32
"""Of random data in a token."""


class StepAccess:
    """The runs whose steps may call a server. Safe for several threads.

    Args:
        address: The address http://127.0.0.1:PORT; empty when the server does not listen yet.
    """

    def __init__(self, address: str = "") -> None:
        self._address = address
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[Callable[[], None], bool]] = {}

    def listens_at(self, address: str) -> None:
        """Take the address of the server, before the first run."""
        self._address = address

    def issue(self, on_use: Callable[[], None], *, may_change: bool = True) -> StepEndpoint:
        """Return the address with a new token.

        Args:
            on_use: Called before each call with the token is answered.
            may_change: Whether it allows more than reading and predictions.
        """
        found = StepEndpoint(address=self._address, token=secrets.token_urlsafe(_NUM_BYTES))
        with self._lock:
            self._runs[found.token] = on_use, may_change
        return found

    def revoke(self, endpoint: StepEndpoint) -> None:
        """End a token."""
        with self._lock:
            self._runs.pop(endpoint.token, None)

    def allows(self, token: bytes, method: str, path: str) -> bool:
        """Return whether a call may be carried out."""
        with self._lock:
            found = [run for each, run in self._runs.items() if hmac.compare_digest(each.encode(), token)]
        for on_use, _ in found:
            on_use()
        is_reading = method in ("GET", "HEAD") or _PREDICTIONS.fullmatch(path) is not None
        is_allowed = any(may_change or is_reading for _, may_change in found)
        return is_allowed and _PATHS.fullmatch(path) is not None

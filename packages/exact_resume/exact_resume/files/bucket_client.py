"""The connection to Cloud Storage: default credentials, or none with an emulator, and its retry policy."""

import contextlib
import functools
import importlib
import os
import random
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from exact_resume.files.bucket_errors import is_temporary

T = TypeVar("T")
TIMEOUT_SECONDS = (20.0, 60.0)
"""Limit for connecting, and for the time without a byte of the answer."""
_EMULATOR = "STORAGE_EMULATOR_HOST"
"""Google's variable: address of an emulator, which gets no credentials."""
_MAX_RETRIES = ("GCS_RETRY_CONFIG_MAX_RETRIES", 10)
_FIRST_PAUSE = ("GCS_RETRY_CONFIG_INIT_DELAY_TIME_US", 1_000_000)
_LONGEST_PAUSE = ("GCS_RETRY_CONFIG_MAX_DELAY_TIME_US", 32_000_000)
"""TensorFlow's variables for its own gs://, and the values without them."""
_DEADLINE_SECONDS = 300.0
"""Limit for all attempts together, counted from the last progress."""
_MAX_IDLE_CONNECTIONS = 64
_lock = threading.Lock()
_random = random.Random()  # noqa: S311 - no secret
"""A generator of its own: a training restores the global one, which nothing here may advance."""


class RetryPolicy:
    """Repeats a call after temporary failures, with growing random pauses, until an attempt or time limit.

    Google's own policy limits only the time, and a large transfer that advances would end at that limit. This one
    starts again after any progress. The library accepts it wherever it accepts a policy.
    """

    def __init__(self, progress: Callable[[], int] = lambda: 0) -> None:
        """Keep a measure of the progress, such as the number of bytes received."""
        self.num_failures = 0
        """Failures of all calls so far."""
        self._progress = progress

    def __call__(self, call: Callable[[], T]) -> Callable[[], T]:
        """Return the call with repetitions; it raises the last error."""
        return functools.partial(self._repeated, call)

    def _repeated(self, call: Callable[[], T]) -> T:
        num_failures, begin, done = 0, time.monotonic(), self._progress()
        while True:
            try:
                return call()
            except Exception as error:
                if not is_temporary(error):
                    raise
                if (now_done := self._progress()) > done:
                    num_failures, begin, done = 0, time.monotonic(), now_done
                self.num_failures += 1
                num_failures += 1
                pause = _pause_seconds(num_failures)
                if num_failures > _setting(_MAX_RETRIES) or time.monotonic() + pause - begin > _DEADLINE_SECONDS:
                    raise
            time.sleep(pause)


def _pause_seconds(num_failures: int) -> float:
    """Return a random pause, so that many workers do not come back at the same moment."""
    longest = min(_setting(_FIRST_PAUSE) * 2 ** (num_failures - 1), _setting(_LONGEST_PAUSE)) / 1e6
    return _random.uniform(longest / 2, longest)


def _setting(setting: tuple[str, int]) -> int:
    name, default = setting
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else default


def client() -> Any:
    """Return the google.cloud.storage.Client of this process, for all threads.

    Raises:
        GoogleAuthError: There are no credentials.
    """
    with _lock:
        return _connected(os.getpid(), os.environ.get(_EMULATOR, ""))


@functools.lru_cache(maxsize=1)
def _connected(pid: int, emulator: str) -> Any:
    """Return the client; a child process must not share the connections of its parent."""
    del pid
    from google.auth.transport import DEFAULT_REFRESH_STATUS_CODES
    from google.auth.transport.requests import AuthorizedSession
    from google.cloud.storage import Client
    from requests.adapters import HTTPAdapter

    # An upload draws the boundary between its parts, and a repetition its pause; a test notices other modules.
    for name in ("google.cloud.storage._media._upload", "google.auth._exponential_backoff"):
        with contextlib.suppress(ImportError):
            vars(importlib.import_module(name))["random"] = _random
    # Otherwise it asks for the location of each bucket, for traces; training may not have that permission.
    os.environ["DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"] = "true"
    credentials = _no_credentials() if emulator else _default_credentials()
    refreshed = () if emulator else DEFAULT_REFRESH_STATUS_CODES
    made = AuthorizedSession(credentials, refresh_status_codes=refreshed)  # type: ignore[no-untyped-call]
    # Without it, requests replaces the credentials by those that ~/.netrc has for the host.
    made.auth = lambda request: request
    for scheme in ("https://", "http://"):
        made.mount(scheme, HTTPAdapter(pool_maxsize=_MAX_IDLE_CONNECTIONS))
    return Client(project=None, credentials=credentials, _http=made)


def _no_credentials() -> Any:
    from google.auth.credentials import AnonymousCredentials

    return AnonymousCredentials()  # type: ignore[no-untyped-call]


def _default_credentials() -> Any:
    """Return the default credentials; no project is needed or requested."""
    import logging

    import google.auth
    from google.cloud.storage import Client

    logging.getLogger("google.auth._default").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return google.auth.default(scopes=Client.SCOPE)[0]

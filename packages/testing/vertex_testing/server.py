"""`python -m localvertex serve` as a separate process."""

import contextlib
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import requests

from vertex_testing.programs import LOCALVERTEX

PARENT = "projects/local-project/locations/us-central1"


class Server:
    """`python -m localvertex serve` over a work folder."""

    def __init__(
        self,
        work_dir: Path,
        *options: str,
        program: tuple[str, ...] = ("-m", "localvertex"),
        has_own_interpreter: bool = False,
    ) -> None:
        self.work_dir, self._log = work_dir, work_dir.parent / f"serve-{time.monotonic_ns()}.log"
        words = [*program, "serve", "--port", "0", "--work-dir", str(work_dir), *options]
        with self._log.open("w") as log:
            self.process = LOCALVERTEX.start(words, stdout=log.fileno(), has_own_interpreter=has_own_interpreter)
        wait_until(lambda: self.process.poll() is not None or "in a browser: " in self.text)
        found = re.search(r"http://127\.0\.0\.1:\d+", self.text)
        assert found, self.text
        self.url = found[0]

    @property
    def text(self) -> str:
        """Everything it has printed."""
        return self._log.read_text()

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> requests.Response:
        """Send a plain request; `path` is relative to the location."""
        return self.request(method, f"/v1/{PARENT}/{path}", json=body, **options)

    def get(self, path: str = "/") -> requests.Response:
        """Request a page."""
        return self.request("GET", path)

    def request(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any
    ) -> requests.Response:
        """Send a plain request with the token, for at most 60 s unless `timeout` is given."""
        given = {"timeout": 60, "headers": self.headers | (headers or {})} | options
        return requests.request(method, self.url + path, **given)

    @property
    def headers(self) -> dict[str, str]:
        """The header with the token."""
        return {"Authorization": f"Bearer {(self.work_dir / 'api' / 'token').read_text().strip()}"}

    @property
    def endpoint(self) -> tuple[str, ...]:
        """The options of `python -m pipelines` for this server."""
        return "--endpoint", self.url, "--work-dir", str(self.work_dir)

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """Let no file of the server grow: the kernel refuses each write, as on a full disk."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        try:
            yield
        finally:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, unlimited)

    def schedules(self) -> list[dict[str, Any]]:
        """Return all schedules."""
        found: list[dict[str, Any]] = self.call("GET", "schedules").json().get("schedules", [])
        return found

    @contextlib.contextmanager
    def without_schedules(self) -> Iterator[Self]:
        """Remove all schedules before and after a test."""
        self._delete_schedules()
        try:
            yield self
        finally:
            self._delete_schedules()

    def _delete_schedules(self) -> None:
        for schedule in self.schedules():
            self.call("DELETE", f"schedules/{schedule['name'].rpartition('/')[2]}").raise_for_status()

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server."""
        self.end()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(300)


def wait_until(condition: Callable[[], Any], *, timeout_seconds: float = 240) -> Any:
    """Wait until a condition holds and return its value."""
    deadline, pause = time.monotonic() + timeout_seconds, 0.01
    while not (value := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold within {timeout_seconds} s"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.1)
    return value

"""Failures of the server, switched on by a test while its client runs."""

import dataclasses
import re
import threading
import time


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came in."""

    method: str
    target: str
    """Host and path with query, such as storage.googleapis.com/bucket/object; `name=` of an upload may be from its
    body."""
    num_bytes: int
    """Size of the body that arrived; of the data alone, where the body describes the object too."""
    range: str = ""
    """The wanted part of an object, as `bytes=0-99`; empty: all of it."""


class ConnectionDropped(Exception):
    """The server closes the connection without an answer; `body` is what has arrived."""

    def __init__(self, body: bytes) -> None:
        super().__init__(f"after {len(body)} bytes")
        self.body = body


class Faults:
    """Failures, all off at first. Patterns are regular expressions searched in `METHOD host/path?query`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: list[tuple[re.Pattern[str], int]] = []
        self._drops: list[tuple[re.Pattern[str], int]] = []
        self._damages: list[tuple[re.Pattern[str], int]] = []
        self._cuts: list[tuple[re.Pattern[str], int]] = []
        self._held: tuple[re.Pattern[str], threading.Event, threading.Event] | None = None
        self.at_once: threading.Barrier | None = None
        """Every request waits until as many are there."""
        self.latency_seconds = 0.0
        """Delay of every request."""
        self.num_writable_bytes: int | None = None
        """Uploads beyond this many bytes in total are refused with 403 quotaExceeded; None: no limit."""
        self.num_rewrite_calls = 1
        """Calls until an object is copied; the service copies large ones piece by piece."""
        self.requests: list[Request] = []
        """All requests, in order."""

    def fail(self, count: int, status: int = 503, *, matching: str = "") -> None:
        """Answer the next `count` requests that match with an error."""
        with self._lock:
            self._failures += [(re.compile(matching), status)] * count

    def drop_upload(self, after_bytes: int, *, matching: str = "", count: int = 1) -> None:
        """Cut the connection of the next `count` matching uploads after `after_bytes` of the body."""
        with self._lock:
            self._drops += [(re.compile(matching), after_bytes)] * count

    def cut_answer(self, after_bytes: int, *, matching: str = "", count: int = 1) -> None:
        """Close the connection of the next `count` matching requests after `after_bytes` of the answer's body.

        An answer without a body is not sent at all.
        """
        with self._lock:
            self._cuts += [(re.compile(matching), after_bytes)] * count

    def damage(self, count: int, *, matching: str = "") -> None:
        """Change the last byte of an object in the next `count` matching requests, on its way there or back."""
        with self._lock:
            self._damages += [(re.compile(matching), 1)] * count

    def hold(self, matching: str) -> tuple[threading.Event, threading.Event]:
        """Make the next matching request wait; return the events (arrived, continue)."""
        with self._lock:
            self._held = (re.compile(matching), threading.Event(), threading.Event())
            return self._held[1:]

    def clear(self) -> None:
        """Switch everything off and forget the requests."""
        with self._lock:
            if self._held:
                self._held[2].set()
            self._failures, self._drops, self._cuts, self._damages, self._held = [], [], [], [], None
            self.latency_seconds, self.num_writable_bytes, self.at_once = 0.0, None, None
            self.num_rewrite_calls = 1
            self.requests.clear()

    def drop_length(self, line: str) -> int | None:
        """Return after how many bytes the body of this request is cut off, None if it is not."""
        return self._taken(self._drops, line)

    def answer_length(self, line: str) -> int | None:
        """Return after how many bytes the body of the answer is cut off, None if it is not."""
        return self._taken(self._cuts, line)

    def is_damaged(self, line: str) -> bool:
        """Return whether the object is changed on its way."""
        return self._taken(self._damages, line) is not None

    def _taken(self, planned: list[tuple[re.Pattern[str], int]], line: str) -> int | None:
        with self._lock:
            for index, (pattern, length) in enumerate(planned):
                if pattern.search(line):
                    del planned[index]
                    return length
        return None

    def meet(self, line: str, request: Request) -> int | None:
        """Record a request and delay it; return the status to fail it with, if any."""
        time.sleep(self.latency_seconds)
        if self.at_once:
            self.at_once.wait(60)
        with self._lock:
            self.requests.append(request)
            held, failure = self._held, None
            if held and held[0].search(line):
                self._held = None
            else:
                held = None
            for index, (pattern, status) in enumerate(self._failures):
                if pattern.search(line):
                    del self._failures[index]
                    failure = status
                    break
        if held:
            held[1].set()
            held[2].wait(600)
        return failure

    def refuses(self, num_bytes: int) -> bool:
        """Return whether an upload exceeds the quota."""
        with self._lock:
            if self.num_writable_bytes is None:
                return False
            self.num_writable_bytes -= num_bytes
            return self.num_writable_bytes < 0

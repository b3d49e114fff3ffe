"""The command's output: passed through byte by byte, and read line by line for progress.

Lines are matched in the main thread, where an alarm ends a pattern that backtracks for ever: `re` holds the
interpreter's lock, so that elsewhere it would stop the heartbeat of the lease.
"""

import collections
import contextlib
import dataclasses
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from exact_resume.errors import InputError
from exact_resume.text import quote

_LONGEST_LINE = 1000
"""Bytes of a line that are matched; the rest of it is passed through only."""
_NUM_LINES = 1000
"""Lines that wait to be matched; older ones are given up."""
_LONGEST_MATCH_SECONDS = 1.0
_SECONDS_BETWEEN_EVENTS = 1.0
_RESERVED = {"time", "event", "replica", "first_step", "last_step", "seconds"}
_LARGEST = 2**53
"""Larger whole numbers are not exact in JSON."""


def parse_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a line with progress.

    Raises:
        InputError: It is not a regular expression with the group `step`, or a group has the name of another field.
    """
    try:
        pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"--progress={quote(text)} is not a regular expression: {error}") from None
    wrong = sorted(_RESERVED & set(pattern.groupindex))
    if "step" not in pattern.groupindex or wrong:
        found = f"has a group {wrong[0]!r}, which the event log uses itself" if wrong else "has no group step"
        raise InputError(f"--progress={quote(text)} {found}; expected groups such as 'step (?P<step>\\d+)'")
    return pattern


def pipe_to(target: int, lines: "collections.deque[bytes]") -> tuple[int, threading.Thread]:
    """Return a descriptor for the command, and a thread that passes on what is written there.

    Args:
        target: Descriptor of the wrapper, 1 or 2.
        lines: Receives each line, cut to a length.
    """
    source, descriptor = os.pipe()
    return descriptor, threading.Thread(target=_pump, args=(source, target, lines), name="output", daemon=True)


def _pump(source: int, target: int, lines: "collections.deque[bytes]") -> None:
    line = b""
    while data := os.read(source, 2**16):
        *complete, rest = re.split(rb"[\r\n]+", line + data)
        lines.extend(each[:_LONGEST_LINE] for each in complete)
        line = rest[:_LONGEST_LINE]
        try:
            while data:
                data = data[os.write(target, data) :]
        except OSError:
            # Its reader has ended. The command sees that as it would without the wrapper.
            break
    lines.append(line)
    os.close(source)


@dataclasses.dataclass(kw_only=True)
class Progress:
    """What the command's log says of its progress."""

    pattern: re.Pattern[str] | None
    log_event: Callable[..., None]
    lines: "collections.deque[bytes]" = dataclasses.field(default_factory=lambda: collections.deque(maxlen=_NUM_LINES))
    figures: dict[str, float] = dataclasses.field(default_factory=dict)
    """`step` and the other groups of the last line that has a step; empty: none yet."""
    _logged_step: float = 0
    _logged: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def step(self) -> int:
        """The last step; 0: none yet."""
        return int(self.figures.get("step", 0))

    def resume(self, figures: Mapping[str, float]) -> None:
        """Start at the figures of a restored checkpoint."""
        self.figures, self._logged_step = dict(figures), figures.get("step", 0)

    def update(self, *, is_last: bool = False) -> None:
        """Match the lines that have arrived, in the main thread, and log an event, at most one per second."""
        try:
            with _alarm():
                while self.pattern and self.lines:
                    if match := self.pattern.search(self.lines.popleft().decode("utf-8", "replace")):
                        self.figures = _numbers(match.groupdict()) or self.figures
        except TimeoutError:
            self.pattern = None
            limit = f"{_LONGEST_MATCH_SECONDS:g} s for lines of at most {_LONGEST_LINE} bytes"
            self.log_event("notice", message=f"--progress took more than {limit}; progress is no longer read")
        seconds = time.monotonic() - self._logged
        if self.step != self._logged_step and (is_last or seconds >= _SECONDS_BETWEEN_EVENTS):
            others = {name: value for name, value in self.figures.items() if name != "step"}
            first = self._logged_step + 1 if self.step > self._logged_step else self.step
            self.log_event("steps", first_step=first, last_step=self.step, seconds=seconds, **others)
            self._logged_step, self._logged = self.step, time.monotonic()


def _numbers(groups: Mapping[str, str | None]) -> dict[str, float]:
    """Return the groups that are finite numbers; nothing without a step."""
    found: dict[str, float] = {}
    for name, text in groups.items():
        with contextlib.suppress(ValueError):
            value = float(text or "nan")
            if abs(value) < _LARGEST:  # also false for NaN
                found[name] = int(value) if name == "step" else value
    return found if found.get("step", -1) >= 0 else {}


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Raise TimeoutError in the block after a second; the main thread only."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_MATCH_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

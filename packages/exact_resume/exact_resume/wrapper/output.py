"""The command's output: passed through byte by byte, and read line by line for progress."""

import contextlib
import os
import re
import time
from typing import IO

from exact_resume.errors import InputError
from exact_resume.events.observers import Observer
from exact_resume.text import quote

_LONGEST_LINE = 1000
"""Bytes of a line that are matched; the rest of it is passed through only."""
_RESERVED = {"time", "event", "replica", "first_step", "last_step", "seconds"}
"""Fields of an event that are not the command's."""
_LARGEST = 2**53
"""Larger whole numbers are not exact in JSON."""


class Progress:
    """Progress of the command, read from its log."""

    def __init__(self, pattern: str) -> None:
        """Compile the regular expression of a line with progress; empty: no line has progress.

        Raises:
            InputError: It is not one with the group `step`, or a group has the name of another field.
        """
        try:
            names = re.compile(pattern).groupindex.keys()
        except (re.error, OverflowError, RecursionError) as error:
            raise InputError(f"--progress={quote(pattern)} is not a regular expression: {error}") from None
        if pattern and ("step" not in names or names & _RESERVED):
            raise InputError(
                f"--progress={quote(pattern)} has the groups {sorted(names)}; expected step and others, such as"
                f" 'step (?P<step>\\d+)', but none of {sorted(_RESERVED)}"
            )
        self.pattern = pattern
        self.figures: dict[str, float] = {}
        """`step` and the other groups of the last line that has a step; empty: none yet."""
        self.first_step: float | None = None
        """First step in the log since the start; None: no line has had a step."""
        self._step, self._infinite, self._reported = 0.0, set[str](), set[str]()
        self._time = time.monotonic()

    def follow(self, source: IO[bytes], target: int) -> None:
        """Copy output to a descriptor until it ends, and match its lines."""
        line = b""
        with source:
            while data := source.read(2**16):
                *complete, line = re.split(rb"[\r\n]", line + data)
                try:
                    while data:
                        data = data[os.write(target, data) :]
                except OSError:
                    # Its reader has ended. The command sees that as it would without the wrapper.
                    return
                for each in complete:
                    self._match(each)
                line = line[:_LONGEST_LINE]
        self._match(line)

    def _match(self, line: bytes) -> None:
        if match := re.search(self.pattern, line[:_LONGEST_LINE].decode("utf-8", "replace")):
            with contextlib.suppress(KeyError, ValueError, OverflowError):
                numbers = {name: float(text) for name, text in match.groupdict().items() if text is not None}
                figures = {name: value for name, value in numbers.items() if abs(value) < _LARGEST}
                self.figures = {**figures, "step": int(numbers["step"])}
                self._infinite |= numbers.keys() - figures.keys()
                self.first_step = self.figures["step"] if self.first_step is None else self.first_step

    def log(self, log_event: Observer) -> None:
        """Log an event if the step has changed, and once for each figure that it is not finite."""
        figures = dict(self.figures)
        now = time.monotonic()
        step = figures.pop("step", 0)
        if step != self._step:
            # Those before the first line may be of an earlier start.
            first = self._step + 1 if 0 < self._step < step else step
            log_event("steps", first_step=first, last_step=step, seconds=now - self._time, **figures)
            self._step = step
            self._time = now
            for name in self._infinite - self._reported:
                log_event("notice", message=f"{name} is not a finite number up to step {step}")
            self._reported |= self._infinite

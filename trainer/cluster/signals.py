"""SIGTERM and SIGINT as a flag that the loop asks: whoever stops a run shall not lose its steps."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType


class StopRequest:
    """Remembers the first signal; the second SIGINT stops at once."""

    def __init__(self) -> None:
        self.signal_number = 0
        self._leave: Callable[[], object] = lambda: None

    def install(self) -> StopRequest:
        """Catch SIGTERM and SIGINT from now on."""
        signal.signal(signal.SIGTERM, self._remember)
        signal.signal(signal.SIGINT, self._remember)
        return self

    @contextlib.contextmanager
    def at_once(self, leave: Callable[[], object]) -> Iterator[None]:
        """While there is nothing to save: call `leave` as soon as a signal comes, or if one has come."""
        self._leave = leave
        try:
            if self.is_set:
                leave()
            yield
        finally:
            self._leave = lambda: None

    @property
    def is_set(self) -> bool:
        """Whether a stop was asked for."""
        return self.signal_number != 0

    @property
    def exit_code(self) -> int:
        """143 for SIGTERM, 130 for SIGINT, as shells count."""
        return 128 + self.signal_number

    @property
    def signal_name(self) -> str:
        """SIGTERM or SIGINT."""
        return signal.Signals(self.signal_number).name

    def _remember(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.signal_number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal_number = self.signal_number or number
        self._leave()

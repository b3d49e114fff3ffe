"""SIGTERM and SIGINT as a flag that the training loop checks, so that a stopped run loses no steps."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Self


class StopRequest:
    """Remembers the first signal; a second SIGINT interrupts immediately."""

    def __init__(self) -> None:
        self.signal_number = 0
        self._leave: Callable[[], object] = lambda: None

    def install(self) -> Self:
        """Catch SIGTERM and SIGINT from now on."""
        signal.signal(signal.SIGTERM, self._remember)
        signal.signal(signal.SIGINT, self._remember)
        return self

    @contextlib.contextmanager
    def immediate(self, leave: Callable[[], object]) -> Iterator[None]:
        """Call `leave` as soon as a signal arrives, or if one has arrived already: there is nothing to save yet."""
        self._leave = leave
        try:
            if self.is_set:
                leave()
            yield
        finally:
            self._leave = lambda: None

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self.signal_number != 0

    @property
    def exit_code(self) -> int:
        """143 for SIGTERM, 130 for SIGINT, as in shells."""
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

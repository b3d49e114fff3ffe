"""SIGTERM and SIGINT as a flag that the training loop checks, so that a stopped run loses no steps."""

import contextlib
import ctypes
import resource
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


@contextlib.contextmanager
def end_at_once(timeout_seconds: int) -> Iterator[None]:
    """Let signals end the process at once, and abort (134) after a time.

    For a call of TensorFlow that holds Python's global lock while it waits for other machines: no Python code, not
    even a thread, runs until it returns. Install the handlers again afterwards.
    """
    # A core file would contain the environment with its secrets.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    libc.signal(signal.SIGALRM, ctypes.cast(libc.abort, ctypes.c_void_p))
    signal.alarm(timeout_seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

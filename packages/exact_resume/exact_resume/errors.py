"""The two ways in which a call of this package is refused; failures of files and of machines are OSError."""

import sys
from types import TracebackType

from exact_resume.text import report


class InputError(ValueError):
    """The caller's input is wrong, such as a folder with another run; retrying cannot help.

    The message is one line: what was found, what was expected, what to do.
    """


class RunError(RuntimeError):
    """The input was fine and the run still cannot continue, for example because another job has taken it over."""


def report_uncaught() -> None:
    """Make a refusal that the program does not catch end it with one line; any other exception keeps its traceback."""
    earlier = sys.excepthook
    if earlier.__module__ == __name__:
        return

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, InputError | RunError):
            report(f"error: {error}")
        else:
            earlier(kind, error, trace)

    sys.excepthook = hook

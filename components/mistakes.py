"""How a step ends when its input is wrong: one line and exit code 2, which tells the service not to try again."""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def reported(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with its ValueErrors, the user's mistakes, turned into one line on stderr and exit code 2.

    Other exceptions are defects or lost machines: they keep their traceback and may be tried again.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ValueError as mistake:
            print(f"error: {mistake}", file=sys.stderr)
            raise SystemExit(2) from None

    return call

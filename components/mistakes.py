"""How a step ends when its input is wrong: one line, and exit code 2: trying again is no use."""

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Mistake(ValueError):
    """The user's input is wrong; the message says what was found, what is valid and what to do, in one line."""


def reported(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with the user's mistakes turned into one line on stderr and exit code 2.

    A bucket that cannot be used is one line, too, with 1 where trying again may help. Other exceptions are defects or
    lost machines: they keep their traceback and may be tried again.
    """
    from trainer.errors import UserError, told

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (Mistake, UserError) as mistake:
            print(f"error: {mistake}", file=sys.stderr)
            raise SystemExit(2) from None
        except OSError as error:
            if "://" not in str(error.filename) or (outcome := told(error)) is None:
                raise
            print(outcome[1], file=sys.stderr)
            raise SystemExit(outcome[0]) from None

    return call

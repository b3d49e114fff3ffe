"""How every command of the trainer ends: exit code and one line for a user's mistake, never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from trainer.errors import TrainingError, told
from userinput import cli
from userinput.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


def run(main: Callable[[], int]) -> int:
    """Call a command and give its exit code: 2 for a user's mistake, 1 for a run that failed, 130 for Ctrl-C.

    Any other exception passes, with its traceback: it is the program's fault, or the machine's, and Python exits 1.
    """
    set_environment()
    return cli.run(lambda: _run(main))


def _run(main: Callable[[], int]) -> int:
    try:
        return main()
    except OSError as error:
        if (outcome := told(error)) is None:
            raise
        print(outcome[1], file=sys.stderr)
        return outcome[0]
    except TrainingError as error:
        print(f"failed: {error}", file=sys.stderr)
        return cli.FAILED
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return cli.STOPPED


def set_environment() -> None:
    """Before TensorFlow is imported: its start-up notes stay out of the logs, and Keras runs on it."""
    # Whatever ~/.keras/keras.json says: models, loop and export here are TensorFlow's.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def reported(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with the user's mistakes turned into one line on stderr and exit code 2.

    A bucket that cannot be used is one line, too, with 1 where trying again may help. Other exceptions are defects or
    lost machines: they keep their traceback and may be tried again.
    """
    from trainer.errors import told

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UserError as mistake:
            print(f"error: {mistake}", file=sys.stderr)
            raise SystemExit(2) from None
        except OSError as error:
            if "://" not in str(error.filename) or (outcome := told(error)) is None:
                raise
            print(outcome[1], file=sys.stderr)
            raise SystemExit(outcome[0]) from None

    return call

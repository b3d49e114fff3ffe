"""How every command of the trainer ends: exit code and one line for a user's mistake, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from trainer.errors import TrainingError, UserError, told


def run(main: Callable[[], int]) -> int:
    """Call a command and give its exit code: 2 for a user's mistake, 1 for a run that failed, 130 for Ctrl-C.

    Any other exception passes, with its traceback: it is the program's fault, or the machine's, and Python exits 1.
    """
    set_environment()
    try:
        return main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if (outcome := told(error)) is None:
            raise
        print(outcome[1], file=sys.stderr)
        return outcome[0]
    except TrainingError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def set_environment() -> None:
    """Before TensorFlow is imported: its start-up notes stay out of the logs, and Keras runs on it."""
    # Whatever ~/.keras/keras.json says: models, loop and export here are TensorFlow's.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

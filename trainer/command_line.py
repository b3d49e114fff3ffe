"""How the trainer's commands fail and end: with an exit code, and a single line for a user's mistake."""

import errno
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from exact_resume.errors import InputError, RunError
from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")
_PATH_VARIABLES = ("AIP_CHECKPOINT_DIR", "AIP_TENSORBOARD_LOG_DIR", "XDG_CACHE_HOME")
_UNUSABLE_PATH = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.EINVAL,
    errno.ENXIO,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""The path does not exist or may not be used; a full disk or a lost mount is not the user's mistake."""


_FULL = {errno.ENOSPC, errno.EDQUOT}
_MACHINE = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN}
"""A disk or a mount fails; a later start may succeed."""


class TrainingError(RunError):
    """The input was fine and the run still failed, for example because the loss is not finite."""


_REPORTED = (UserError, InputError, RunError, OSError)
"""Errors that are reported as a single line."""


def run(main: Callable[[], int]) -> int:
    """Call a command and return its exit code: 2 for a user's mistake, 1 for a run that failed, 130 for Ctrl-C.

    Any other exception passes with its traceback: the program or the machine is at fault, and Python exits with 1.
    """
    set_environment()
    return cli.run(lambda: _run(main))


def _run(main: Callable[[], int]) -> int:
    try:
        return main()
    except _REPORTED as error:
        if (outcome := _outcome(error, _paths())) is None:
            raise
        print(cli.one_line(outcome[1]), file=sys.stderr)
        return outcome[0]
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return cli.STOPPED


def _outcome(error: Exception, named_paths: Iterable[str]) -> tuple[int, str] | None:
    """Return exit code and line for an error; None if only its traceback explains it."""
    if isinstance(error, UserError | InputError):
        return 2, f"error: {error}"
    if isinstance(error, OSError):
        return describe_path_error(error, named_paths)
    return cli.FAILED, f"failed: {error}"


def set_environment() -> None:
    """Make Keras use TensorFlow and hide TensorFlow's start-up notes; call this before importing either."""
    # Model, loop and export are TensorFlow's, whatever ~/.keras/keras.json has.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def report_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` with a user's mistake reported as a single line on stderr and exit code 2.

    An unusable bucket, a full or failing disk and a failed run are also reported as a single line, with exit code 1 if
    a retry may help. Other exceptions are defects or lost machines: they keep their traceback and may be retried.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except _REPORTED as error:
            # A step's local paths are chosen by the service, not by the user.
            is_defect = (
                isinstance(error, OSError) and "://" not in str(error.filename) and error.errno not in _FULL | _MACHINE
            )
            if is_defect or (outcome := _outcome(error, ())) is None:
                raise
            print(cli.one_line(outcome[1]), file=sys.stderr)
            raise SystemExit(outcome[0]) from None

    return call


def describe_path_error(error: OSError, named_paths: Iterable[str]) -> tuple[int, str] | None:
    """Return exit code and line for an error about a path, or None if only its traceback explains it.

    Args:
        error: Any OSError.
        named_paths: Local paths from the user. An error about another local path, such as one in /proc or of a
            library, is a defect. Only users give URIs and relative paths, so these need not be listed.
    """
    path = error.filename if isinstance(error.filename, str) else ""
    if error.errno in _FULL | _MACHINE and "://" not in path:
        hint = "free some space and run again" if error.errno in _FULL else "run again"
        return 1, f"failed: {f'{path}: ' if path else ''}{error.strerror}; {hint}"
    if not path:
        return None
    is_named = not os.path.isabs(path) or any(_is_about(path, named) for named in named_paths)
    if error.errno in _UNUSABLE_PATH and is_named:
        return 2, f"error: {path}: {error.strerror}; give a path that can be used"
    return (1, f"failed: {path}: {error.strerror}") if "://" in path else None


def _is_about(path: str, named: str) -> bool:
    """Return whether a path is the named one, below it, or a folder above it that cannot be used or made."""
    folder, name = os.path.split(path)
    # Files are written under such a temporary name first (exact_resume.files.atomic_write).
    name = re.sub(r"^\.(.+)\.[0-9a-f]{8}\.partial$", r"\1", name)
    ends = (os.path.join(folder, name), os.path.abspath(named))
    return os.path.commonpath(ends) in ends


def _paths() -> list[str]:
    """Return the values of all arguments and path variables; values that are not paths do no harm."""
    values = [argument.partition("=")[2] or argument for argument in sys.argv[1:]]
    return [value for value in (*values, *map(os.environ.get, _PATH_VARIABLES)) if value and "://" not in value]

"""Work items, results and errors as files in a folder that all workers read and write, local or gs://.

NAME.work is the version of the submitting step and a function with an item, NAME.result its return value, and
NAME.error the exception of its last failed call. Like the pipelines that Beam stages, they are pickled: write access to
the folder allows code in the workers.
"""

import contextlib
import io
import os
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from exact_resume.files import storage
from exact_resume.files.overlap import in_order
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.data.preparing import versions

_WORK, _RESULT, _ERROR = ".work", ".result", ".error"
_NUM_THREADS = 8


def put(folder: str, function: Callable[[Any], Any], items: Iterable[Any]) -> int:
    """Write the work items and return their number."""

    def put_one(numbered: tuple[int, bytes]) -> None:
        number, pickled = numbered
        storage.write_bytes(storage.join(folder, f"{number:06d}{_WORK}"), pickled)

    version = pickle.dumps(versions.own())
    pickled = enumerate(version + pickle.dumps((function, item)) for item in items)
    # Few at a time, because a work item may have some megabytes.
    return sum(1 for _ in in_order(put_one, pickled, num_threads=_NUM_THREADS, num_ahead=1))


def work(folder: str, name: str) -> None:
    """Process an item in any worker; a second call, even at the same time, has no further effect.

    Raises:
        Exception: The exception of the function, which is also written for `raise_error`.
    """
    try:
        function, item = _work_item(storage.read_bytes(storage.join(folder, name + _WORK)))
        result = function(item)
    except Exception as error:
        # The error of the function matters more than one of writing it.
        with contextlib.suppress(OSError):
            storage.write_bytes(storage.join(folder, name + _ERROR), pickle.dumps(_portable(error)))
        raise
    storage.write_bytes(storage.join(folder, name + _RESULT), pickle.dumps(result))


def missing_results(folder: str) -> list[str]:
    """Return the names of the items without a result."""
    done = set(_names(folder, _RESULT))
    return [name for name in _names(folder, _WORK) if name not in done]


def results(folder: str) -> Iterator[Any]:
    """Yield the results in the order of the items."""
    yield from in_order(lambda name: _load(folder, name + _RESULT), _names(folder, _WORK), num_threads=_NUM_THREADS)


def raise_error(folder: str) -> None:
    """Raise the exception of the first item that has no result, if there is one."""
    failed = set(_names(folder, _ERROR))
    for name in missing_results(folder):
        if name in failed:
            raise _load(folder, name + _ERROR)


def _names(folder: str, ending: str) -> list[str]:
    return sorted(name.removesuffix(ending) for name in storage.names(folder) if name.endswith(ending))


def _load(folder: str, file: str) -> Any:
    return pickle.loads(storage.read_bytes(storage.join(folder, file)))  # noqa: S301 - see above


def _work_item(content: bytes) -> tuple[Callable[[Any], Any], Any]:
    """Return a function and its item.

    Raises:
        UserError: Another version of this project has written them, whose results would have other bytes.
    """
    file = io.BytesIO(content)
    if (theirs := pickle.load(file)) != (own := versions.own()):  # noqa: S301 - see above
        raise UserError(
            f"the workers' image has another version of the trainer ({own}) than this step ({theirs}); compile the"
            " pipeline with a --cpu-image that does not change, such as NAME@sha256:DIGEST"
        )
    function, item = pickle.load(file)  # noqa: S301 - see above
    return function, item


def _portable(error: Exception) -> Exception:
    """Return an exception that any process can unpickle, with the message that the local engine would print."""
    if isinstance(error, UserError):
        return UserError(str(error))
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror, error.filename) if error.errno else OSError(str(error))
    frame = traceback.extract_tb(error.__traceback__)[-1]
    location = f"{os.path.basename(frame.filename)}, line {frame.lineno}"
    return TrainingError(f"a worker failed: {type(error).__name__}: {error} ({location})")

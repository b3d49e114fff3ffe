"""Applies a function to work items on workers of Apache Beam.

Beam passes only the names of work items, because a pipeline's description is limited to some megabytes. A runner may
process a name several times. Items and results are files in a folder. A `Run` starts and watches a pipeline.
"""

import contextlib
import functools
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from exact_resume.files import storage
from trainer.data.preparing.engines import exchange

T = TypeVar("T")
R = TypeVar("R")
Run = Callable[[str], None]
"""A function that processes all items of a folder without a result, and returns when all have one."""
WORK = "work"
"""Name of the folder that contains a folder per attempt."""


class Beam:
    """Applies functions on workers."""

    def __init__(self, folder: str, run: Run) -> None:
        """Set the folder and the runner.

        Args:
            folder: Local or gs://; all workers can read and write it.
            run: Processes the work items.
        """
        self.folder = storage.join(folder, WORK, uuid.uuid4().hex[:8])
        """Folder for the files of this attempt."""
        self.is_remote = storage.is_remote(folder)
        """Whether the workers may be other machines."""
        self._run = run
        self._num_calls = 0

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, in the order of the items, after all work is done.

        Args:
            function: A function of a module, or a partial of one. It must be idempotent: several machines may call it
                for the same item, even at the same time.
            items: Work items, which like the results can be pickled. Few are in memory at a time.

        Raises:
            UserError: The function raised it.
            OSError: The function raised it in every attempt, or the folder cannot be used.
            TrainingError: The workers failed for another reason in every attempt.
        """
        self._num_calls += 1
        folder = storage.join(self.folder, str(self._num_calls))
        try:
            if exchange.put(folder, function, items):
                self._run(folder)
            yield from exchange.results(folder)
        finally:
            _remove(folder)

    def close(self) -> None:
        """Remove the files of this attempt."""
        _remove(self.folder)


def build(pipeline: Any, folder: str) -> None:
    """Add the processing of all items of a folder without a result to a pipeline of Beam."""
    import apache_beam

    _ = (
        pipeline
        | "Names" >> apache_beam.Create(exchange.missing_results(folder))
        # Otherwise one worker would process all names that were created together.
        | "Distribute" >> apache_beam.Reshuffle()
        | "Work" >> apache_beam.Map(functools.partial(exchange.work, folder))
    )


def _remove(folder: str) -> None:
    # An error here is not one of the function.
    with contextlib.suppress(OSError):
        storage.remove_tree(folder)

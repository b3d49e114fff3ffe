"""Applies a function to work items on the workers of a runner of Apache Beam.

Beam passes names only, because a pipeline's description is limited to some megabytes, and a runner may run each name
several times. The items and results are files in a folder. How a run is started and watched is the part of `Run`.
"""

import contextlib
import functools
import importlib.util
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from trainer.data.preparing.engines import exchange
from trainer.files import storage
from vertex_gpu_training.userinput.errors import UserError

T = TypeVar("T")
R = TypeVar("R")
Run = Callable[[str], None]
"""Does the work of all items in a folder that have no result; returns when all have one, or raises."""
WORK = "work"
"""Name of a folder with a folder per attempt."""


class Beam:
    """Applies functions on workers."""

    def __init__(self, folder: str, run: Run) -> None:
        """Keep what is needed.

        Args:
            folder: Local or gs://; all workers can read and write it.
            run: Does the work.
        """
        self.folder = storage.join(folder, WORK, uuid.uuid4().hex[:8])
        """For files of this attempt."""
        self.is_remote = storage.is_remote(folder)
        """Whether the workers may be other machines."""
        self._run = run
        self._num_calls = 0

    @staticmethod
    def check() -> None:
        """Refuse to go on without Beam.

        Raises:
            UserError: It is not installed.
        """
        if importlib.util.find_spec("apache_beam") is None:
            raise UserError(
                "Apache Beam is not installed; run pip install -e '.[beam]' in the repository, or use"
                " prepare_engine=local"
            )

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, in the order of the items, after all work is done.

        Args:
            function: One of a module, or a partial of one. It may be called several times for an item, by several
                machines at the same time, too, and has to have the same result and effect each time.
            items: Can be pickled, like the results. Few are in memory at a time.

        Raises:
            UserError: The function raised it.
            OSError: The function raised it each time, or the folder cannot be used.
            TrainingError: The workers failed for another reason each time.
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
    """Add the work on all items of a folder that have no result to a pipeline of Beam."""
    import apache_beam

    _ = (
        pipeline
        | "Names" >> apache_beam.Create(exchange.missing(folder))
        # Without it, one worker would do all the work of the names that were created together.
        | "Distribute" >> apache_beam.Reshuffle()
        | "Work" >> apache_beam.Map(functools.partial(exchange.work, folder))
    )


def _remove(folder: str) -> None:
    # What fails here is not the work.
    with contextlib.suppress(OSError):
        storage.remove_tree(folder)

"""An engine on Apache Beam: the work items go through a folder, and a Beam pipeline calls the function for each.

Beam passes names only, because a pipeline's description is limited to some megabytes, and a runner may run each name
several times. Which runner it is and how a run is started and watched is the part of `Run`.
"""

import contextlib
import functools
import importlib.util
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from trainer.data.preparing.engines import exchange
from trainer.files import storage
from vertex_gpu_training.userinput.errors import UserError

if TYPE_CHECKING:
    import apache_beam

T = TypeVar("T")
R = TypeVar("R")
Run = Callable[[str], None]
"""Does the work of all items in a folder that have no result; returns when all have one, or raises."""


class Beam:
    """Workers of a Beam runner do the work."""

    def __init__(self, folder: str, run: Run) -> None:
        """Take a folder for work items and results, local or gs://, that all workers can read and write.

        Raises:
            UserError: Apache Beam is not installed.
        """
        if importlib.util.find_spec("apache_beam") is None:
            raise UserError(
                "Apache Beam is not installed; run pip install -e '.[beam]' in the repository, or use"
                " prepare_engine=local"
            )
        self._folder = folder
        self._run = run

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, after all work is done."""
        folder = storage.join(self._folder, f"work-{uuid.uuid4().hex[:8]}")
        try:
            if exchange.put(folder, function, items):
                self._run(folder)
            yield from exchange.results(folder)
        finally:
            # What fails here is not the work.
            with contextlib.suppress(OSError):
                storage.remove_tree(folder)


def build(pipeline: "apache_beam.Pipeline", folder: str) -> None:
    """Add the work on all items of a folder that have no result to a pipeline."""
    import apache_beam

    _ = (
        pipeline
        | "Names" >> apache_beam.Create(exchange.missing(folder))
        # Without it, one worker would do all the work of the names that were created together.
        | "Distribute" >> apache_beam.Reshuffle()
        | "Work" >> apache_beam.Map(functools.partial(_work, folder))
    )


def _work(folder: str, name: str) -> None:
    from apache_beam.metrics import Metrics

    exchange.work(folder, name)
    Metrics.counter("prepare", "work items done").inc()

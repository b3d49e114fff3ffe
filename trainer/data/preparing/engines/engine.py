"""What every engine offers, and which ones there are."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Applies functions to work items."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item, in the order of the items.

        Args:
            function: One of a module, or a partial of one. It may be called several times for an item, by several
                machines at the same time, too, and has to have the same result and effect each time.
            items: Can be pickled, like the results. An item is held in memory, so it is a part of the whole work.

        Raises:
            UserError: The function raised it, each time.
            OSError: The function raised it, each time, or a folder cannot be written.
            TrainingError: The workers fail for another reason.
        """
        ...


class Local:
    """This process does all the work, one item after the other; the functions use all cores."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result for each item."""
        return map(function, items)

"""Who is the champion after several runs: each reads, compares and sets the alias while the others wait.

The service has no conditional update of aliases, so that runs take turns by a lease in the pipeline root. It does not
bind users, or runs with another pipeline root: the champion is read right before and right after the alias is set.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from components.registry.labels import ALIASES
from components.registry.registry import Registry
from exact_resume.checkpoints.lease import Lease, NotHolder
from exact_resume.files import storage


@contextmanager
def in_turn(registry: Registry, version: str) -> Iterator[Lease]:
    """Wait until no other run changes the champion of the version's model; the repetition of a step does not wait.

    Args:
        registry: The Model Registry.
        version: Resource name of the version that may become the champion.

    Yields:
        The lease, to be checked before a change.
    """
    model = version.partition("@")[0].rpartition("/")[2]
    while True:
        lease = Lease(storage.join(registry.root, "training", "champions", model), version, report=print)
        # Its holder lives, and ends; or another run has taken it over at the same time.
        with suppress(NotHolder):
            lease.take({})
            break
    lease.keep(lambda error: None)
    try:
        yield lease
    finally:
        lease.release()


def take_over(registry: Registry, version: str, *, compared: str, wins: Callable[[str], bool]) -> str:
    """Make a version the champion, unless a champion that it was not compared with is better.

    Args:
        registry: The Model Registry.
        version: Resource name of the version.
        compared: Champion that it was compared with, and is to replace; empty: there was no champion.
        wins: Compares it with another champion; called once for each.

    Returns:
        Resource name of the champion; empty without a champion.

    Raises:
        NotHolder: This process was frozen, and another run has the turn.
    """
    results, is_set = {compared: True}, False
    with in_turn(registry, version) as lease:
        while True:
            found = registry.champion(version.partition("@")[0])
            champion = found.name if found else ""
            if champion == version:
                return champion
            if champion and champion not in results:
                results[champion], is_set = wins(champion), False
            elif is_set or not results.get(champion, True):
                # After the alias was set, only a user gives it back to a champion that was compared.
                return champion
            else:
                lease.check()
                registry.merge_aliases(version, ALIASES)
                is_set = True

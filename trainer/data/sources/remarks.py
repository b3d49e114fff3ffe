"""Images of a source that are skipped or used in part: counted by kind, with the first names of each kind."""

from collections import Counter
from collections.abc import Sequence

SYSTEM = "system or hidden files and folders, ignored"
OTHER = "files that are not images, ignored"
OUTSIDE = "images outside a class folder, ignored"
IRREGULAR = "FIFOs, sockets, devices and broken links, not read"
LOOPS = "links to a folder that contains them, not followed"
KERNEL = "folders of the operating system, not read"
MAX_NAMES = 10
"""Number of names that are kept of each kind."""
_MAX_LOGGED = 3


class Remarks:
    """Counts and first names by kind, in the order in which the kinds occur."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        """How many there are of each kind."""
        self.names: dict[str, list[str]] = {}

    def add(self, kind: str, *names: str, count: int = 1) -> None:
        """Count files or folders.

        Args:
            kind: A phrase that a number follows.
            names: Paths below the source.
            count: Their number.
        """
        self.counts[kind] += count
        kept = self.names.setdefault(kind, [])
        kept += names[: MAX_NAMES - len(kept)]

    def to_list(self) -> list[tuple[str, int, list[str]]]:
        """Return kind, count and first names, ready for JSON."""
        return [(kind, count, self.names[kind]) for kind, count in self.counts.items()]

    def describe(self) -> list[str]:
        """Return a phrase per kind for a single line."""
        return [f"{kind}: {count:,} ({first_names(names, count)})" for kind, count, names in self.to_list()]


def first_names(names: Sequence[str], count: int) -> str:
    """Return the first of `count` names as a printable list that has no line breaks."""
    shown = ["".join(c if c.isprintable() else "\ufffd" for c in name) for name in names[:_MAX_LOGGED]]
    return ", ".join(shown) + (f" and {count - len(shown):,} more" if count > len(shown) else "")

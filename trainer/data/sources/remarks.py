"""What is skipped of a source, or used only in part: every kind is counted, and its first names are kept."""

from collections.abc import Sequence

SYSTEM = "system or hidden files and folders, ignored"
OTHER = "files that are not images, ignored"
OUTSIDE = "images outside a class folder, ignored"
IRREGULAR = "FIFOs, sockets, devices and broken links, not read"
LOOPS = "links to a folder that contains them, not followed"
KERNEL = "folders of the operating system, not read"
_MAX_NAMES = 10
"""Number of names that are kept of each kind."""
_MAX_LOGGED = 3


class Remarks:
    """Counts and first names by kind, in the order in which the kinds occur."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._names: dict[str, list[str]] = {}

    def add(self, kind: str, name: str) -> None:
        """Count one file or folder.

        Args:
            kind: A phrase that a number follows.
            name: Path below the source.
        """
        self._counts[kind] = self.count(kind) + 1
        if len(names := self._names.setdefault(kind, [])) < _MAX_NAMES:
            names.append(name)

    def count(self, kind: str) -> int:
        """Return how many there are of a kind."""
        return self._counts.get(kind, 0)

    def to_list(self) -> list[tuple[str, int, list[str]]]:
        """Return kind, count and first names, ready for JSON."""
        return [(kind, count, self._names[kind]) for kind, count in self._counts.items()]

    def describe(self) -> list[str]:
        """Return a phrase per kind for a single line."""
        return [f"{kind}: {count:,} ({first_names(names, count)})" for kind, count, names in self.to_list()]


def first_names(names: Sequence[str], count: int) -> str:
    """Return the first of `count` names as a printable list that has no line breaks."""
    shown = ["".join(c if c.isprintable() else "\ufffd" for c in name) for name in names[:_MAX_LOGGED]]
    return ", ".join(shown) + (f" and {count - len(shown):,} more" if count > len(shown) else "")

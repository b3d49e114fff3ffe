"""The change of a model's versions that is in progress, in one file: a killed process leaves all of it or nothing.

Readers count the change as made as soon as it is certain, and the next writer completes it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from localvertex._base.userinput import atomic_write

FILE = "change.json"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A version that is added with aliases, or versions that are removed."""

    added: str = ""
    """The number of a version; until its folder exists, nothing has changed."""
    aliases: Sequence[str] = ()
    """Aliases that the new version takes."""
    removed: Mapping[str, bool] = field(default_factory=dict)
    """The numbers of versions, and whether the registry made the copy of their files."""

    def write(self, folder: Path) -> None:
        """Begin the change of the model in a folder."""
        atomic_write.write_text(folder / FILE, json.dumps(asdict(self)))


def read(folder: Path) -> Change:
    """Return the change of a model that is in progress; empty if there is no such file, or an edited one."""
    try:
        content = json.loads((folder / FILE).read_text())
        found = Change(added=content["added"], aliases=content["aliases"], removed=content["removed"])
        is_sound = all(each.isdecimal() for each in [found.added or "0", *dict(found.removed)])
        is_sound = is_sound and all(isinstance(each, str) for each in found.aliases)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Change()
    return found if is_sound else Change()


def end(folder: Path) -> None:
    """Mark the change of a model as complete."""
    (folder / FILE).unlink(missing_ok=True)

"""The record of a probe: what its last step wrote, here or on Vertex AI; strictly read, because others send it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import reading
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.shape import Wrong, check
from localvertex.values.facts import VARIABLES, facts, variables

FORMAT = "localvertex probe 1"
ON_VERTEX = "Vertex AI"
_MAX_NAMES = 1000
_ROLES = ("step", "primary", "worker")
_SHAPE = {
    "format!": frozenset({FORMAT}),
    "place!": frozenset({ON_VERTEX, "localvertex"}),
    "date!": re.compile(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII),
    "region!": re.compile("[a-z0-9-]{1,40}"),
    "names!": {f"{role}!": [re.compile("[A-Za-z_][A-Za-z0-9_]{0,79}")] for role in _ROLES},
    "facts!": {str: re.compile("[ -~]{1,120}")},
}


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record that has been checked."""

    content: JsonObject
    """Only the fields and facts that this version knows, as JSON."""

    @property
    def values(self) -> dict[str, str]:
        """Return the value of each fact of the table that was recorded, by its id.

        Without the names of one role, nothing is known about who has a variable.
        """
        names = self.content["names"]
        found = dict(self.content["facts"])
        for fact in facts().values() if all(names.values()) else ():
            if fact.group in VARIABLES and fact.group != "folder":
                found[fact.id] = " ".join(role for role in _ROLES if fact.name in names[role]) or "none"
        return found

    @property
    def others(self) -> list[str]:
        """Return the names of variables that the table lacks."""
        return sorted({name for names in self.content["names"].values() for name in names} - variables())


def recorded() -> list[str]:
    """Return the ids of the facts that the probe records."""
    return [each.id for each in facts().values() if not each.unrecorded]


def read(path: Path) -> Record:
    """Read a record.

    Raises:
        UserError: The file cannot be read, or is not the record of a probe.
    """
    name = reading.display(path)
    content = reading.parse_json(reading.read_bytes(path), name)
    try:
        check(content, _SHAPE)
        if unknown := sorted(content["facts"].keys() - recorded()):
            raise Wrong(f"this version records no fact {unknown[0][:60]!a}")
        if max(map(len, content["names"].values())) > _MAX_NAMES:
            raise Wrong(f"a process has more than {_MAX_NAMES} variables")
    except Wrong as wrong:
        raise UserError(
            f"{name} is not the record of a probe: {wrong}; give the artifact `probe` of this version's pipeline"
        ) from None
    checked = {field.strip("!"): content[field.strip("!")] for field in _SHAPE}
    return Record(content=checked | {"names": {role: content["names"][role] for role in _ROLES}})


def without_own_variables(found: Record) -> Record:
    """Leave out the names of the variables of this machine's user."""
    own = os.environ.keys() - variables()
    names = {role: sorted({*names} - own) for role, names in found.content["names"].items()}
    return Record(content=found.content | {"names": names})

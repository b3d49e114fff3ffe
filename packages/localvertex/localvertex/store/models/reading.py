"""Read the records of a model: its versions, their aliases in `aliases.json`, and their fields."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from os.path import isfile
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.store.models import change

DEFAULT, CHAMPION = "default", "champion"
"""The alias that every model has, by default of its first version, and the usual one of the version in production."""

MODEL, ALIASES = "model.json", "aliases.json"

FILES = "model"
"""The copy of the model's file or folder, next to model.json."""

SOURCE = "source_uri"
"""The field of model.json with the URI that the files were copied from."""

SHARED = "shared.json"
"""A file next to the versions, with the fields that belong to the model; without it, version 1 has them."""

_SHARED_FIELDS = ("display_name", "description", "labels")

NEWEST = "newest_version"
"""The field of shared.json with the highest number so far: as on Vertex AI, no number is given twice."""

VERSION_LABELS = "version_labels"
"""Field of model.json with the labels of this version only; default: the upload's labels, except of version 1."""

UPLOADED_BY = "uploaded_by"
"""The field of model.json with the step that uploaded the version, by the unique number of its run."""

ALIASED_BY = "aliased_by"
"""The field of model.json with the run whose step was the last one to give the version an alias, likewise."""

_ALIAS = re.compile(r"-?[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
"""The API's rule, by which a number is never an alias. A leading '-' removes the alias."""


class ModelRecords:
    """A model's folder in the registry, to read it.

    A change that a killed process left is read as it would be when it is complete.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def numbers(self) -> list[str]:
        """The versions, the oldest first; empty when the model does not exist."""
        return [*self._numbers()]

    def _numbers(self) -> Iterator[str]:
        removed = change.read(self.folder).removed
        return (each for each in self._folders if each not in removed and self._exists(each))

    @property
    def _oldest(self) -> str:
        """The oldest version, empty without one; lists ask for it once per version, so only one file is looked at."""
        return next(self._numbers(), "")

    @property
    def _folders(self) -> list[str]:
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        return sorted((each for each in names if each.isdecimal()), key=int)

    @property
    def next_number(self) -> str:
        """The number of the next version."""
        known = [int(each) for each in self._folders]
        with suppress(OSError, ValueError):
            newest = object_in(self.folder / SHARED).get(NEWEST)
            known += [newest] if isinstance(newest, int) else []
        return str(max(known, default=0) + 1)

    @property
    def aliases(self) -> dict[str, str]:
        """The version of each alias, in the order of assignment. A model has a default as soon as it has a version.

        Raises:
            ValueError: The file that has them is damaged.
        """
        assigned = self.assigned
        if DEFAULT in assigned or not (oldest := self._oldest):
            return assigned
        return {DEFAULT: oldest, **assigned}

    @property
    def assigned(self) -> dict[str, str]:
        """The aliases without the default of a model that never named one, which comes first until it is assigned.

        An alias of a version that was removed by hand does not count.
        """
        path = self.folder / ALIASES
        while True:
            found, pending = object_in(path) if path.is_file() else {}, change.read(self.folder)
            if not all(isinstance(each, str) for each in found.values()):
                raise ValueError(f"{path} is damaged: expected the number of a version, as text, for each alias")
            is_added = bool(pending.added) and self._exists(pending.added)
            every = merge_aliases(found, pending.added, pending.aliases) if is_added else found
            kept = {name: each for name, each in every.items() if each not in pending.removed and self._exists(each)}
            # A version can be removed between the two readings, after its aliases have moved to another version.
            if len(kept) == len(every) or found == (object_in(path) if path.is_file() else {}):
                return kept

    def aliases_of(self, number: str) -> list[str]:
        """Return the aliases of a version, see `aliases`."""
        return [alias for alias, each in self.aliases.items() if each == number]

    @property
    def shared(self) -> JsonObject:
        """The fields of the model, which all versions share; empty when the file that has them is damaged."""
        path = self.folder / SHARED
        try:
            source = object_in(path if path.is_file() else self.folder / self._oldest / MODEL)
        except (OSError, ValueError):
            return {}
        return {name: source[name] for name in _SHARED_FIELDS if name in source}

    def number(self, name: str) -> str:
        """Return the version with this number or alias.

        Raises:
            LookupError: The model does not exist, or has no such version.
        """
        number = self.aliases.get(name, name)
        # After the aliases, which may name a version that has just been added.
        if number.isdecimal() and number not in change.read(self.folder).removed and self._exists(number):
            return number
        numbers = self.numbers
        if not numbers:
            raise LookupError(f"the model {self.folder.name!r} is not in {self.folder.parent}")
        raise LookupError(f"the model {self.folder.name!r} has no version {name!r}; it has {', '.join(numbers)}")

    def content(self, number: str) -> JsonObject:
        """Return the content of a version's model.json, with the fields that it shares with the other versions.

        Raises:
            ValueError: It is damaged.
        """
        own, shared = object_in(self.folder / number / MODEL), self.shared
        if SOURCE in own:
            # The work folder may have been moved or copied since.
            own["artifact_uri"] = str(self.folder.absolute() / number / FILES)
        of_version = own.get(VERSION_LABELS, {} if number == "1" else own.get("labels"))
        labels = {**_labels(shared.pop("labels", {})), **_labels(of_version)}
        hidden = (*_SHARED_FIELDS, VERSION_LABELS, UPLOADED_BY, ALIASED_BY)
        kept = {name: value for name, value in own.items() if name not in hidden}
        return kept | shared | ({"labels": labels} if labels else {})

    def _exists(self, number: str) -> bool:
        # Lists look at each version, and a path as text takes a fifth of the time.
        return isfile(f"{self.folder}/{number}/{MODEL}")


def check_alias(alias: str) -> None:
    """Check a version alias.

    Raises:
        ValueError: It does not match the API's rule.
    """
    if not _ALIAS.fullmatch(alias):
        raise ValueError(f"version alias {alias[:140]!r}: expected lower-case letters, digits and '-', a letter first")


def merge_aliases(assigned: dict[str, str], number: str, aliases: Sequence[str]) -> dict[str, str]:
    """Return the aliases after a version took some and lost those with a leading '-'.

    As in the service, an alias that is both given and removed stays where it is.
    """
    found = dict(assigned)
    for alias in aliases:
        name = alias.removeprefix("-")
        if {name, f"-{name}"} <= set(aliases):
            continue
        if not alias.startswith("-"):
            if found.get(alias) != number:
                found.pop(alias, None)
            found[alias] = number
        elif found.get(name) == number:
            del found[name]
    return found


def object_in(path: Path) -> JsonObject:
    """Read a JSON object.

    Raises:
        ValueError: The file has other content.
    """
    try:
        content = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: expected an object, found {type(content).__name__}")
    return content


def _labels(value: Any) -> JsonObject:
    """Return labels as an object, which a file that was edited by hand may not contain."""
    return value if isinstance(value, dict) else {}

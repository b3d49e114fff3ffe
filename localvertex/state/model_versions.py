"""The versions of a model in the local registry and their aliases, which `aliases.json` contains."""

import json
import os
import re
from contextlib import suppress
from os.path import isfile
from pathlib import Path
from typing import Any

from localvertex.state import executor_files, registry
from vertex_gpu_training.userinput import files

DEFAULT = "default"
"""The alias that every model has, by default of its first version."""

_ALIASES = "aliases.json"

_MODEL = "model.json"

_SHARED = "shared.json"
"""A file next to the versions, with the fields that belong to the model; without it they are those of version 1."""

_SHARED_FIELDS = ("display_name", "description", "labels")

_VERSION_LABELS = "version_labels"
"""The field of model.json with the labels of this version only; without it those of the upload, except of version 1."""

_ALIAS = re.compile(r"-?[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
"""The API's rule, by which a number is never an alias. A leading '-' removes the alias."""


class ModelVersions:
    """A model's folder in the registry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, work_dir: Path, model_id: str) -> "ModelVersions":
        """Return the versions of a model of the work directory; it has none if it does not exist."""
        return cls(work_dir / "models" / model_id)

    @property
    def numbers(self) -> list[str]:
        """The versions, the oldest first; empty when the model does not exist."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        # Lists look at each version, and a path as text takes a fifth of the time.
        return sorted(
            (each for each in names if each.isdecimal() and isfile(f"{self.folder}/{each}/{_MODEL}")), key=int
        )

    @property
    def aliases(self) -> dict[str, str]:
        """The version of each alias, in the order of assignment. A model has a default as soon as it has a version."""
        stored = self._stored_aliases
        return stored if DEFAULT in stored else {DEFAULT: self.numbers[0], **stored}

    @property
    def _stored_aliases(self) -> dict[str, str]:
        path = self.folder / _ALIASES
        stored: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
        return stored

    @property
    def shared(self) -> dict[str, Any]:
        """The fields of the model, which all versions share; empty when the file that has them is damaged."""
        path = self.folder / _SHARED
        try:
            source = json.loads(path.read_text()) if path.is_file() else self._own(self.numbers[0])
        except (OSError, ValueError):
            return {}
        return {name: source[name] for name in _SHARED_FIELDS if name in source}

    def number(self, name: str) -> str:
        """Return the version with this number or alias.

        Raises:
            LookupError: The model does not exist, or has no such version.
        """
        numbers = self.numbers
        if not numbers:
            raise LookupError(f"the model {self.folder.name!r} is not in {self.folder.parent}")
        number = self.aliases.get(name, name)
        if number not in numbers:
            raise LookupError(f"the model {self.folder.name!r} has no version {name!r}; it has {', '.join(numbers)}")
        return number

    def content(self, number: str) -> dict[str, Any]:
        """Return the content of a version's model.json, with the fields that it shares with the other versions.

        Raises:
            ValueError: It is damaged.
        """
        own, shared = self._own(number), self.shared
        labels = {**shared.pop("labels", {}), **_labels_of_version(own, number)}
        kept = {name: value for name, value in own.items() if name not in (*_SHARED_FIELDS, _VERSION_LABELS)}
        return kept | shared | ({"labels": labels} if labels else {})

    def _own(self, number: str) -> dict[str, Any]:
        path = self.folder / number / _MODEL
        try:
            content = json.loads(path.read_text())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        if not isinstance(content, dict):
            raise ValueError(f"{path} is damaged: expected an object, found {type(content).__name__}")
        return content

    def merge(self, number: str, aliases: list[str]) -> None:
        """Move aliases to a version; remove those with a leading '-' from it.

        Raises:
            ValueError: An alias does not match the API's rule, or the default would be removed.
        """
        # Without the default of a model that never named one, so that it comes where it is assigned.
        merged = self._stored_aliases
        for alias in aliases:
            check_alias(alias)
            if not alias.startswith("-"):
                if merged.get(alias) != number:
                    merged.pop(alias, None)
                merged[alias] = number
            elif alias == f"-{DEFAULT}":
                raise ValueError(f"the alias {DEFAULT!r} cannot be removed, only moved to another version")
            elif merged.get(alias[1:]) == number:
                del merged[alias[1:]]
        _write(self.folder / _ALIASES, merged)

    def change(self, number: str, fields: dict[str, Any]) -> None:
        """Replace fields of a version; None removes a field. Labels become those of this version only."""
        if "labels" in fields:
            fields = {**fields, _VERSION_LABELS: fields.get("labels") or {}}
            del fields["labels"]
        content = self._own(number) | fields
        _write(self.folder / number / _MODEL, {key: value for key, value in content.items() if value is not None})

    def change_shared(self, fields: dict[str, Any]) -> None:
        """Replace fields of the model in all its versions; None removes a field."""
        content = self.shared | fields
        _write(self.folder / _SHARED, {key: value for key, value in content.items() if value is not None})

    def remove(self, number: str) -> None:
        """Delete a version and its aliases; files that the registry did not make stay.

        Raises:
            ValueError: The version's entry is damaged or a link, so that the files of the registry are unknown.
        """
        folder = self.folder / number
        if self.folder.is_symlink() or folder.is_symlink():
            raise ValueError(
                f"{folder} is reached through a link, which the registry does not make; remove it yourself"
            )
        content = self._own(number)
        if len(self.numbers) > 1:
            self.change_shared({})
        # Nothing in a damaged file can be kept.
        with suppress(ValueError, TypeError, RecursionError):
            _write(self.folder / _ALIASES, {alias: each for alias, each in self.aliases.items() if each != number})
        if registry.SOURCE in content:
            executor_files.remove(folder / registry.FILES)
        # The entry is last: a deletion that was interrupted can be repeated.
        (folder / _MODEL).unlink()
        with suppress(OSError):
            folder.rmdir()

    def delete(self) -> list[str]:
        """Delete all versions, and return the names of the entries that stay, because the registry did not make them.

        Raises:
            ValueError: See `remove`; earlier versions may be deleted.
        """
        for number in self.numbers:
            self.remove(number)
        for name in (_ALIASES, _SHARED):
            (self.folder / name).unlink(missing_ok=True)
        left = sorted(each.name for each in self.folder.iterdir())
        if not left:
            self.folder.rmdir()
        return left


def check_alias(alias: str) -> None:
    """Check a version alias.

    Raises:
        ValueError: It does not match the API's rule.
    """
    if not _ALIAS.fullmatch(alias):
        raise ValueError(f"version alias {alias[:140]!r}: expected lower-case letters, digits and '-', a letter first")


def _labels_of_version(own: dict[str, Any], number: str) -> dict[str, Any]:
    """Return the labels in the content of a version that are not the model's."""
    uploaded = {} if number == "1" else own.get("labels") or {}
    labels: dict[str, Any] = own.get(_VERSION_LABELS, uploaded)
    return labels


def _write(path: Path, content: dict[str, Any]) -> None:
    files.write_text(path, json.dumps(content, indent=1))

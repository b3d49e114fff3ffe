"""The versions of one model of the registry, and the names that they have besides their numbers."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from localvertex.serve.api import messages
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import ApiError, invalid, not_found
from userinput import files

DEFAULT = "default"

ALIASES = "aliases.json"
"""Beside the versions: the number of the version that each alias stands for."""

ALIAS = re.compile(r"-?[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
"""The API's rule; a number is never an alias. A '-' before it takes it away."""

OWN_FIELDS = ("model_id", "version", "create_time")
"""What the registry notes beside the Model message."""


class ModelVersions:
    """A model's folder: `<version>/model.json` and the aliases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def numbers(self) -> list[str]:
        """The versions, the oldest first; empty when there is no such model."""
        found = self.folder.iterdir() if self.folder.is_dir() else []
        return sorted((each.name for each in found if each.name.isdigit()), key=int)

    @property
    def aliases(self) -> dict[str, str]:
        """The version of each alias. A model has a default from its first version on."""
        path = self.folder / ALIASES
        stored = json.loads(path.read_text()) if path.is_file() else {}
        return {DEFAULT: self.numbers[0], **stored}

    def number(self, name: str) -> str:
        """The version of a number or an alias.

        Raises:
            ApiError: there is none.
        """
        number = self.aliases.get(name, name)
        if number not in self.numbers:
            raise not_found(f"version {name!r} of the model {self.folder.name}")
        return number

    @staticmethod
    def check_alias(alias: str) -> None:
        """Refuses what is no alias.

        Raises:
            ApiError: in one line.
        """
        if not ALIAS.fullmatch(alias):
            raise invalid(
                f"version alias {alias[:140]!r}: lower-case letters, digits and '-', a letter first, expected"
            )

    def merge(self, number: str, aliases: list[str]) -> None:
        """Moves aliases to a version; one with a '-' before it is taken away from it."""
        merged = self.aliases
        for alias in aliases:
            self.check_alias(alias)
            if not alias.startswith("-"):
                merged[alias] = number
            elif alias == f"-{DEFAULT}":
                raise invalid("the alias 'default' cannot be taken away, only given to another version")
            elif merged.get(alias[1:]) == number:
                del merged[alias[1:]]
        _write(self.folder / ALIASES, merged)

    def change(self, number: str, fields: dict[str, Any]) -> None:
        """Replaces fields of a version; None removes one."""
        path = self.folder / number / "model.json"
        content = json.loads(path.read_text()) | fields
        _write(path, {key: value for key, value in content.items() if value is not None})

    def remove(self, number: str) -> None:
        """Removes a version and its aliases."""
        _write(self.folder / ALIASES, {alias: each for alias, each in self.aliases.items() if each != number})
        shutil.rmtree(self.folder / number)

    def view(self, call: Call, number: str) -> dict[str, Any]:
        """A version as a Model resource."""
        content = json.loads((self.folder / number / "model.json").read_text())
        message = {key: value for key, value in content.items() if key not in OWN_FIELDS}
        try:
            model = messages.normalised(call.version, "Model", message)
        except ApiError:
            # A pipeline may have registered what the API would not have taken.
            model = {
                "displayName": str(content.get("display_name", "")),
                "artifactUri": str(content.get("artifact_uri", "")),
            }
        created = str(content.get("create_time", "")).replace("+00:00", "Z")
        return model | {
            "name": call.location.child("models", self.folder.name),
            "versionId": number,
            "versionAliases": sorted(alias for alias, each in self.aliases.items() if each == number),
            "createTime": created,
            "updateTime": created,
            "versionCreateTime": created,
            "versionUpdateTime": created,
        }


def _write(path: Path, content: dict[str, Any]) -> None:
    files.write_text(path, json.dumps(content, indent=1))

"""models: versions and aliases in the local registry that `localvertex run` also writes to.

The registry belongs to the work directory, not to a project or region, so every location shows all of it.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

from localvertex.serve.api import messages
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import ApiError, Status, invalid, not_found
from localvertex.serve.api.listing import page
from localvertex.serve.api.operations import TYPES, Operations
from localvertex.serve.api.store import ID, Store
from localvertex.state import registry
from userinput import files
from userinput.spelling import camel, snake

_COLLECTION = "models"

_CHANGEABLE = ("displayName", "description", "versionDescription", "labels")

_DEFAULT = "default"

_ALIASES = "aliases.json"
"""A file next to the versions, with the version number of each alias."""

_ALIAS = re.compile(r"-?[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
"""The API's rule, by which a number is never an alias. A leading '-' removes the alias."""

_OWN_FIELDS = ("model_id", "version", "create_time", registry.SOURCE)
"""Fields of the registry that the Model message does not have."""


class Models:
    """The models of the API."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store, self._operations = store, operations
        self._work_dir = store.folder.parent

    def upload(self, call: Call) -> dict[str, Any]:
        """Add a model, or a version to `parentModel`."""
        body = messages.normalised(call.version, "UploadModelRequest", call.body, snake_case=True)
        content, parent = body.get("model", {}), body.get("parent_model", "")
        if not content.get("display_name"):
            raise invalid("model.displayName is missing")
        aliases = content.pop("version_aliases", [])
        with self._store.lock:
            model_id = self._parent_id(call, parent) if parent else self._new_id(call, body.get("model_id", ""))
            for alias in aliases:
                ModelVersions.check_alias(alias)
            try:
                version = registry.add_version(self._work_dir, model_id, content)
            except OSError as error:
                raise invalid(f"model.artifactUri: its files cannot be copied into the registry: {error}") from None
            self._versions(model_id).merge(str(version.number), aliases)
        response = {"@type": f"{TYPES}.{call.version}.UploadModelResponse"}
        response |= {"model": call.location.child(_COLLECTION, model_id), "modelVersionId": str(version.number)}
        return self._operations.done(call, "UploadModelOperationMetadata", response)

    def get(self, call: Call) -> dict[str, Any]:
        """Return the version with the given number or alias, by default the default version."""
        versions = self._found(call)
        return versions.view(call, versions.number(call.resource_version or _DEFAULT))

    def list_all(self, call: Call) -> dict[str, Any]:
        """List all models, each in its default version."""
        folder = self._work_dir / _COLLECTION
        ids = [each.name for each in folder.iterdir() if ID.fullmatch(each.name)] if folder.is_dir() else []
        every = [(versions, versions.number(_DEFAULT)) for each in ids if (versions := self._versions(each)).numbers]
        fields = messages.field_names(call.version, "Model")
        return page(call, _COLLECTION, [versions.view(call, number) for versions, number in every], fields=fields)

    def list_versions(self, call: Call) -> dict[str, Any]:
        """List all versions of a model."""
        versions = self._found(call)
        fields = messages.field_names(call.version, "Model")
        return page(call, _COLLECTION, [versions.view(call, each) for each in versions.numbers], fields=fields)

    def patch(self, call: Call) -> dict[str, Any]:
        """Change the fields of a version that the mask names."""
        body = messages.normalised(call.version, "Model", call.body, snake_case=True)
        named = [camel(each.strip()) for each in call.query.get("updateMask", "").split(",")]
        if set(named) - set(_CHANGEABLE):
            raise invalid(f"updateMask {','.join(named)[:200]!r}: expected some of {', '.join(_CHANGEABLE)}")
        with self._store.lock:
            versions = self._found(call)
            number = versions.number(call.resource_version or _DEFAULT)
            versions.change(number, {snake(name): body.get(snake(name)) for name in named})
        return versions.view(call, number)

    def merge_version_aliases(self, call: Call) -> dict[str, Any]:
        """Add aliases to a version, or remove those with a leading `-`."""
        with self._store.lock:
            versions = self._found(call)
            number = versions.number(call.resource_version or _DEFAULT)
            aliases = call.body.get("versionAliases", call.body.get("version_aliases"))
            if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
                raise invalid("versionAliases: expected a list of strings")
            versions.merge(number, aliases)
        return versions.view(call, number)

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a model with all its versions and their copies of files; the files that were uploaded stay."""
        with self._store.lock:
            shutil.rmtree(self._found(call).folder)
        return self._operations.done(call, "DeleteOperationMetadata")

    def delete_version(self, call: Call) -> dict[str, Any]:
        """Delete a version that is not the default."""
        with self._store.lock:
            versions = self._found(call)
            number = versions.number(call.resource_version or _DEFAULT)
            if number == versions.number(_DEFAULT):
                raise ApiError(Status.FAILED_PRECONDITION, f"version {number} is the default; delete the model instead")
            versions.remove(number)
        return self._operations.done(call, "DeleteOperationMetadata")

    def _versions(self, model_id: str) -> "ModelVersions":
        return ModelVersions(self._work_dir / _COLLECTION / model_id)

    def _found(self, call: Call) -> "ModelVersions":
        versions = self._versions(call.resource_id)
        if not versions.numbers:
            raise not_found(call.location.child(_COLLECTION, call.resource_id))
        return versions

    def _parent_id(self, call: Call, parent: str) -> str:
        prefix = f"{call.location.child(_COLLECTION, '')}"
        model_id = parent.removeprefix(prefix).partition("@")[0]
        if not ID.fullmatch(model_id) or not self._versions(model_id).numbers:
            raise not_found(parent[:300])
        return model_id

    def _new_id(self, call: Call, wanted: str) -> str:
        if wanted and not ID.fullmatch(wanted):
            raise invalid(f"modelId {wanted[:100]!r}: expected letters, digits, '-' and '_'")
        if wanted and self._versions(wanted).numbers:
            raise ApiError(Status.ALREADY_EXISTS, f"{call.location.child(_COLLECTION, wanted)} already exists")
        return wanted or str(uuid4().int >> 66)


class ModelVersions:
    """A model's folder in the registry: `<version>/model.json` and the aliases."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def numbers(self) -> list[str]:
        """The versions, the oldest first; empty when the model does not exist."""
        found = self.folder.iterdir() if self.folder.is_dir() else []
        return sorted((each.name for each in found if each.name.isdigit()), key=int)

    @property
    def aliases(self) -> dict[str, str]:
        """The version of each alias. A model has a default as soon as it has a version."""
        path = self.folder / _ALIASES
        stored = json.loads(path.read_text()) if path.is_file() else {}
        return {_DEFAULT: self.numbers[0], **stored}

    def number(self, name: str) -> str:
        """Return the version with this number or alias.

        Raises:
            ApiError: The model has no such version.
        """
        number = self.aliases.get(name, name)
        if number not in self.numbers:
            raise not_found(f"version {name!r} of the model {self.folder.name}")
        return number

    @staticmethod
    def check_alias(alias: str) -> None:
        """Refuse a name that is not an alias.

        Raises:
            ApiError: The name does not match the API's rule.
        """
        if not _ALIAS.fullmatch(alias):
            raise invalid(f"version alias {alias[:140]!r}: expected lower-case letters, digits and '-', a letter first")

    def merge(self, number: str, aliases: list[str]) -> None:
        """Move aliases to a version; remove those with a leading '-' from it."""
        merged = self.aliases
        for alias in aliases:
            self.check_alias(alias)
            if not alias.startswith("-"):
                merged[alias] = number
            elif alias == f"-{_DEFAULT}":
                raise invalid("the alias 'default' cannot be removed, only moved to another version")
            elif merged.get(alias[1:]) == number:
                del merged[alias[1:]]
        _write(self.folder / _ALIASES, merged)

    def change(self, number: str, fields: dict[str, Any]) -> None:
        """Replace fields of a version; None removes a field."""
        path = self.folder / number / "model.json"
        content = json.loads(path.read_text()) | fields
        _write(path, {key: value for key, value in content.items() if value is not None})

    def remove(self, number: str) -> None:
        """Delete a version and its aliases."""
        _write(self.folder / _ALIASES, {alias: each for alias, each in self.aliases.items() if each != number})
        shutil.rmtree(self.folder / number)

    def view(self, call: Call, number: str) -> dict[str, Any]:
        """Build the Model resource of a version."""
        content = json.loads((self.folder / number / "model.json").read_text())
        message = {key: value for key, value in content.items() if key not in _OWN_FIELDS}
        try:
            model = messages.normalised(call.version, "Model", message)
        except ApiError:
            # A pipeline may have registered a model that the API would have refused.
            model = {
                "displayName": str(content.get("display_name", "")),
                "artifactUri": str(content.get("artifact_uri", "")),
            }
        created = str(content.get("create_time", "")).replace("+00:00", "Z")
        return model | {
            "name": call.location.child(_COLLECTION, self.folder.name),
            "versionId": number,
            "versionAliases": sorted(alias for alias, each in self.aliases.items() if each == number),
            "createTime": created,
            "updateTime": created,
            "versionCreateTime": created,
            "versionUpdateTime": created,
        }


def _write(path: Path, content: dict[str, Any]) -> None:
    files.write_text(path, json.dumps(content, indent=1))

"""models: the local registry of `localvertex run`, so what pipelines register is found here, and the other way round.

The registry belongs to the work directory, not to a project or region: every location shows it.
"""

import shutil
from typing import Any
from uuid import uuid4

from localvertex.serve.api import messages
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import ApiError, Status, invalid, not_found
from localvertex.serve.api.listing import page
from localvertex.serve.api.operations import TYPES, Operations
from localvertex.serve.api.store import ID, Store
from localvertex.serve.model_versions import DEFAULT, ModelVersions
from localvertex.state import registry

COLLECTION = "models"

CHANGEABLE = ("displayName", "description", "versionDescription", "labels")


class Models:
    """The models of the API."""

    def __init__(self, store: Store, operations: Operations) -> None:
        self._store, self._operations = store, operations
        self._work_dir = store.folder.parent

    def upload(self, call: Call) -> dict[str, Any]:
        """A new model, or a new version of `parentModel`."""
        body = messages.normalised(call.version, "UploadModelRequest", call.body, snake_case=True)
        content, parent = body.get("model", {}), body.get("parent_model", "")
        if not content.get("display_name"):
            raise invalid("model.displayName is missing")
        aliases = content.pop("version_aliases", [])
        with self._store.lock:
            model_id = self._parent_id(call, parent) if parent else self._new_id(call, body.get("model_id", ""))
            for alias in aliases:
                ModelVersions.check_alias(alias)
            version = registry.add_version(self._work_dir, model_id, content)
            self._versions(model_id).merge(str(version.number), aliases)
        response = {"@type": f"{TYPES}.{call.version}.UploadModelResponse"}
        response |= {"model": call.location.child(COLLECTION, model_id), "modelVersionId": str(version.number)}
        return self._operations.done(call, "UploadModelOperationMetadata", response)

    def get(self, call: Call) -> dict[str, Any]:
        """A version: the one that is named by number or alias, else the default."""
        versions = self._found(call)
        return versions.view(call, versions.number(call.resource_version or DEFAULT))

    def list_all(self, call: Call) -> dict[str, Any]:
        """All models, each in its default version."""
        folder = self._work_dir / COLLECTION
        ids = [each.name for each in folder.iterdir() if ID.fullmatch(each.name)] if folder.is_dir() else []
        every = [(versions, versions.number(DEFAULT)) for each in ids if (versions := self._versions(each)).numbers]
        fields = messages.field_names(call.version, "Model")
        return page(call, COLLECTION, [versions.view(call, number) for versions, number in every], fields=fields)

    def list_versions(self, call: Call) -> dict[str, Any]:
        """All versions of a model."""
        versions = self._found(call)
        fields = messages.field_names(call.version, "Model")
        return page(call, COLLECTION, [versions.view(call, each) for each in versions.numbers], fields=fields)

    def patch(self, call: Call) -> dict[str, Any]:
        """Changes the fields of a version that the mask names."""
        body = messages.normalised(call.version, "Model", call.body, snake_case=True)
        named = [messages.camel_case(each.strip()) for each in call.query.get("updateMask", "").split(",")]
        if set(named) - set(CHANGEABLE):
            raise invalid(f"updateMask {','.join(named)[:200]!r}: some of {', '.join(CHANGEABLE)} expected")
        with self._store.lock:
            versions = self._found(call)
            number = versions.number(call.resource_version or DEFAULT)
            versions.change(number, {messages.snake_case(name): body.get(messages.snake_case(name)) for name in named})
        return versions.view(call, number)

    def merge_version_aliases(self, call: Call) -> dict[str, Any]:
        """Gives a version further names, or with a `-` before them takes them away."""
        with self._store.lock:
            versions = self._found(call)
            number = versions.number(call.resource_version or DEFAULT)
            aliases = call.body.get("versionAliases", call.body.get("version_aliases"))
            if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
                raise invalid("versionAliases: a list of texts expected")
            versions.merge(number, aliases)
        return versions.view(call, number)

    def delete(self, call: Call) -> dict[str, Any]:
        """Removes a model with all its versions; the files that it names stay."""
        with self._store.lock:
            shutil.rmtree(self._found(call).folder)
        return self._operations.done(call, "DeleteOperationMetadata")

    def delete_version(self, call: Call) -> dict[str, Any]:
        """Removes a version that is not the default."""
        with self._store.lock:
            versions = self._found(call)
            number = versions.number(call.resource_version or DEFAULT)
            if number == versions.number(DEFAULT):
                raise ApiError(Status.FAILED_PRECONDITION, f"version {number} is the default; delete the model instead")
            versions.remove(number)
        return self._operations.done(call, "DeleteOperationMetadata")

    def _versions(self, model_id: str) -> ModelVersions:
        return ModelVersions(self._work_dir / COLLECTION / model_id)

    def _found(self, call: Call) -> ModelVersions:
        versions = self._versions(call.resource_id)
        if not versions.numbers:
            raise not_found(call.location.child(COLLECTION, call.resource_id))
        return versions

    def _parent_id(self, call: Call, parent: str) -> str:
        prefix = f"{call.location.child(COLLECTION, '')}"
        model_id = parent.removeprefix(prefix).partition("@")[0]
        if not ID.fullmatch(model_id) or not self._versions(model_id).numbers:
            raise not_found(parent[:300])
        return model_id

    def _new_id(self, call: Call, wanted: str) -> str:
        if wanted and not ID.fullmatch(wanted):
            raise invalid(f"modelId {wanted[:100]!r}: letters, digits, '-' and '_' expected")
        if wanted and self._versions(wanted).numbers:
            raise ApiError(Status.ALREADY_EXISTS, f"{call.location.child(COLLECTION, wanted)} exists already")
        return wanted or str(uuid4().int >> 66)

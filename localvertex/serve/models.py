"""models: versions and aliases in the local registry that `localvertex run` also writes to.

The registry belongs to the work directory, not to a project or region, so every location shows all of it.
"""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from localvertex.serve.api import messages
from localvertex.serve.api.call import Call
from localvertex.serve.api.errors import ApiError, Status, invalid, not_found
from localvertex.serve.api.listing import page
from localvertex.serve.api.operations import TYPES, Operations
from localvertex.serve.api.store import ID, UNUSABLE, Store
from localvertex.state import registry
from localvertex.state.model_versions import DEFAULT, ModelVersions, check_alias
from vertex_gpu_training.userinput.spelling import camel, snake

_COLLECTION = "models"

_MODEL_FIELDS = ("displayName", "description", "labels")

_VERSION_FIELDS = ("versionDescription", "labels")

_ALL_VERSIONS = "-"
"""In place of a version: the model itself."""

_FILTER_FIELDS = {"model", "baseModelName"}
"""Fields that exist in filters only."""

_DEPLOYABLE = {"supportedDeploymentResourcesTypes": ["DEDICATED_RESOURCES"]}
"""What a model with a serving container can be deployed to."""

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
        messages.check_names(content)
        if not content.get("display_name"):
            raise invalid("model.displayName is missing")
        aliases = content.pop("version_aliases", [])
        with self._store.lock:
            model_id = self._parent_id(call, parent) if parent else self._new_id(call, body.get("model_id", ""))
            if parent:
                # Before the files are copied.
                _number(self._versions(model_id), DEFAULT)
            try:
                for alias in aliases:
                    check_alias(alias)
                version = registry.add_version(self._work_dir, model_id, content)
            except ValueError as error:
                raise invalid(str(error)) from None
            except OSError as error:
                raise invalid(f"model.artifactUri: its files cannot be copied into the registry: {error}") from None
            self._versions(model_id).merge(str(version.number), aliases)
        response = {"@type": f"{TYPES}.{call.version}.UploadModelResponse"}
        response |= {"model": call.location.child(_COLLECTION, model_id), "modelVersionId": str(version.number)}
        return self._operations.done(call, "UploadModelOperationMetadata", response)

    def get(self, call: Call) -> dict[str, Any]:
        """Return the version with the given number or alias, by default the default version."""
        name = call.resource_version
        return self._view(call, self._found(call), name or DEFAULT, is_version=bool(name))

    def list_all(self, call: Call) -> dict[str, Any]:
        """List all models, each in its default version."""
        folder = self._work_dir / _COLLECTION
        ids = [each.name for each in folder.iterdir() if ID.fullmatch(each.name)] if folder.is_dir() else []
        models = [self._view(call, versions, DEFAULT) for each in ids if (versions := self._versions(each)).numbers]
        fields = messages.field_names(call.version, "Model") | _FILTER_FIELDS
        return page(call, _COLLECTION, models, fields=fields, searchable=_searchable)

    def list_versions(self, call: Call) -> dict[str, Any]:
        """List all versions of a model, the oldest first unless the request has another order."""
        versions = self._found(call)
        call = replace(call, query={**call.query, "orderBy": call.query.get("orderBy") or "createTime"})
        every = [self._view(call, versions, each, is_version=True) for each in versions.numbers]
        fields = messages.field_names(call.version, "Model") | _FILTER_FIELDS
        return page(call, _COLLECTION, every, fields=fields, searchable=_searchable)

    def patch(self, call: Call) -> dict[str, Any]:
        """Change the fields that the mask names: of one version if the name contains it, else of all versions."""
        body = messages.checked(call.version, "Model", call.body, snake_case=True)
        named = [camel(each.strip()) for each in call.query.get("updateMask", "").split(",")]
        is_version = call.resource_version not in ("", _ALL_VERSIONS)
        _check_mask(named, is_version=is_version)
        fields = {snake(name): body.get(snake(name)) for name in named}
        with self._store.lock:
            versions = self._found(call)
            number = _number(versions, call.resource_version if is_version else DEFAULT)
            if is_version:
                versions.change(number, fields)
            else:
                versions.change_shared(fields)
        return _view(call, versions, number, is_version=is_version)

    def merge_version_aliases(self, call: Call) -> dict[str, Any]:
        """Add aliases to a version, or remove those with a leading `-`."""
        with self._store.lock:
            versions = self._found(call)
            number = _number(versions, call.resource_version or DEFAULT)
            aliases = call.body.get("versionAliases", call.body.get("version_aliases"))
            if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
                raise invalid("versionAliases: expected a list of strings")
            try:
                versions.merge(number, aliases)
            except ValueError as error:
                raise invalid(str(error)) from None
        return _view(call, versions, number, is_version=bool(call.resource_version))

    def delete(self, call: Call) -> dict[str, Any]:
        """Delete a model with all its versions and their copies of files; the files that were uploaded stay."""
        with self._store.lock:
            try:
                self._found(call).delete()
            except ValueError as error:
                raise ApiError(Status.FAILED_PRECONDITION, str(error)) from None
        return self._operations.done(call, "DeleteOperationMetadata")

    def delete_version(self, call: Call) -> dict[str, Any]:
        """Delete a version that is not the default."""
        with self._store.lock:
            versions = self._found(call)
            number = _number(versions, call.resource_version or DEFAULT)
            if number == _number(versions, DEFAULT):
                raise ApiError(Status.FAILED_PRECONDITION, f"version {number} is the default; delete the model instead")
            try:
                versions.remove(number)
            except ValueError as error:
                raise ApiError(Status.FAILED_PRECONDITION, str(error)) from None
        return self._operations.done(call, "DeleteOperationMetadata")

    def _view(self, call: Call, versions: ModelVersions, name: str, *, is_version: bool = False) -> dict[str, Any]:
        """Build the Model resource of a version, a stand-in when the version is damaged."""
        try:
            return _view(call, versions, _found_number(versions, name), is_version=is_version)
        except ApiError:
            raise
        except (OSError, *UNUSABLE) as error:
            resource = call.location.child(_COLLECTION, versions.folder.name)
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            self._store.report(f"{resource}@{name} is damaged ({reason}); nothing else is affected")
            number = name if name.isdecimal() else versions.numbers[-1]
            shown = f"{resource}@{number}" if is_version else resource
            model = {"name": shown, "displayName": versions.folder.name, "versionId": number}
            return model | {"versionDescription": f"this version is damaged ({reason})"}

    def _versions(self, model_id: str) -> ModelVersions:
        return ModelVersions.of(self._work_dir, model_id)

    def _found(self, call: Call) -> ModelVersions:
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


def _number(versions: ModelVersions, name: str) -> str:
    """Return the version with this number or alias, for a change.

    Raises:
        ApiError: The model has no such version, or its aliases are damaged.
    """
    try:
        return _found_number(versions, name)
    except (ValueError, TypeError, RecursionError) as error:
        text = f"the aliases in {versions.folder} are damaged ({error}); delete the model, or repair the file"
        raise ApiError(Status.FAILED_PRECONDITION, text) from None


def _found_number(versions: ModelVersions, name: str) -> str:
    """Return the version with this number or alias, see `ModelVersions.number`.

    Raises:
        ApiError: The model has no such version.
    """
    try:
        return versions.number(name)
    except LookupError:
        raise not_found(f"version {name!r} of the model {versions.folder.name}") from None


def _check_mask(named: list[str], *, is_version: bool) -> None:
    """Check the fields of an update.

    Raises:
        ApiError: A field cannot be changed, or not of a version, or only of a version.
    """
    allowed, others = (_VERSION_FIELDS, _MODEL_FIELDS) if is_version else (_MODEL_FIELDS, _VERSION_FIELDS)
    wrong = [name for name in named if name not in allowed]
    if not wrong:
        return
    text = f"updateMask {','.join(named)[:200]!r}: expected some of {', '.join(allowed)}"
    if set(wrong) <= set(others):
        other = "the model: leave out '@' and what follows it" if is_version else "a version: add '@' and its number"
        raise ApiError(Status.FAILED_PRECONDITION, f"{text}; {wrong[0]} belongs to {other}")
    raise invalid(text)


def _searchable(model: dict[str, Any]) -> dict[str, Any]:
    """Return the resource with the fields that exist in filters only."""
    source = model.get("baseModelSource", {}).get("modelGardenSource", {}).get("publicModelName", "")
    ids = {"model": model["name"].partition("@")[0], "baseModelName": source}
    return model | {name: text.rpartition("/")[2] for name, text in ids.items() if text}


def _view(call: Call, versions: ModelVersions, number: str, *, is_version: bool = False) -> dict[str, Any]:
    """Build the Model resource of a version, whose name contains the number if a version was asked for."""
    content = versions.content(number)
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
    return (
        model
        | (_DEPLOYABLE if model.get("containerSpec") else {})
        | {
            "name": call.location.child(_COLLECTION, versions.folder.name) + (f"@{number}" if is_version else ""),
            "versionId": number,
            "versionAliases": [alias for alias, each in versions.aliases.items() if each == number],
            "createTime": created,
            "updateTime": created,
            "versionCreateTime": created,
            "versionUpdateTime": created,
        }
    )

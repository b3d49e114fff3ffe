"""models: versions and aliases in the local registry that `localvertex run` also writes to.

The registry belongs to the work folder, not to a project or region, so every location shows all of it.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import camel, snake
from localvertex.api.models.registered import COLLECTION, Registered, number, number_to_change
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, invalid, is_full, not_found, reason_of, refusing
from localvertex.api.rest.listing import page
from localvertex.api.rest.operations import finished_operation
from localvertex.api.rest.store import ID, UNUSABLE, Store
from localvertex.errors import TaskFailed
from localvertex.store import record, registry
from localvertex.store.model_versions import UPDATED, ModelVersions
from localvertex.store.models.reading import ALIASED_BY, DEFAULT, SOURCE, UPLOADED_BY, check_alias
from localvertex.store.registry import Version
from localvertex.values.buckets import Buckets

_MODEL_FIELDS = ("displayName", "description", "labels")

_VERSION_FIELDS = ("versionDescription", "labels")

_ALL_VERSIONS = "-"
"""Stands for all versions: the request is about the model itself."""

_FILTER_FIELDS = {"model"}
"""Fields that exist in filters only."""

_DEPLOYABLE = {"supportedDeploymentResourcesTypes": ["DEDICATED_RESOURCES"]}
"""Resources that a model with a serving container can be deployed to."""

_OWN_FIELDS = ("model_id", "version", "create_time", UPDATED, SOURCE)
"""Fields of the registry that the Model message does not have, or in another form."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """An UploadModelRequest that has been checked."""

    versions: ModelVersions
    resource: str
    """The name of the model."""
    content: JsonObject
    """The Model message in snake_case."""
    aliases: list[str]
    has_parent: bool

    def check(self, versions: ModelVersions) -> None:
        """Check that the parent still exists, or that the id is free.

        Raises:
            ApiError: It is not.
        """
        if self.has_parent:
            number_to_change(versions, DEFAULT)
        elif versions.numbers:
            raise ApiError(Status.ALREADY_EXISTS, f"{self.resource} already exists")


class Models:
    """The models of the API.

    Args:
        store: The records of the API.
        buckets: The folders of the buckets with the files of models.
    """

    def __init__(self, store: Store, buckets: Buckets) -> None:
        self._store, self._buckets = store, buckets
        self._registered = Registered(store.folder.parent)

    def upload(self, call: Call) -> JsonObject:
        """Add a model, or a version to `parentModel`; the version takes its aliases from others in the same moment."""
        upload = self.plan(call, call.body)
        try:
            self._buckets.model_files(str(upload.content.get("artifact_uri", "")))
        except TaskFailed as error:
            raise ApiError(Status.FAILED_PRECONDITION, f"model.artifactUri: {error}") from None
        # As ModelUploadOp does, but each call is an upload of its own.
        uploaded_by: JsonObject = {UPLOADED_BY: f"{call.run}/{uuid4()}"} if call.run else {}
        version = self.add(upload, **uploaded_by)
        content = {"model": upload.resource, "modelVersionId": str(version.number)}
        return finished_operation(call, "UploadModelOperationMetadata", "UploadModelResponse", content)

    def plan(self, call: Call, request: JsonObject) -> Upload:
        """Check an UploadModelRequest for the location of a call.

        Raises:
            ApiError: The model cannot be added.
        """
        body = messages.normalise("UploadModelRequest", request, snake_case=True)
        content, parent, wanted = body.get("model", {}), body.get("parent_model", ""), body.get("model_id", "")
        messages.check_names(content)
        if not content.get("display_name"):
            raise invalid("model.displayName is missing")
        if wanted and not ID.fullmatch(wanted):
            raise invalid(f"modelId {wanted[:100]!r}: expected letters, digits, '-' and '_'")
        versions = self._parent(call, parent) if parent else self._registered.versions(wanted or record.new_number())
        resource = call.location.child(COLLECTION, versions.folder.name)
        aliases = content.pop("version_aliases", [])
        upload = Upload(versions=versions, resource=resource, content=content, aliases=aliases, has_parent=bool(parent))
        with refusing(Status.INVALID_ARGUMENT, ValueError):
            for alias in aliases:
                check_alias(alias)
        upload.check(versions)
        return upload

    def add(self, upload: Upload, check_stopped: Callable[[], None] = lambda: None, **fields: Any) -> Version:
        """Add the model or version of an upload.

        Args:
            upload: The result of `plan`.
            check_stopped: Called before the version is added; what it raises refuses it.
            fields: Further fields of model.json.

        Raises:
            ApiError: It cannot be added.
            OSError: The disk is full.
        """

        def check(versions: ModelVersions) -> None:
            check_stopped()
            upload.check(versions)

        try:
            return registry.add_version(upload.versions, upload.content | fields, upload.aliases, check)
        except ValueError as error:
            raise invalid(str(error)) from None
        except OSError as error:
            if is_full(error):
                raise
            raise invalid(f"model.artifactUri: its files cannot be copied into the registry: {error}") from None

    def get(self, call: Call) -> JsonObject:
        """Return the version with the given number or alias, by default the default version."""
        name = call.resource_version
        return self._view(call, self._registered.find(call), name or DEFAULT, is_version=bool(name))

    def list_all(self, call: Call) -> JsonObject:
        """List all models, each in its default version."""
        found = [self._registered.versions(each) for each in self._registered.ids if ID.fullmatch(each)]
        return self._page(call, self._views(call, ((each, DEFAULT) for each in found if each.numbers)))

    def list_versions(self, call: Call) -> JsonObject:
        """List all versions of a model, the oldest first unless the request has another order."""
        versions = self._registered.find(call)
        call = replace(call, query={**call.query, "orderBy": call.query.get("orderBy") or "createTime"})
        aliases: dict[str, str] = {}
        with suppress(OSError, *UNUSABLE):
            # Read once, so that no alias moves from one version of the list to another.
            aliases = versions.aliases
        every = self._views(call, ((versions, each) for each in versions.numbers), is_version=True)
        for each in every:
            each["versionAliases"] = [name for name, number in aliases.items() if number == each["versionId"]]
        return self._page(call, every)

    def _views(
        self, call: Call, named: Iterable[tuple[ModelVersions, str]], *, is_version: bool = False
    ) -> list[JsonObject]:
        """Build the resources of versions, without those that are deleted meanwhile."""
        found = []
        for versions, name in named:
            with suppress(ApiError):
                found.append(self._view(call, versions, name, is_version=is_version))
        return found

    def _page(self, call: Call, models: list[JsonObject]) -> JsonObject:
        fields = messages.field_names("Model") | _FILTER_FIELDS
        return page(call, COLLECTION, models, fields=fields, searchable=_searchable)

    def patch(self, call: Call) -> JsonObject:
        """Change the fields that the mask names: of one version if the name contains it, else of all versions."""
        body = messages.parse("Model", call.body, snake_case=True)
        named = [camel(each.strip()) for each in call.query.get("updateMask", "").split(",")]
        is_version = call.resource_version not in ("", _ALL_VERSIONS)
        _check_mask(named, is_version=is_version)
        fields = {snake(name): body.get(snake(name)) for name in named}
        versions = self._registered.find(call)
        with versions.changing():
            chosen = number_to_change(versions, call.resource_version if is_version else DEFAULT)
            with refusing(Status.FAILED_PRECONDITION, ValueError):
                if is_version:
                    versions.change(chosen, fields)
                else:
                    versions.change_shared(fields)
        return self._view(call, versions, chosen, is_version=is_version)

    def merge_version_aliases(self, call: Call) -> JsonObject:
        """Add aliases to a version, or remove those with a leading `-`."""
        aliases = call.body.get("versionAliases", call.body.get("version_aliases"))
        if not isinstance(aliases, list) or not all(isinstance(each, str) for each in aliases):
            raise invalid("versionAliases: expected a list of strings")
        versions = self._registered.find(call)
        with versions.changing():
            chosen = number_to_change(versions, call.resource_version or DEFAULT)
            with refusing(Status.INVALID_ARGUMENT, ValueError):
                versions.merge(chosen, aliases)
            if call.run and not all(each.startswith("-") for each in aliases):
                versions.change(chosen, {ALIASED_BY: f"{call.run}/"})
        return self._view(call, versions, chosen, is_version=bool(call.resource_version))

    def delete(self, call: Call) -> JsonObject:
        """Delete a model with all its versions and their copies of files; the files that were uploaded stay."""
        with refusing(Status.FAILED_PRECONDITION, ValueError):
            self._registered.find(call).delete()
        return finished_operation(call, "DeleteOperationMetadata")

    def delete_version(self, call: Call) -> JsonObject:
        """Delete a version that is not the default."""
        versions = self._registered.find(call)
        with versions.changing():
            chosen = number_to_change(versions, call.resource_version or DEFAULT)
            if chosen == number_to_change(versions, DEFAULT):
                raise ApiError(Status.FAILED_PRECONDITION, f"version {chosen} is the default; delete the model instead")
            with refusing(Status.FAILED_PRECONDITION, ValueError):
                versions.remove(chosen)
        return finished_operation(call, "DeleteOperationMetadata")

    def _view(self, call: Call, versions: ModelVersions, name: str, *, is_version: bool = False) -> JsonObject:
        """Build the Model resource of a version, a stand-in when the version is damaged."""
        try:
            return _view(call, versions, number(versions, name), is_version=is_version)
        except ApiError:
            raise
        except (OSError, *UNUSABLE) as error:
            resource = call.location.child(COLLECTION, versions.folder.name)
            reason = reason_of(error)
            self._store.report(f"{resource}@{name} is damaged ({reason}); nothing else is affected")
            shown = name if name.isdecimal() else versions.numbers[-1]
            model = {"name": f"{resource}@{shown}" if is_version else resource, "versionId": shown}
            model |= {"displayName": versions.folder.name}
            return model | {"versionDescription": f"this version is damaged ({reason})"}

    def _parent(self, call: Call, parent: str) -> ModelVersions:
        model_id = parent.removeprefix(call.location.child(COLLECTION, "")).partition("@")[0]
        if not ID.fullmatch(model_id):
            raise not_found(parent[:300])
        return self._registered.find(call, model_id)


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


def _searchable(model: JsonObject) -> JsonObject:
    """Return the resource with the fields that exist in filters only."""
    return model | {"model": model["name"].rpartition("/")[2].partition("@")[0]}


def _view(call: Call, versions: ModelVersions, number: str, *, is_version: bool = False) -> JsonObject:
    """Build the Model resource of a version, whose name contains the number if the request names a version."""
    content = versions.content(number)
    message = {key: value for key, value in content.items() if key not in _OWN_FIELDS}
    try:
        model = messages.normalise("Model", message)
    except ApiError:
        # A pipeline may have registered a model that the API would have refused.
        model = {
            "displayName": str(content.get("display_name", "")),
            "artifactUri": str(content.get("artifact_uri", "")),
        }
    # The files that have it may be damaged, and pages need one.
    model.setdefault("displayName", "")
    created = _time(content.get("create_time"))
    updated = _time(content.get(UPDATED)) or created
    times = {"createTime": created, "updateTime": updated}
    times |= {"versionCreateTime": created, "versionUpdateTime": updated}
    model |= _DEPLOYABLE if model.get("containerSpec") else {}
    return model | {
        "name": call.location.child(COLLECTION, versions.folder.name) + (f"@{number}" if is_version else ""),
        "versionId": number,
        "versionAliases": versions.aliases_of(number),
        **{name: text for name, text in times.items() if text},
    }


def _time(text: Any) -> str:
    """Return a time of model.json as in the API, or empty if it is not valid: a client would refuse the whole list."""
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return ""

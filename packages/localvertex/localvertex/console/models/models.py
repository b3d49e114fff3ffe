"""The models of the registry with their versions: aliases, metrics, origin, endpoints and files; and trials."""

import base64
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from localvertex.api.endpoints.deployments import Deployments
from localvertex.api.endpoints.predictions import request_of
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.models.registered import Registered
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.store import ID, UNUSABLE, Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.models import measures
from localvertex.console.models.origins import Origins
from localvertex.console.models.trial import ModelTrial
from localvertex.console.runs.outputs import Content
from localvertex.store.model_versions import UPDATED, ModelVersions
from localvertex.store.models.reading import CHAMPION, DEFAULT, FILES, MODEL, object_in

_MAX_FILES = 200

_CLASSES = ("assets.extra", "model.json")
"""Where exported models of this project have the names of their classes."""

_MAX_CLASSES_BYTES = 4 << 20


class ModelCatalogue:
    """The models of a work folder.

    Args:
        store: The records of the server.
        deployments: The processes of models.
    """

    def __init__(self, store: Store, deployments: Deployments) -> None:
        self._store, self._deployments = store, deployments
        self._registered = Registered(store.folder.parent)
        self.trial = ModelTrial(EndpointRecords(store.folder.parent), deployments)

    @local_route("GET", "/local/models")
    def list_all(self, _: LocalCall) -> dict[str, Any]:
        """Return all models, the last changed one first, with the metrics of the champion or else of the default."""
        found = [self._registered.versions(each) for each in self._registered.ids if ID.fullmatch(each)]
        origins = Origins(self._store)
        rows = [_summary(each, origins) for each in found if each.numbers]
        return {"models": sorted(rows, key=lambda row: (row["update_time"], row["id"]), reverse=True)}

    @local_route("GET", "/local/models/{id:id}/{version:id}")
    def get(self, call: LocalCall) -> dict[str, Any]:
        """Return a version by its number or alias, and a row for each version of the model, the newest first."""
        versions, number = self._find(call)
        origins, (aliases, problem) = Origins(self._store), _aliases(versions)
        rows = [_row(versions, each, aliases, origins) for each in reversed(versions.numbers)]
        chosen = next((row for row in rows if row["version"] == number), None)
        if chosen is None:
            raise not_found(f"version {number} of the model {versions.folder.name}")
        content, folder = _content(versions, number), versions.folder / number
        container = content.get("container_spec")
        return {
            **chosen,
            "id": versions.folder.name,
            "display_name": str(content.get("display_name") or versions.folder.name),
            "description": str(content.get("description", "")),
            "labels": content.get("labels", {}),
            "container": container if isinstance(container, dict) else None,
            "parameters": origins.runs.get(chosen["run"], {}).get("parameters", {}),
            "evaluations": measures.all_evaluations(folder),
            "cannot_run": self._cannot_run(content),
            "class_names": class_names(folder),
            **_files(folder),
            "aliases_problem": problem,
            "versions": rows,
        }

    @local_route("POST", "/local/models/{id:id}/{version:id}:predict")
    def predict(self, call: LocalCall) -> dict[str, Any]:
        """Return what the version predicts for `image` (base64), or for `instances` as they are."""
        versions, number = self._find(call)
        request = request_of(_instances(call.body))
        began = time.monotonic()
        deployed = Origins(self._store).endpoints.get((versions.folder.name, number), [])
        answer = self.trial.predict(versions.folder.name, number, request, deployed)
        seconds = round(time.monotonic() - began, 3)
        return {**answer, "seconds": seconds, "class_names": class_names(versions.folder / number)}

    @local_route("GET", "/local/models/{id:id}/{version:id}:trial")
    def trial_state(self, call: LocalCall) -> dict[str, Any]:
        """Return the state of the process that was started for a version on demand."""
        versions, number = self._find(call)
        return self.trial.state(versions.folder.name, number)

    @local_route("POST", "/local/models/{id:id}/{version:id}:cancel")
    def cancel(self, call: LocalCall) -> dict[str, Any]:
        """End the process that was started for a version on demand."""
        versions, number = self._find(call)
        self.trial.stop(versions.folder.name, number)
        return {}

    def _find(self, call: LocalCall) -> tuple[ModelVersions, str]:
        """Return the versions of the model that a request names, and the number of the version.

        Raises:
            ApiError: The model has no such version.
        """
        versions, name = self._registered.versions(call.path["id"]), call.path["version"]
        try:
            return versions, versions.number(name)
        except LookupError as error:
            raise ApiError(Status.NOT_FOUND, str(error)) from None
        except (OSError, *UNUSABLE):
            # The aliases are damaged: numbers still work, and the newest version is shown for any alias.
            numbers = versions.numbers
            return versions, name if name in numbers else numbers[-1]

    def _cannot_run(self, content: Content) -> str:
        """Return why the container of a version cannot be started here, empty when it can."""
        try:
            self._deployments.check(content)
        except ApiError as error:
            return str(error)
        return ""


def _instances(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body of Vertex AI's `predict`.

    Raises:
        ApiError: `image` is not base64.
    """
    if "image" not in body:
        return body
    try:
        base64.b64decode(body["image"], validate=True)
    except (ValueError, TypeError):
        raise invalid("image is not base64") from None
    rest = {name: value for name, value in body.items() if name != "image"}
    if "instances" in rest:
        raise invalid("expected image or instances, found both")
    return {"instances": [{"b64": body["image"]}], **rest}


def class_names(version: Path) -> list[str]:
    """Return the names of the classes in the files of a version, empty when they do not have any."""
    path = version.joinpath(FILES, *_CLASSES)
    with suppress(OSError, ValueError):
        is_readable = path.is_file() and path.stat().st_size <= _MAX_CLASSES_BYTES
        names = object_in(path).get("class_names") if is_readable else None
        if isinstance(names, list) and all(isinstance(each, str) for each in names):
            return names
    return []


def _summary(versions: ModelVersions, origins: Origins) -> Content:
    """Return the row of a model."""
    aliases, problem = _aliases(versions)
    numbers = versions.numbers
    shown = next((each for name in (CHAMPION, DEFAULT) if (each := aliases.get(name)) in numbers), numbers[-1])
    newest = _content(versions, numbers[-1])
    return {
        "id": versions.folder.name,
        "display_name": str(versions.shared.get("display_name") or versions.folder.name),
        "description": str(versions.shared.get("description", "")),
        "num_versions": len(numbers),
        "newest": numbers[-1],
        "default": aliases.get(DEFAULT),
        "champion": aliases.get(CHAMPION),
        "update_time": str(newest.get("create_time", "")),
        "shown": _row(versions, str(shown), aliases, origins),
        "num_endpoints": sum(len(every) for key, every in origins.endpoints.items() if key[0] == versions.folder.name),
        "problem": problem,
    }


def _row(versions: ModelVersions, number: str, aliases: dict[str, str], origins: Origins) -> Content:
    """Return what lists show of a version; a damaged one has a reason."""
    folder, problem, content = versions.folder / number, "", Content()
    try:
        content = object_in(folder / MODEL)
    except (OSError, *UNUSABLE) as error:
        problem = f"this version is damaged: {str(error)[:300]}"
    run = origins.run_of(versions.folder.name, number, content)
    return {
        "version": number,
        "aliases": [name for name, each in aliases.items() if each == number],
        "version_description": str(content.get("version_description", "")),
        "create_time": str(content.get("create_time", "")),
        "update_time": str(content.get(UPDATED, "")),
        "metrics": measures.figures(measures.all_evaluations(folder)),
        "run_metrics": origins.runs.get(run, {}).get("metrics", {}),
        "run": run,
        "datasets": origins.datasets_of(run, content.get("version_labels", content.get("labels"))),
        "endpoints": origins.endpoints.get((versions.folder.name, number), []),
        "problem": problem,
    }


def _aliases(versions: ModelVersions) -> tuple[dict[str, str], str]:
    """Return the aliases of a model, or none and the reason."""
    try:
        return versions.aliases, ""
    except (OSError, *UNUSABLE) as error:
        return {}, f"the aliases are damaged: {str(error)[:300]}"


def _content(versions: ModelVersions, number: str) -> Content:
    """Return the content of a version, empty when it is damaged."""
    try:
        return versions.content(number)
    except (OSError, *UNUSABLE):
        return {}


def _files(version: Path) -> Content:
    """Return the files of a version with their sizes in bytes, the first ones by name."""
    every = sorted(_walk(version / FILES))
    rows = [{"path": path, "size": size} for path, size in every]
    return {"files": rows[:_MAX_FILES], "num_files": len(rows), "num_bytes": sum(each["size"] for each in rows)}


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the paths and sizes of all files of a model, which may be a single one."""
    if folder.is_file():
        yield folder.name, folder.stat().st_size
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                path = os.path.join(parent, name)
                yield os.path.relpath(path, folder), os.lstat(path).st_size

"""The models of the registry with their versions: aliases, metrics, origin, endpoints and files."""

import shlex
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.responses import Response

from localvertex._base.json_object import JsonObject
from localvertex._base.usage import PREDICT, fill
from localvertex.api.access import token_file
from localvertex.api.endpoints.predictions import Predictions
from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.models.registered import Registered
from localvertex.api.rest.errors import ApiError, Status, invalid, not_found
from localvertex.api.rest.store import ID, UNUSABLE, Damaged, Store
from localvertex.console import file_responses
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.outputs import Content, RunOutputs, place_in
from localvertex.show.view.artifacts import file_in, files_of, names_of
from localvertex.store.model_versions import UPDATED, ModelVersions
from localvertex.store.models import evaluations
from localvertex.store.models.reading import CHAMPION, DEFAULT, FILES, MODEL, SOURCE, UPLOADED_BY, object_in

_LABEL = "dataset"
"""The label of a version with the beginning of its dataset's fingerprint."""

_MAX_DATASETS = 5


class _Origins:
    """The runs and endpoints of the work folder, read once for all versions of an answer.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._work_dir = store.folder.parent
        every = {name: (each.content or {})["outputs"] for name, each in store.index.summaries(RunOutputs(store))}
        self.runs: dict[str, Content] = {name: each for name, each in every.items() if each}
        self._by_uuid = {content["uuid"]: name for name, content in self.runs.items() if content["uuid"]}
        self._by_model: dict[str, str] = {}
        for name in sorted(self.runs, key=lambda each: str(self.runs[each]["create_time"]), reverse=True):
            # Later runs may have read a version that an earlier one registered.
            self._by_model |= {resource.rpartition("/")[2]: name for resource in self.runs[name]["models"]}
        self.endpoints = _endpoints(EndpointRecords(self._work_dir))
        """The endpoints of each version, by the id of the model and its number."""

    def run_of(self, model_id: str, number: str, content: Content) -> str:
        """Return the id of the run that registered a version, empty if it is not known or was deleted.

        Args:
            model_id: Id of the model.
            number: Number of the version.
            content: Its model.json as it is.
        """
        uuid = str(content.get(UPLOADED_BY, "")).partition("/")[0]
        place = place_in(str(content.get(SOURCE, "")), str(self._work_dir)) or {"run": ""}
        found = (self._by_uuid.get(uuid), place["run"], self._by_model.get(f"{model_id}@{number}"))
        return next((each for each in found if each in self.runs), None) or ""

    def datasets_of(self, run: str, labels: Any) -> list[str]:
        """Return the fingerprints of the datasets of a version, by its label or else from its run.

        Args:
            run: Its run.
            labels: Its labels.
        """
        every = self.runs.get(run, {}).get("datasets", [])
        label = labels.get(_LABEL) if isinstance(labels, dict) else None
        if isinstance(label, str) and label:
            return [next((each for each in every if each.startswith(label)), label)]
        return [*dict.fromkeys(every)][:_MAX_DATASETS]


def _endpoints(records: EndpointRecords) -> dict[tuple[str, str], list[Content]]:
    """Return the endpoints by model and version; a damaged record counts for none."""
    found: defaultdict[tuple[str, str], list[Content]] = defaultdict(list)
    for endpoint_id in records.ids:
        with suppress(Damaged):
            endpoint = records.read(endpoint_id) or {}
            for each in endpoint.get("deployedModels", []):
                row = {
                    "name": endpoint["name"],
                    "display_name": endpoint["displayName"],
                    "deployed_model": each["id"],
                    "traffic": endpoint["trafficSplit"].get(each["id"], 0),
                }
                found[each["model"].rpartition("/")[2], each["modelVersionId"]].append(row)
    return dict(found)


_OWN_SERVER = "trainer.serve"
"""The module of the server whose instances are images in base64, and whose predictions have `probabilities`."""

_MODEL_FACTS = "assets.extra/model.json"
"""The file of such a model that has its `class_names`."""

_CONFIDENCE = "confidenceMetrics"
"""Field with the figures for each threshold in Google's schema of classification metrics."""

_SETTINGS = ("confidenceThreshold", "maxPredictions")

_MAX_EVALUATIONS = 50


class ModelCatalogue:
    """The models of a work folder.

    Args:
        store: The records of the server.
        predictions: The models that it runs.
    """

    def __init__(self, store: Store, predictions: Predictions) -> None:
        self._store, self._registered = store, Registered(store.folder.parent)
        self._predictions = predictions

    @local_route("GET", "/local/models")
    def list_all(self, _: LocalCall) -> JsonObject:
        """Return all models, the last changed one first, with the metrics of the champion or else of the default."""
        found = [self._registered.versions(each) for each in self._registered.ids if ID.fullmatch(each)]
        origins = _Origins(self._store)
        rows = [_summary(each, origins) for each in found if each.numbers]
        return {"models": sorted(rows, key=lambda row: (row["update_time"], row["id"]), reverse=True)}

    @local_route("GET", "/local/models/{id:id}/{version:id}")
    def get(self, call: LocalCall) -> JsonObject:
        """Return a version by its number or alias, and a row for each version of the model, the newest first."""
        versions, number = self._find(call)
        origins, (aliases, problem) = _Origins(self._store), _aliases(versions)
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
            "evaluations": _all_evaluations(folder),
            **files_of(folder / FILES),
            "use": self._use(versions, number),
            "aliases_problem": problem,
            "versions": rows,
        }

    @local_route("GET", "/local/models/{id:id}/{version:id}/file")
    def file(self, call: LocalCall) -> Response:
        """Return a file of a version, to save."""
        name = call.query.get("file", "")
        path = file_in(self._files(call), name)
        if path is None:
            raise not_found(f"the file {name[:200]!r} of the model")
        return file_responses.download(path)

    @local_route("GET", "/local/models/{id:id}/{version:id}/zip")
    def archive(self, call: LocalCall) -> Response:
        """Return all files of a version, to save."""
        files = names_of(self._files(call))
        if not files:
            raise not_found("a file of the model")
        name = f"{call.path['id']}-{call.path['version']}.zip"
        return file_responses.archive({path: each or path.name for path, each in files.items()}, name)

    @local_route("POST", "/local/models/{id:id}/{version:id}:predict")
    def predict(self, call: LocalCall) -> JsonObject:
        """Predict an image, in base64 as `b64`, with a model of this project; the answer is its container's.

        Raises:
            ApiError: It is another model, or the container refuses the image.
        """
        versions, number = self._find(call)
        content, image = _content(versions, number), call.body.get("b64")
        if not isinstance(image, str) or not image or len(call.body) > 1:
            raise invalid("expected b64, an image file in base64, and nothing else")
        if not self._use(versions, number)["takes_images"]:
            raise invalid(f"the model is not served by {_OWN_SERVER}; send the request that its container takes")
        name = f"projects/local-project/locations/us-central1/models/{versions.folder.name}"
        found: Content = self._predictions.try_version(name, number, content, {"b64": image})
        names: list[str] = []
        with suppress(OSError, *UNUSABLE):
            names = object_in(versions.folder / number / FILES / _MODEL_FACTS)["class_names"]
        return found | {"probabilities": [*zip(names, found["probabilities"], strict=True)]} if names else found

    def _use(self, versions: ModelVersions, number: str) -> JsonObject:
        """Return how a version is used: its path, and if it runs here the command that predicts an image."""
        content, files = _content(versions, number), versions.folder.absolute() / number / FILES
        path = str(files) if files.exists() else str(content.get("artifact_uri", ""))
        is_own, problem = False, ""
        try:
            is_own = self._predictions.container(content).command[-2:] == ("-m", _OWN_SERVER)
        except ApiError as error:
            problem = str(error)
        return {
            "path": path,
            "takes_images": is_own,
            "command": fill(PREDICT, path) if is_own else "",
            "problem": problem,
            "token": shlex.quote(str(token_file.path(self._store.folder.absolute().parent))),
        }

    def _files(self, call: LocalCall) -> Path | None:
        """Return the folder or file of a version; None when the registry has no files of it.

        Raises:
            ApiError: There is no such version.
        """
        versions, number = self._find(call)
        path = versions.folder / number / FILES
        return path if path.exists() else None

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


def _summary(versions: ModelVersions, origins: _Origins) -> Content:
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


def _row(versions: ModelVersions, number: str, aliases: dict[str, str], origins: _Origins) -> Content:
    """Return the row of a version in lists; a damaged one has a reason."""
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
        "metrics": figures(_all_evaluations(folder)),
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


def _all_evaluations(version: Path) -> list[Content]:
    """Return the evaluations of the version in a folder, the newest first; a damaged one has a reason."""
    found = [_evaluation(version, each) for each in evaluations.ids(version)]
    return sorted(found, key=lambda each: each["create_time"], reverse=True)[:_MAX_EVALUATIONS]


def figures(every: list[Content]) -> Content:
    """Return the figures of the newest evaluation that has some."""
    return next((each["figures"] for each in every if each["figures"]), {})


def _evaluation(version: Path, evaluation_id: str) -> Content:
    try:
        content = evaluations.content(version, evaluation_id)
    except (OSError, ValueError) as error:
        return {"id": evaluation_id, "name": "", "create_time": "", "schema": "", "figures": {}, "problem": str(error)}
    metrics = content.get("metrics")
    return {
        "id": evaluation_id,
        "name": str(content.get("display_name", "")),
        "create_time": str(content.get("create_time", "")),
        "schema": str(content.get("metrics_schema_uri", "")),
        "figures": _figures(metrics) if isinstance(metrics, dict) else {},
        "metrics": metrics,
        "problem": "",
    }


def _figures(metrics: Content) -> Content:
    """Return the numbers in metrics of any schema, including a single threshold's."""
    found = {name: value for name, value in metrics.items() if _is_number(value)}
    rows = metrics.get(_CONFIDENCE)
    if isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], dict):
        only = {name: value for name, value in rows[0].items() if _is_number(value) and name not in _SETTINGS}
        found = only | found
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

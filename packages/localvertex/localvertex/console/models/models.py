"""The models of the registry with their versions: aliases, metrics, origin, endpoints and files."""

from localvertex._base.json_object import JsonObject
from localvertex.api.models.registered import Registered
from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.api.rest.store import ID, UNUSABLE, Store
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.models import measures
from localvertex.console.models.origins import Origins
from localvertex.console.runs.outputs import Content
from localvertex.show.view.artifacts import files_of
from localvertex.store.model_versions import UPDATED, ModelVersions
from localvertex.store.models.reading import CHAMPION, DEFAULT, FILES, MODEL, object_in


class ModelCatalogue:
    """The models of a work folder.

    Args:
        store: The records of the server.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._registered = store, Registered(store.folder.parent)

    @local_route("GET", "/local/models")
    def list_all(self, _: LocalCall) -> JsonObject:
        """Return all models, the last changed one first, with the metrics of the champion or else of the default."""
        found = [self._registered.versions(each) for each in self._registered.ids if ID.fullmatch(each)]
        origins = Origins(self._store)
        rows = [_summary(each, origins) for each in found if each.numbers]
        return {"models": sorted(rows, key=lambda row: (row["update_time"], row["id"]), reverse=True)}

    @local_route("GET", "/local/models/{id:id}/{version:id}")
    def get(self, call: LocalCall) -> JsonObject:
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
            **files_of(folder / FILES),
            "aliases_problem": problem,
            "versions": rows,
        }

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

"""Where registered models are looked up: in Vertex AI's Model Registry, or in the local one of the pipeline root."""

import json
import re
from pathlib import Path
from typing import Any, Protocol

from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import listed, on_one_line

_DEFAULT = "default"
_FILES = "model"
"""The files of a version, beside its model.json."""


class ModelRegistry(Protocol):
    """Knows the files of registered models."""

    def folder(self, name: str, version: str) -> str:
        """Return the folder with the files of a version.

        Args:
            name: Id or display name of the model.
            version: Number or alias.

        Raises:
            UserError: There is no such model or version, or it has no files.
        """
        ...


def of(pipeline_root: str, region: str) -> ModelRegistry:
    """Return the registry for a pipeline root: a local run never asks Google's."""
    is_local = "://" not in pipeline_root and not pipeline_root.startswith("/gcs/")
    return LocalRegistry(pipeline_root) if is_local else VertexRegistry(region)


class LocalRegistry:
    """The registry of `localvertex`: `models/<id>/<version>/model.json` in the work directory."""

    def __init__(self, work_dir: str) -> None:
        self._models = Path(work_dir) / "models"

    def folder(self, name: str, version: str) -> str:
        """Return the folder with the files of a version."""
        names = {each: self._display_name(each) for each in self._folders()}
        found = [each for each, shown in names.items() if name in (each.name, shown)]
        if len(found) != 1:
            damaged = [each.name for each, shown in names.items() if shown is None]
            hint = f"; the names of {listed(damaged, 'and')} cannot be read" if damaged else ""
            raise _not_found(name, f"{len(found)} models of this name in {self._models}{hint}")
        model = found[0]
        aliases = _read(model / "aliases.json")
        number = str(aliases.get(version, min(self._versions(model), key=int) if version == _DEFAULT else version))
        if number not in self._versions(model):
            known = ", ".join([*self._versions(model), *aliases])
            raise _not_found(name, f"{model} has no version {version!r}; it has {known}")
        uri = _read(model / number / "model.json").get("artifact_uri")
        if not isinstance(uri, str) or not uri:
            raise _not_found(name, f"version {number} has no files")
        own = model / number / _FILES
        # The registry's own copy is where the registry is, also after the work directory was moved.
        return str(own) if Path(uri).parts[-4:] == own.parts[-4:] else uri

    def _folders(self) -> list[Path]:
        found = self._models.iterdir() if self._models.is_dir() else []
        return [each for each in found if each.is_dir() and self._versions(each)]

    def _versions(self, model: Path) -> list[str]:
        return sorted(
            (each.parent.name for each in model.glob("*/model.json") if each.parent.name.isdecimal()), key=int
        )

    def _display_name(self, model: Path) -> Any:
        """Return None for a model whose files are damaged: it must not keep users from the others."""
        try:
            shared = _read(model / "shared.json") or _read(model / self._versions(model)[0] / "model.json")
        except UserError:
            return None
        return shared.get("display_name")


class VertexRegistry:
    """Vertex AI's, in the project of the step."""

    def __init__(self, region: str) -> None:
        self._region = region

    def folder(self, name: str, version: str) -> str:
        """Return the folder with the files of a version."""
        from google.api_core import exceptions as api
        from google.auth import exceptions as auth

        try:
            model = self._model(name, version)
        except (api.NotFound, api.InvalidArgument, api.PermissionDenied, auth.GoogleAuthError) as error:
            raise _not_found(name, f"version {version!r}: {on_one_line(error)}") from error
        if not model.uri:
            raise _not_found(name, f"version {model.version_id} has no files")
        return str(model.uri)

    def _model(self, name: str, version: str) -> Any:
        from google.api_core import exceptions as api
        from google.cloud import aiplatform

        if re.fullmatch(r"[a-zA-Z0-9_-]+|projects/[^/]+/locations/[^/]+/models/[^/]+", name):
            try:
                return aiplatform.Model(model_name=name, version=version, location=self._region)
            except api.NotFound:
                pass
        found = aiplatform.Model.list(filter=f"display_name={json.dumps(name)}", location=self._region)
        if len(found) != 1:
            ids = ", ".join(model.name for model in found[:5])
            hint = f"; give one of their ids: {ids}" if found else f", or it has no version {version!r}"
            raise _not_found(name, f"{len(found)} models of this name in {self._region}{hint}")
        return aiplatform.Model(model_name=found[0].name, version=version, location=self._region)


def _not_found(name: str, reason: str) -> UserError:
    return UserError(f"the registered model {name!r} cannot be used: {reason}")


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file of the local registry; empty if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged; repair it, or name another model")
    return content

"""`runtimeConfig.inputArtifacts`: artifacts of the default metadata store that become inputs of a run."""

from collections.abc import Callable
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.store import ID
from localvertex.errors import TaskFailed
from localvertex.store.task import Artifact
from localvertex.values.buckets import Buckets

FindArtifact = Callable[[Location, str], JsonObject | None]
"""Returns an artifact of the default metadata store of a location by its id, None when it does not exist."""

_FILE, _BUCKET = "file://", "gs://"


def given_artifacts(
    config: JsonObject, location: Location, find: FindArtifact, buckets: Buckets
) -> dict[str, list[Artifact]]:
    """Return the artifacts that a RuntimeConfig names, by the name of the input.

    Raises:
        ApiError: One does not exist, or its files are not on this machine.
    """
    found = {}
    for name, value in config.get("inputArtifacts", {}).items():
        where, artifact_id = f"runtimeConfig.inputArtifacts.{name[:100]}", value.get("artifactId", "")
        if not ID.fullmatch(artifact_id):
            raise invalid(
                f"{where}: artifactId {artifact_id[:200]!r}: expected only the last part of the resource name of an "
                "artifact in the default metadata store"
            )
        artifact = find(location, artifact_id)
        if artifact is None:
            parent = location.child("metadataStores", "default")
            raise invalid(f"{where}: there is no artifact {parent}/artifacts/{artifact_id}")
        found[name] = [_artifact(where, artifact, buckets)]
    return found


def _artifact(where: str, artifact: JsonObject, buckets: Buckets) -> Artifact:
    """Return an artifact as steps receive it.

    Raises:
        ApiError: Its files are not on this machine.
    """
    uri = str(artifact.get("uri", "")).removeprefix(_FILE)
    if uri.startswith(_BUCKET) and buckets.root is None:
        raise invalid(f"{where}: {uri[:300]} is in Cloud Storage; start the server with --gcs-root DIR")
    try:
        path = buckets.path_of(uri)
        is_missing = not uri.startswith(_BUCKET) and "://" not in uri and bool(uri) and not Path(path).exists()
    except TaskFailed as error:
        raise invalid(f"{where}: {error}") from None
    except (OSError, ValueError):
        is_missing = True
    if is_missing:
        raise invalid(f"{where}: its files are not on this machine: there is no file or folder {uri[:300]!r}")
    schema = {"schemaTitle": artifact.get("schemaTitle", ""), "schemaVersion": artifact.get("schemaVersion", "")}
    return {
        "name": artifact["name"],
        "type": {key: text for key, text in schema.items() if text},
        "uri": uri,
        "metadata": artifact.get("metadata", {}),
    }

"""The files between localvertex and a step: `executor_input.json` and `executor_output.json`."""

import json
import math
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from localvertex._base.compiled.parameters import ParameterType, convert
from localvertex._base.compiled.spec import Component
from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.nested import parts
from localvertex._base.userinput import doubles
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json, read_bytes
from localvertex.errors import TaskFailed
from localvertex.store import copies
from localvertex.store.task import Artifact, Values
from localvertex.values.buckets import Buckets, OutsideBucket

INPUT, OUTPUT, LOG = "executor_input.json", "executor_output.json", "log.txt"

BIGQUERY, REFUSED = "bigquery.json", "refused.jsonl"
"""Files in the folder of a step or a trial: its rows by query, and the refused calls of Google.

The names are those of credentials/step_python.
"""

_ENDINGS = {"system.HTML": ".html", "system.Markdown": ".md"}
"""Endings of files of these types, by which a browser or an editor knows them."""

RESOURCES = "gcp_resources"
"""Output parameter in which Google's launchers name what they have created."""

UPLOAD = "upload"
"""Field of a given artifact with the fields of a model to register, in place of a path."""


def prepare(
    component: Component, inputs: Values, folder: Path, artifact_parent: str, *, outputs_at: str, buckets: Buckets
) -> JsonObject:
    """Prepare the task's folder for an attempt and return the executor input.

    Files of an earlier attempt are removed.

    Args:
        component: The signature of the task.
        inputs: Its inputs.
        folder: Its folder.
        artifact_parent: The resource name that artifact names start with.
        outputs_at: The folder, or gs:// prefix, of its output artifacts, which is the task's own.
        buckets: The folders of the buckets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    uris = {
        name: f"{outputs_at}/{name}{_ENDINGS.get(artifact.schema_title, '')}"
        for name, artifact in component.output_artifacts.items()
    }
    files = [folder / name for name in (*component.output_parameters, OUTPUT, BIGQUERY, REFUSED)]
    for path in [*files, *(Path(buckets.path_of(uri)) for uri in uris.values())]:
        remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    executor_input = {
        "inputs": {
            "parameterValues": inputs.parameters,
            "artifacts": {name: {"artifacts": artifacts} for name, artifacts in inputs.artifacts.items()},
        },
        "outputs": {
            "parameters": {name: {"outputFile": str(folder / name)} for name in component.output_parameters},
            "artifacts": {
                name: {
                    "artifacts": [
                        # The name of an artifact is its identity, as in Vertex ML Metadata.
                        {
                            "name": artifact_name(artifact_parent, uuid4().int >> 66),
                            "type": artifact.type,
                            "uri": uris[name],
                            "metadata": artifact.metadata,
                        }
                    ]
                }
                for name, artifact in component.output_artifacts.items()
            },
            "outputFile": str(folder / OUTPUT),
        },
    }
    (folder / INPUT).write_text(json.dumps(executor_input, indent=1))
    write_rows(component, folder)
    return executor_input


def write_rows(component: Component, folder: Path) -> None:
    """Write where a program in this folder finds the files of rows that the user names."""
    if component.bigquery:
        (folder / BIGQUERY).write_text(json.dumps(component.bigquery))


def refused_calls(folder: Path) -> list[JsonObject]:
    """Return the `host` of each call of Google that the step of this folder made in vain, and the `rows` it asked for.

    The step may have written anything.
    """
    found = list[JsonObject]()
    for file in folder.rglob(REFUSED):
        with suppress(UserError, ValueError, LookupError, TypeError, RecursionError):
            lines = map(json.loads, read_bytes(file).splitlines())
            found += [{name: str(each[name]) for name in ("host", "rows")} for each in lines]
    return found


def add_typed_values(executor_input: JsonObject) -> None:
    """Add the inputs as kfp 1.8 reads them: with the type in the name of the field, all others as JSON text."""
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    inputs = executor_input["inputs"]
    inputs["parameters"] = {
        name: {kinds[type(value)]: value} if type(value) in kinds else {"stringValue": json.dumps(value)}
        for name, value in inputs["parameterValues"].items()
    }


def artifact_parent(project: str, region: str) -> str:
    """Return the resource name that names of artifacts start with."""
    return f"projects/{project}/locations/{region}/metadataStores/default"


def artifact_name(parent: str, number: int) -> str:
    """Return the resource name of an artifact of Vertex ML Metadata."""
    return f"{parent}/artifacts/{number}"


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_outputs(
    component: Component,
    executor_input: JsonObject,
    warn: WriteLine,
    buckets: Buckets,
    hides: copies.Hides = copies.is_secret,
) -> Values:
    """Return the outputs of a step that has succeeded; `warn` receives what differs from what it wrote.

    Raises:
        TaskFailed: An output is missing or of the wrong type, or the file is broken.
    """
    written = _read_output_file(Path(executor_input["outputs"]["outputFile"]))
    values = Values()
    for name, declared in component.output_parameters.items():
        path = Path(executor_input["outputs"]["parameters"][name]["outputFile"])
        # As in the service, a file at the parameter's own path takes precedence over the executor output.
        value = _read_parameter_file(path, name, declared.type) if path.is_file() else written[0].get(name)
        if value is None:
            # Many launchers of Google never write the resources that they declare, and the service accepts that.
            if declared.is_optional or name == RESOURCES:
                continue
            raise TaskFailed(f"the step ended without its declared output parameter {name!r}")
        try:
            values.parameters[name] = convert(value, declared.type)
            if text := doubles.rounding_warning(f"output parameter {name!r}", value):
                warn(text)
        except ValueError as error:
            raise TaskFailed(f"output parameter {name!r}: expected {declared.type}, {error}") from None
    for name in component.output_artifacts:
        planned = executor_input["outputs"]["artifacts"][name]["artifacts"]
        folder = Path(executor_input["outputs"]["outputFile"]).parent
        _copy_from_custom_path(planned[0], written[1].get(name), folder, buckets, hides)
        values.artifacts[name] = _merge_artifacts(planned, written[1].get(name))
    return values


def _read_output_file(path: Path) -> tuple[JsonObject, JsonObject]:
    """Return parameters and artifacts of an executor output; both empty when the step wrote none."""
    if not path.is_file():
        return {}, {}
    text = ""
    try:
        text = path.read_text()
        content = parse_json(text, path.name)
        typed = {name: next(iter(value.values())) for name, value in (content.get("parameters") or {}).items()}
        parameters, artifacts = content.get("parameterValues") or typed, content.get("artifacts") or {}
        return dict(parameters), dict(artifacts)
    except (UserError, AttributeError, StopIteration, TypeError, ValueError) as error:
        reason = _infinite(text) or f"the step wrote a broken {path.name}: {error}"
        raise TaskFailed(reason) from None


def _infinite(text: str) -> str:
    """Return which output has a number that JSON has not; empty if none has, or the text is broken in another way."""
    try:
        content = json.loads(text)
        places = [(repr(name), value) for name, value in content.get("parameterValues", {}).items()]
        for name, entry in content.get("artifacts", {}).items():
            metadata = [each.get("metadata", {}) for each in entry["artifacts"]]
            places += [(f"{name!r}: {key!r}", value) for each in metadata for key, value in each.items()]
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return ""
    for place, value in places:
        for each in parts(value):
            if isinstance(each, float) and not math.isfinite(each):
                return (
                    f"output {place} is {each}; expected a finite number, because JSON has no other (kfp issue 12227)"
                )
    return ""


def _read_parameter_file(path: Path, name: str, kind: ParameterType) -> Any:
    """Read an output parameter from its own file (OutputPath): text for STRING, else JSON."""
    text = path.read_text()
    if kind is ParameterType.STRING:
        return text
    try:
        return parse_json(text.lower() if kind is ParameterType.BOOLEAN else text, "the file")
    except UserError as error:
        raise TaskFailed(f"output parameter {name!r}: expected {kind}, {error}") from None


def _copy_from_custom_path(
    planned: Artifact, written: Any, folder: Path, buckets: Buckets, hides: copies.Hides
) -> None:
    """Copy an artifact that is elsewhere (`artifact.set_path`) to its URI, as the launcher would upload it.

    Only files that are in the folder of the task already are linked instead: all others may be the user's.

    Raises:
        TaskFailed: The path does not exist, cannot be copied, or contains the folder of the run.
    """
    first = written["artifacts"][0] if isinstance(written, dict) and written.get("artifacts") else {}
    custom = first.get("custom_path") if isinstance(first, dict) else None
    if not custom or first.get("uri", planned["uri"]) != planned["uri"]:
        return
    source, target = folder / buckets.path_of(str(custom)), Path(buckets.path_of(planned["uri"]))
    if not source.exists():
        raise TaskFailed(f"the artifact's custom_path {custom!r} does not exist")
    if source.resolve() == target.resolve():
        return
    # The source may be inside the target.
    aside = target.with_name(f".{target.name[:200]}.partial")
    try:
        remove(aside)
        copies.copy(source, aside, link_below=folder, hides=hides)
        remove(target)
        aside.rename(target)
    except (OSError, ValueError) as error:
        remove(aside)
        raise TaskFailed(f"the artifact's custom_path {custom!r} cannot be copied: {error}") from None


def _merge_artifacts(planned: list[Artifact], written: Any) -> list[Artifact]:
    """Return the artifacts with what the step wrote; missing names, types and URIs are as planned."""
    if not isinstance(written, dict) or not written.get("artifacts"):
        return planned
    kind, name = planned[0]["type"], planned[0]["name"]
    return [
        {
            "name": each.get("name") or name,
            "type": each.get("type") or kind,
            "uri": each.get("uri") or planned[0]["uri"],
            "metadata": planned[0]["metadata"] | (each.get("metadata") or {}),
        }
        for each in written["artifacts"]
    ]


def write_output(executor_input: JsonObject, artifacts: dict[str, Artifact]) -> None:
    """Write an executor output with these artifacts, for steps that localvertex executes itself."""
    content = {"artifacts": {name: {"artifacts": [artifact]} for name, artifact in artifacts.items()}}
    Path(executor_input["outputs"]["outputFile"]).write_text(json.dumps(content))


def exists(artifact: Artifact, buckets: Buckets) -> bool:
    """Return whether a local artifact still exists; a remote one counts as existing."""
    try:
        path = buckets.to_local_paths(str(artifact["uri"]))
        return "://" in path or Path(path).exists()
    except (OSError, ValueError, OutsideBucket):
        return False

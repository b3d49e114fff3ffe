"""Input artifacts of a pipeline: files of this machine (`--input-artifact NAME=URI`), or artifacts of the endpoint."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from localvertex._base.compiled.spec import ArtifactSpec, Pipeline
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean
from localvertex.store.executor_files import artifact_name
from localvertex.store.task import Artifact

Given = Mapping[str, str | Sequence[str | Artifact]]
"""URIs or whole artifacts by the name of the input; several for an input that is a list."""

_FILE = "file://"


def from_options(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the URIs by name of `NAME=URI` options.

    Raises:
        UserError: An option has another form.
    """
    uris: dict[str, list[str]] = {}
    for option in options:
        name, _, uri = option.partition("=")
        if not name or not uri:
            raise UserError(f"--input-artifact {option}: expected NAME=URI, for example --input-artifact data=data.csv")
        uris.setdefault(name, []).append(uri)
    return uris


def resolve(pipeline: Pipeline, given: Given, parent: str) -> dict[str, list[Artifact]]:
    """Return the input artifacts of the pipeline's root.

    An artifact has the same name, its identity, in every run with the same URI, so that steps are found in the cache.

    Args:
        pipeline: The pipeline.
        given: The user's value.
        parent: The resource name that names of artifacts start with.

    Raises:
        UserError: A required artifact is missing, a name is unknown, or a URI is not a file of this machine.
    """
    declared = pipeline.root.input_artifacts
    uris = {name: [value] if isinstance(value, str) else list(value) for name, value in given.items()}
    for name, each in uris.items():
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            raise UserError(
                f"the pipeline has no input artifact {name!r}{did_you_mean(name, declared)}; it has {known}"
            )
        if len(each) > 1 and not declared[name].is_list:
            raise UserError(f"--input-artifact {name} is given {len(each)} times; expected one, it is not a list")
    _require_all(pipeline, uris)
    return {name: [_artifact(name, uri, declared[name], parent) for uri in each] for name, each in uris.items()}


def _require_all(pipeline: Pipeline, uris: Mapping[str, Sequence[str | Artifact]]) -> None:
    """Refuse a run that lacks an input artifact, before anything runs."""
    for name in pipeline.job.input_artifacts:
        if name not in uris:
            raise UserError(
                f"runtimeConfig.inputArtifacts.{name} is an artifact of Vertex ML Metadata, which is not available "
                f"locally; add --input-artifact {name}=URI with its files on this machine"
            )
    missing = [
        f"{name} ({spec.schema_title})"
        for name, spec in pipeline.root.input_artifacts.items()
        if not spec.is_optional and not uris.get(name)
    ]
    if missing:
        raise UserError(f"no input artifact for {', '.join(missing)}; add --input-artifact NAME=URI for each")


def _artifact(name: str, uri: str | Artifact, declared: ArtifactSpec, parent: str) -> Artifact:
    if isinstance(uri, dict):
        return uri | {"type": uri["type"] or declared.type}
    return _of_file(name, uri, declared, parent)


def _of_file(name: str, uri: str, declared: ArtifactSpec, parent: str) -> Artifact:
    """Return the artifact for a file or folder of this machine.

    Raises:
        UserError: It does not exist.
    """
    text = uri.removeprefix(_FILE)
    if "://" in text:
        raise UserError(
            f"--input-artifact {name}={uri!r}: expected a file or folder of this machine; download it first"
        )
    path = Path(text).absolute()
    try:
        is_there = path.exists()
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise UserError(f"--input-artifact {name}={uri!r}: there is no file or folder {str(path)!r}")
    digest = hashlib.sha256(f"{declared.schema_title} {path}".encode(errors="surrogateescape")).hexdigest()
    return {
        "name": artifact_name(parent, int(digest[:15], 16)),
        "type": declared.type,
        "uri": str(path),
        "metadata": {},
    }

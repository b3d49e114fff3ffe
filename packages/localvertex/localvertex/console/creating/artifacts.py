"""The form of a pipeline's input artifacts: files and folders of this machine, or artifacts of the metadata store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex.api.rest.store import ID
from localvertex.console.creating.form import Details
from localvertex.console.creating.source import Source
from localvertex.runner import input_artifacts
from localvertex.store.task import Artifact
from localvertex_base.compiled.spec import ArtifactSpec, Pipeline
from localvertex_base.userinput.errors import UserError

Find = Callable[[str], dict[str, Any] | None]
"""Returns an artifact of the metadata store by its id, None when it does not exist."""


def fields(source: Source) -> list[dict[str, Any]]:
    """Return the fields for the input artifacts."""
    config = (source.documents[0].get("runtimeConfig") or {}) if source.is_job else {}
    given = {name: each for name, each in (config.get("inputArtifacts") or {}).items() if isinstance(each, dict)}
    return [
        {
            "name": name,
            "schema": spec.schema_title,
            "is_required": not spec.is_optional,
            "value": source.artifacts.get(name) or str(given.get(name, {}).get("artifactId", "")) or None,
        }
        for name, spec in source.pipeline.root.input_artifacts.items()
    ]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The input artifacts of a run, each by the name of the input."""

    ids: dict[str, str] = field(default_factory=dict)
    uris: dict[str, str] = field(default_factory=dict)
    new: dict[str, Artifact] = field(default_factory=dict)
    """Those that the metadata store does not have yet."""

    @property
    def known(self) -> dict[str, str]:
        """The ids of those that the metadata store has."""
        return {name: each for name, each in self.ids.items() if name not in self.new}

    def requests(self, titles: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return path and body of Vertex AI's create requests for the new ones.

        Args:
            titles: The schema titles by the name of the input.
        """
        return [
            {
                "path": f"metadataStores/default/artifacts?artifactId={self.ids[name]}",
                "body": {"displayName": name, "uri": each["uri"], "schemaTitle": titles[name]},
            }
            for name, each in self.new.items()
        ]


def read(pipeline: Pipeline, texts: Mapping[str, Any], find: Find, parent: str) -> tuple[Inputs, Details]:
    """Return the artifacts that the texts of the form name, and what is wrong with them.

    Args:
        pipeline: The pipeline.
        texts: A file or folder, or the id of an artifact, by the name of the input.
        find: Finds the artifacts of the metadata store.
        parent: The resource name that names of artifacts start with.
    """
    inputs, wrong, declared = Inputs(), Details(), pipeline.root.input_artifacts
    for name in texts.keys() - declared.keys():
        wrong.append({"field": f"artifacts.{name}", "message": "the pipeline has no such input artifact"})
    for name, spec in declared.items():
        text = texts.get(name)
        try:
            if isinstance(text, str) and text:
                _add(inputs, name, text, spec, find, parent)
            elif not spec.is_optional:
                raise UserError(f"required; expected a file, a folder or the id of an artifact ({spec.schema_title})")
        except UserError as error:
            wrong.append({"field": f"artifacts.{name}", "message": str(error).rpartition(f"={text!r}: ")[2]})
    return inputs, wrong


def _add(inputs: Inputs, name: str, text: str, spec: ArtifactSpec, find: Find, parent: str) -> None:
    """Add the artifact that a text names.

    Raises:
        UserError: No artifact can be given by this name.
    """
    known = find(text) if ID.fullmatch(text) else None
    if known is not None:
        inputs.ids[name], inputs.uris[name] = text, str(known.get("uri", ""))
        return
    made = input_artifacts.of_file(name, text, spec, parent)
    inputs.ids[name], inputs.uris[name] = made["name"].rpartition("/")[2], made["uri"]
    if find(inputs.ids[name]) is None:
        inputs.new[name] = made

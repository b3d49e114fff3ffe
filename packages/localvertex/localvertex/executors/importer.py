"""`dsl.importer`: record an artifact that already exists."""

from pathlib import Path
from typing import ClassVar

from localvertex._base.compiled.spec import Container, Importer
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.store import executor_files
from localvertex.values.placeholders import Unresolvable, resolve_structure

_MODELS = ("system.Model", "google.UnmanagedContainerModel")
"""Types of artifacts whose files are a model; others name a resource, or anything."""


class ImporterExecutor:
    """Records an artifact with the given URI and metadata. Nothing is copied, and only a model's URI needs files."""

    name: ClassVar[str] = "importer"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept any importer."""
        return isinstance(executor, Importer)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse a workspace, which is a Kubernetes volume."""
        needs_workspace = isinstance(executor, Importer) and executor.download_to_workspace
        return [f"{executor.path}: downloadToWorkspace needs a Kubernetes volume"] if needs_workspace else []

    def execute(self, attempt: Attempt) -> None:
        """Write the executor output, and warn when a local path does not exist.

        Raises:
            TaskFailed: The URI is wrong, or a model has no files.
        """
        importer = attempt.executor
        if not isinstance(importer, Importer):
            raise TypeError(f"{attempt.label} is not an importer")
        try:
            parameters = attempt.executor_input["inputs"]["parameterValues"]
            uri = parameters.get("uri") if importer.uri is None else attempt.resolve(importer.uri)
            metadata = resolve_structure(importer.metadata, attempt.scope)
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None
        if not isinstance(uri, str) or not uri:
            raise TaskFailed("the importer's URI is empty", is_retryable=False)
        # The program of a step finds no file by an address that is given as a file.
        buckets = attempt.context.buckets
        given = buckets.given_file(uri, copied=True) if uri.startswith(("gs://", "/gcs/")) else None
        uri = str(given) if given else uri
        path, declared = buckets.local_path(uri), attempt.component.output_artifacts.values()
        # What is imported before a step that has not ended yet writes it is checked by the steps that use it.
        if any(each.schema_title in _MODELS for each in declared) and not attempt.has_open_others():
            buckets.model_files(uri)
        if "://" not in path and not Path(path).exists():
            attempt.context.warnings.add(f"{attempt.label}: the imported {uri} does not exist on this machine")
        outputs = attempt.executor_input["outputs"]["artifacts"]
        executor_files.write_output(
            attempt.executor_input,
            {name: value["artifacts"][0] | {"uri": uri, "metadata": metadata} for name, value in outputs.items()},
        )

"""dsl.importer: an artifact that exists already."""

from pathlib import Path
from typing import ClassVar

from compiled.spec import Container, Importer
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Job
from localvertex.state import executor_files
from localvertex.values.placeholders import Unresolvable, resolve_structure


class Importing:
    """Records an artifact with the URI and metadata given. Nothing is copied, nothing has to be there."""

    name: ClassVar[str] = "importer"

    def accepts(self, executor: Container | Importer) -> bool:
        """Any importer."""
        return isinstance(executor, Importer)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """A workspace is a Kubernetes volume."""
        needs_workspace = isinstance(executor, Importer) and executor.download_to_workspace
        return [f"{executor.place}: downloadToWorkspace needs a Kubernetes volume"] if needs_workspace else []

    def execute(self, job: Job) -> None:
        """Writes the executor output; says when a local path is not there."""
        importer = job.executor
        if not isinstance(importer, Importer):
            raise TypeError(f"{job.label} is no importer")
        try:
            parameters = job.executor_input["inputs"]["parameterValues"]
            uri = parameters.get("uri") if importer.uri is None else job.resolve(importer.uri)
            metadata = resolve_structure(importer.metadata, job.scope)
        except Unresolvable as error:
            raise TaskFailed(str(error), is_retryable=False) from None
        if not isinstance(uri, str) or not uri:
            raise TaskFailed("the importer's uri is empty", is_retryable=False)
        if "://" not in uri and not Path(uri).exists():
            job.context.warnings.say(f"{job.label}: the imported {uri} does not exist here")
        outputs = job.executor_input["outputs"]["artifacts"]
        executor_files.write_output(
            job.executor_input,
            {name: value["artifacts"][0] | {"uri": uri, "metadata": metadata} for name, value in outputs.items()},
        )

"""Serving containers that a pipeline deploys or predicts with: checked before anything starts.

Only what the file contains is checked: an importer's containerSpec that leads to the operation within one dag.
"""

from collections.abc import Iterable, Iterator

from localvertex.containers.choice import Choice
from localvertex.containers.serving.container import ServingContainer
from localvertex.errors import Refusal
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.model_upload import ModelUploadExecutor, snake_case
from localvertex_base.compiled.spec import Component, Container, Dag, Importer, Pipeline, TaskSpec
from localvertex_base.userinput.errors import UserError

_UNMANAGED = "unmanaged_container_model"


def refusals(pipeline: Pipeline, components: Iterable[Component], choice: Choice) -> list[Refusal]:
    """Return one reason for each importer of a container that would be started and cannot run here.

    A model that is only registered needs no container, and a step that would start it can be given.

    Raises:
        UserError: The engine that the user has named cannot be used.
    """
    reasons: list[Refusal] = []
    for task, importer in _served_importers(pipeline, components):
        spec = importer.metadata.get("containerSpec")
        if isinstance(spec, dict) and isinstance(spec.get("command", []), list):
            try:
                text = ServingContainer.of_model({"container_spec": snake_case(spec)}).problem(choice)
            except UserError as error:
                text = str(error)
            if text:
                line = (
                    f"{importer.path}.metadata.containerSpec: {text}; {task.display_name or task.name} would start it"
                )
                reasons.append(Refusal(line, "step", task.path))
    return reasons


def _served_importers(pipeline: Pipeline, components: Iterable[Component]) -> Iterator[tuple[TaskSpec, Importer]]:
    """Yield the importers whose model is deployed, or gets a batch prediction, with the task that does it."""
    for dag in [each.dag for each in components if each.dag]:
        for task in dag.tasks.values():
            executor = _executor(pipeline, task)
            if executor is not None and (
                ModelDeployExecutor().accepts(executor) or BatchPredictExecutor().accepts(executor)
            ):
                yield from ((task, each) for each in _importers(pipeline, dag, task, ("model", _UNMANAGED)))


def _importers(pipeline: Pipeline, dag: Dag, task: TaskSpec, names: tuple[str, ...]) -> Iterator[Importer]:
    for name in names:
        source = task.artifacts.get(name)
        producer = dag.tasks.get(source.producer or "") if source else None
        executor = _executor(pipeline, producer) if producer else None
        if isinstance(executor, Importer):
            yield executor
        elif producer and executor and ModelUploadExecutor().accepts(executor):
            yield from _importers(pipeline, dag, producer, (_UNMANAGED,))


def _executor(pipeline: Pipeline, task: TaskSpec) -> Container | Importer | None:
    component = pipeline.components.get(task.component)
    return pipeline.executors.get(component.executor) if component else None

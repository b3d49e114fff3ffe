"""Serving containers that a pipeline deploys or predicts with: checked before anything starts.

Only what the file contains is checked: an importer's containerSpec that leads to the operation within one dag.
"""

from collections.abc import Iterator

from localvertex.containers.choice import Choice
from localvertex.containers.serving.container import ServingContainer
from localvertex.errors import Refusal
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.model_upload import ModelUploadExecutor, snake_case
from localvertex_base.compiled.spec import Dag, Importer, Pipeline, TaskSpec
from localvertex_base.userinput.errors import UserError

_UNMANAGED = "unmanaged_container_model"


def refusals(pipeline: Pipeline, choice: Choice) -> list[Refusal]:
    """Return one reason for each importer of a container that would be started and cannot run here.

    A model that is only registered needs no container, and a step that would start it can be given.

    Raises:
        UserError: The engine that the user has named cannot be used.
    """
    reasons: list[Refusal] = []
    for task, importer in _served_importers(pipeline):
        spec = importer.metadata.get("containerSpec")
        if isinstance(spec, dict) and isinstance(spec.get("command", []), list):
            try:
                text = ServingContainer.of_model({"container_spec": snake_case(spec)}).problem(choice)
            except UserError as error:
                text = str(error)
            if text:
                path = f"{importer.path}.metadata.containerSpec"
                line = f"{path}: {text}; {task.display_name or task.name} would start it"
                reasons.append(Refusal(line, step=task.path))
    return reasons


def _served_importers(pipeline: Pipeline) -> Iterator[tuple[TaskSpec, Importer]]:
    """Yield the importers whose model is deployed, or gets a batch prediction, with the task that does it."""

    def importers(dag: Dag, task: TaskSpec, *names: str) -> Iterator[Importer]:
        for source in filter(None, map(task.artifacts.get, names)):
            producer = dag.tasks.get(source.producer or "")
            executor = pipeline.executor_of(producer) if producer else None
            if isinstance(executor, Importer):
                yield executor
            elif producer and executor and ModelUploadExecutor().accepts(executor):
                yield from importers(dag, producer, _UNMANAGED)

    for dag in pipeline.dags:
        for task in dag.tasks.values():
            executor = pipeline.executor_of(task)
            if executor and (ModelDeployExecutor().accepts(executor) or BatchPredictExecutor().accepts(executor)):
                yield from ((task, each) for each in importers(dag, task, "model", _UNMANAGED))

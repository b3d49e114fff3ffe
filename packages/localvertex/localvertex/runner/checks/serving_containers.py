"""Serving containers that a pipeline deploys or predicts with: checked before anything starts.

Only what is known is checked: the container of a given model, or an importer's containerSpec that leads to the
operation within one dag.
"""

from collections.abc import Iterator
from typing import Any

from localvertex._base.compiled.spec import Dag, Importer, Pipeline, TaskSpec
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.serving.container import ServingContainer
from localvertex.errors import Refusal
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.model_upload import ModelUploadExecutor, snake_case
from localvertex.store.executor_files import UPLOAD

_UNMANAGED = "unmanaged_container_model"


def refusals(pipeline: Pipeline, choice: Choice) -> list[Refusal]:
    """Return one reason for each container of an imported or given model that would be started and cannot run here.

    A model that is only registered needs no container, and a step that would start it can be given.

    Raises:
        UserError: The engine that the user has named cannot be used.
    """
    reasons: list[Refusal] = []
    for task, path, spec in _served(pipeline):
        if isinstance(spec, dict) and isinstance(spec.get("command", []), list):
            try:
                text = ServingContainer.of_model({"container_spec": snake_case(spec)}).problem(choice)
            except UserError as error:
                text = str(error)
            if text:
                line = f"{path}: {text}; {task.display_name or task.name} would start it"
                reasons.append(Refusal(line, step=task.path))
    return reasons


def _served(pipeline: Pipeline) -> Iterator[tuple[TaskSpec, str, Any]]:
    """Yield the tasks that deploy a model or predict with it, and the path and content of the model's container."""

    def containers(dag: Dag, task: TaskSpec, *names: str) -> Iterator[tuple[str, Any]]:
        for source in filter(None, map(task.artifacts.get, names)):
            producer = dag.tasks.get(source.producer or "")
            executor = pipeline.executor_of(producer) if producer else None
            given = producer and pipeline.components[producer.component].given
            if producer and given:
                for each in given["artifacts"].get(source.output, {}).get("artifacts", ()):
                    yield f"[step.{producer.name}]", each.get(UPLOAD, {}).get("container_spec")
            elif isinstance(executor, Importer):
                yield f"{executor.path}.metadata.containerSpec", executor.metadata.get("containerSpec")
            elif producer and executor and ModelUploadExecutor().accepts(executor):
                yield from containers(dag, producer, _UNMANAGED)

    for dag in pipeline.dags:
        for task in dag.tasks.values():
            executor = pipeline.executor_of(task)
            if executor and (ModelDeployExecutor().accepts(executor) or BatchPredictExecutor().accepts(executor)):
                yield from ((task, *each) for each in containers(dag, task, "model", _UNMANAGED))

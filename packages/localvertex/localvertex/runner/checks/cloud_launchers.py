"""Steps that start a program of Google's: refused before anything runs.

Which operations run locally instead is decided by the executors; the rest of google-cloud-pipeline-components creates
or changes resources in Google Cloud.
"""

from collections.abc import Iterable, Iterator

from localvertex.errors import Refusal
from localvertex.executors import runs_given_command
from localvertex.executors.python_step import PythonStepExecutor
from localvertex_base.compiled.launchers import is_google_image, launcher_module
from localvertex_base.compiled.spec import Component, Container, Pipeline


def refusals(pipeline: Pipeline, components: Iterable[Component]) -> list[Refusal]:
    """Return one reason for each step of these dags that would start a program of Google's."""
    reasons = []
    for path, container in _steps(pipeline, components):
        if module := _module(container):
            text = (
                f"{path}: {_operation(module)} of google-cloud-pipeline-components would run in Google Cloud; give its "
                "outputs, remove the step, or run the pipeline on Vertex AI"
            )
            reasons.append(Refusal(text, "step", path))
        elif _is_only_in_image(container):
            image = container.image
            text = (
                f"{path}: the program of this Google Cloud operation is only in its container image {image!r}; give "
                f"its outputs, remove the step, or give a local command with --image {image}=COMMAND"
            )
            reasons.append(Refusal(text, "step", path))
    return reasons


def _steps(pipeline: Pipeline, components: Iterable[Component]) -> Iterator[tuple[str, Container]]:
    """Yield the path of each task with a container whose own command would run, and that container."""
    for dag in [each.dag for each in components if each.dag]:
        for task in dag.tasks.values():
            component = pipeline.components.get(task.component)
            executor = pipeline.executors.get(component.executor) if component else None
            if isinstance(executor, Container) and runs_given_command(executor):
                yield task.path or task.name, executor


def _module(container: Container) -> str:
    return launcher_module((*container.replacement, *container.command, *container.args, *container.env.values()))


def _operation(module: str) -> str:
    """Return the name of an operation: `bigquery.query_job` of `container.v1.bigquery.query_job.launcher`."""
    words = [each for each in module.split(".") if each not in ("container", "v1", "preview", "_implementation")]
    if len(words) > 1 and words[-1] in ("launcher", "remote_runner", "executor"):
        words.pop()
    return ".".join(words) or module


def _is_only_in_image(container: Container) -> bool:
    is_inline = container.command[:1] in {("sh",), ("bash",)} and len(container.command) > 2
    is_google = is_google_image(container.image or "") and not container.replacement
    return is_google and not is_inline and not PythonStepExecutor().accepts(container)

"""Steps that start a program of Google's: refused before anything runs.

Which operations run locally instead is decided by the executors; the rest of google-cloud-pipeline-components creates
or changes resources in Google Cloud.
"""

from localvertex._base.compiled.launchers import is_google_image, launcher_module
from localvertex._base.compiled.spec import Container, Pipeline
from localvertex.errors import Refusal
from localvertex.executors import runs_given_command
from localvertex.executors.python_step import PythonStepExecutor


def refusals(pipeline: Pipeline) -> list[Refusal]:
    """Return one reason for each step that would start a program of Google's."""
    reasons = []
    for task in pipeline.tasks:
        container, path = pipeline.executor_of(task), task.path or task.name
        if not isinstance(container, Container) or not runs_given_command(container):
            continue
        words, image = (*container.command, *container.args, *container.env.values()), container.image or ""
        is_inline = container.command[:1] in {("sh",), ("bash",)} and len(container.command) > 2
        if module := launcher_module((*container.replacement, *words)):
            text = (
                f"{path}: {_operation(module)} of google-cloud-pipeline-components would run in Google Cloud; give its "
                "outputs, remove the step, or run the pipeline on Vertex AI"
            )
        elif (
            is_google_image(image)
            and not (container.replacement or is_inline)
            and not PythonStepExecutor().accepts(container)
        ):
            text = (
                f"{path}: the program of this Google Cloud operation is only in its container image {image!r}; give "
                f"its outputs, remove the step, or give a local command with --image {image}=COMMAND"
            )
        else:
            continue
        reasons.append(Refusal(text, step=task.path))
    return reasons


def _operation(module: str) -> str:
    """Return the name of an operation: `bigquery.query_job` of `container.v1.bigquery.query_job.launcher`."""
    words = [each for each in module.split(".") if each not in ("container", "v1", "preview", "_implementation")]
    if len(words) > 1 and words[-1] in ("launcher", "remote_runner", "executor"):
        words.pop()
    return ".".join(words) or module

"""The way on after a refusal: lines of localvertex.toml that let the pipeline run, with examples to replace."""

from collections.abc import Iterable

from localvertex.errors import Refusal
from localvertex.runner.checks.given_outputs import NamedTask, example, named_tasks
from localvertex.values.configuration import key, quoted
from localvertex_base.compiled.spec import Pipeline


def proposed(pipeline: Pipeline, reasons: Iterable[str]) -> str:
    """Return the lines to add to localvertex.toml, or an empty text if no line would help.

    A step that cannot run gets given outputs, an image its source, and a bucket a folder.

    Args:
        pipeline: The pipeline.
        reasons: Why it is refused; those that are a `Refusal` have a way on.
    """
    refusals = [each for each in reasons if isinstance(each, Refusal)]
    wanted = {each.step for each in refusals} - {""}
    blocks = [
        _given(task) for task in named_tasks(pipeline) if wanted & {task.spec.path, task.component.executor, task.path}
    ]
    blocks += [
        f'[image.{key(image)}]\npath = "path/to/source"\n# python = ".venv/bin/python"'
        '\n# command = ["python", "-m", "program"]'
        for image in dict.fromkeys(each.image for each in refusals if each.image)
    ]
    if packages := list(dict.fromkeys(each.package for each in refusals if each.package)):
        blocks.append(f"[packages]\nrelax = [{', '.join(map(quoted, packages))}]")
    buckets = {each.bucket for each in refusals} - {""}
    if buckets:
        blocks.append("[buckets]\n" + 'root = "buckets"\n' * ("root" in buckets) + "create = true")
    if files := dict.fromkeys(each.file for each in refusals if each.file):
        lines = [f'{quoted(address)} = "path/to/file"' for address in files]
        blocks.append("\n".join(["[buckets.files]", *lines]))
    return "\n\n".join(blocks)


def _given(task: NamedTask) -> str:
    outputs = ", ".join(f"{key(name)} = {example(each)}" for name, each in task.required.items())
    return f"[step.{key(task.path)}]\noutputs = {{{outputs}}}"

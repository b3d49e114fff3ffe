"""The way on after a refusal: lines of localvertex.toml that let the pipeline run, with examples to replace."""

from collections import defaultdict
from collections.abc import Iterable

from localvertex.errors import Refusal
from localvertex.runner.checks.given_outputs import NamedTask, named_tasks
from localvertex.values.configuration import key, quoted
from localvertex_base.compiled.spec import Pipeline

_SOURCE = """\
path = "path/to/source"
# python = ".venv/bin/python"
# command = ["python", "-m", "program"]"""


def proposed(pipeline: Pipeline, reasons: Iterable[str]) -> str:
    """Return the lines to add to localvertex.toml, or an empty text if no line would help.

    A step that cannot run gets given outputs, an image its source, and a bucket a folder.

    Args:
        pipeline: The pipeline.
        reasons: Why it is refused; those that are a `Refusal` have a way on.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for each in reasons:
        if isinstance(each, Refusal) and each.name:
            found[each.stand_in][each.name] = None
    steps = found["step"].keys()
    blocks = [_given(task) for task in named_tasks(pipeline) if steps & {task.spec.path, task.component.executor}]
    for image in dict.fromkeys([*found["image"], *(name.rpartition(" ")[0] for name in found["install"])]):
        packages = [name.rpartition(" ")[2] for name in found["install"] if name.rpartition(" ")[0] == image]
        lines = [_SOURCE] * (image in found["image"])
        lines += [f"packages = [{', '.join(map(quoted, packages))}]"] * bool(packages)
        blocks.append("\n".join([f"[image.{key(image)}]", *lines]))
    if relaxed := found["package"]:
        blocks.append(f"[packages]\nrelax = [{', '.join(map(quoted, relaxed))}]")
    if found["root"] or found["create"]:
        blocks.append("[buckets]\n" + 'root = "buckets"\n' * bool(found["root"]) + "create = true")
    if files := found["file"]:
        blocks.append("\n".join(["[buckets.files]", *(f'{quoted(address)} = "path/to/file"' for address in files)]))
    return "\n\n".join(blocks)


def in_place_of(pipeline: Pipeline, paths: Iterable[str]) -> str:
    """Return the lines that give the outputs of these tasks, which have failed.

    Args:
        pipeline: The pipeline.
        paths: Their paths in a record.
    """
    # Without the numbers of iterations.
    names = {"/".join(part for part in path.split("/") if not part.isdecimal()) for path in paths}
    return "\n\n".join(_given(task) for task in named_tasks(pipeline) if task.path in names)


def _given(task: NamedTask) -> str:
    outputs = ", ".join(f"{key(name)} = {value}" for name, value in task.required.items())
    return f"[step.{key(task.path)}]\noutputs = {{{outputs}}}"

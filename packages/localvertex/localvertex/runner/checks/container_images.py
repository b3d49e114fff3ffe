"""What stands in for container images: `--image IMAGE=COMMAND`, and `[image."IMAGE"]` of localvertex.toml."""

import shlex
from dataclasses import replace

from localvertex.containers.choice import Choice
from localvertex.errors import Refusal
from localvertex.executors import find_executor
from localvertex.executors.container_command import ContainerCommandExecutor
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.values.arguments import CommandPrefixes
from localvertex_base.compiled.spec import Container, Pipeline
from localvertex_base.userinput.errors import UserError


def from_options(options: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the commands by image; a command is split as a shell splits it, but no shell runs it.

    Raises:
        UserError: An option has another form.
    """
    prefixes = {}
    for option in options:
        image, _, text = option.partition("=")
        try:
            command = tuple(shlex.split(text))
        except ValueError as error:
            raise UserError(f"--image {option}: {error}") from None
        if not image or not command:
            example = "--image gcr.io/my/image=/opt/tool or --image alpine='docker run --rm alpine'"
            raise UserError(f"--image {option}: expected IMAGE=COMMAND, for example {example}")
        prefixes[image] = command
    return prefixes


def check(pipeline: Pipeline, command_prefixes: CommandPrefixes) -> None:
    """Refuse images that the pipeline does not use.

    Raises:
        UserError: No container has one of the images, and there are no custom jobs, whose images only the run knows.
    """
    known = {each.image for each in pipeline.executors.values() if isinstance(each, Container)}
    has_custom_jobs = any(CustomJobExecutor().accepts(each) for each in pipeline.executors.values())
    for image in set() if has_custom_jobs else command_prefixes.keys() - known:
        names = ", ".join(sorted(known)) or "(none)"
        raise UserError(f"--image {image}: no step uses this container image; the pipeline uses: {names}")


def apply(pipeline: Pipeline, command_prefixes: CommandPrefixes) -> Pipeline:
    """Return the pipeline with each `--image` command put before the commands of its image's containers."""
    return replace(
        pipeline,
        executors={
            name: replace(each, replacement=command_prefixes.get(each.image, ()))
            if isinstance(each, Container)
            else each
            for name, each in pipeline.executors.items()
        },
    )


def apply_stand_ins(pipeline: Pipeline, choice: Choice) -> tuple[Pipeline, list[str]]:
    """Return the pipeline with the stand-ins of localvertex.toml in place of images, and why others cannot be used."""
    executors, reasons = dict(pipeline.executors), list[str]()
    for name, each in executors.items():
        if not isinstance(each, Container) or each.replacement:
            continue
        stand_in = choice.stand_ins.of(each.image, (*each.command, *each.args))
        words: tuple[str, ...] = ()
        if isinstance(find_executor(each), ContainerCommandExecutor):
            try:
                words = stand_in.words(each.command, each.args)
            except UserError as error:
                reasons.append(Refusal(f"{each.path}: {error}", "image", each.image))
        each = replace(each, code=stand_in.digest())
        executors[name] = replace(each, replacement=words[:1], command=(), args=words[1:]) if words else each
    return replace(pipeline, executors=executors), reasons


def check_stand_ins(pipeline: Pipeline, choice: Choice) -> None:
    """Refuse a misspelt image of localvertex.toml.

    Raises:
        UserError: There is one, and there are no custom jobs, whose images only the run knows.
    """
    if not any(CustomJobExecutor().accepts(each) for each in pipeline.executors.values()):
        choice.stand_ins.check({each.image for each in pipeline.executors.values() if isinstance(each, Container)})

"""Stand-ins for container images: `--image IMAGE=COMMAND`, and `[image."IMAGE"]` of localvertex.toml."""

import shlex
from dataclasses import replace

from localvertex._base.compiled.spec import Container, Pipeline
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import StandIns, source_of
from localvertex.executors import find_executor
from localvertex.executors.container_command import ContainerCommandExecutor
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.values.arguments import CommandPrefixes
from localvertex.values.repository import Repository


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


def check(pipeline: Pipeline, command_prefixes: CommandPrefixes, stand_ins: StandIns) -> None:
    """Refuse images that the pipeline does not use, and of localvertex.toml those that look like misspelt ones of it.

    Raises:
        UserError: There is one, and there are no custom jobs, whose images only the run knows.
    """
    if any(CustomJobExecutor().accepts(each) for each in pipeline.executors.values()):
        return
    known = {each.image for each in pipeline.executors.values() if isinstance(each, Container)}
    for image in command_prefixes.keys() - known:
        names = ", ".join(sorted(known)) or "(none)"
        raise UserError(f"--image {image}: no step uses this container image; the pipeline uses: {names}")
    stand_ins.check(known)


def apply(pipeline: Pipeline, choice: Choice, repository: Repository) -> tuple[Pipeline, list[str]]:
    """Return the pipeline with what the user has named in place of images, and why some of it cannot be used.

    A command of `--image` is put before the commands of its image's containers.
    """
    executors, reasons = dict(pipeline.executors), list[str]()
    # Those of given steps stay as they are.
    used = {component.executor for component in pipeline.reachable}
    for name, each in executors.items():
        if not isinstance(each, Container) or name not in used:
            continue
        if prefix := choice.command_prefixes.get(each.image):
            executors[name] = replace(each, replacement=prefix)
            continue
        every, words = (*each.command, *each.args), tuple[str, ...]()
        stand_in, is_command = (
            choice.stand_ins.of(each.image, every),
            isinstance(find_executor(each), ContainerCommandExecutor),
        )
        try:
            words = stand_in.words(each.command, each.args) if is_command else ()
            if not (words or (is_command and choice.options.engine)):
                every = stand_in.localized(every)
        except UserError as error:
            reasons.append(
                source_of(f"{each.path}: {error}", each.image, each.command and every, each.path, repository)
            )
        number = len(each.command)
        each = replace(each, code=stand_in.digest(), command=every[:number], args=every[number:])
        executors[name] = replace(each, replacement=words[:1], command=(), args=words[1:]) if words else each
    return replace(pipeline, executors=executors), reasons

"""What runs in place of container images: `--image IMAGE=COMMAND`."""

import shlex
from collections.abc import Mapping
from dataclasses import replace

from compiled.spec import Container, Pipeline
from localvertex.executors.custom_job import CustomJob
from userinput.errors import UserError


def from_options(options: list[str]) -> dict[str, tuple[str, ...]]:
    """Commands by image; a command is split as a shell does, and no shell runs it.

    Raises:
        UserError: an option has another form.
    """
    images = {}
    for option in options:
        image, _, text = option.partition("=")
        try:
            command = tuple(shlex.split(text))
        except ValueError as error:
            raise UserError(f"--image {option}: {error}") from None
        if not image or not command:
            example = "--image gcr.io/my/image=/opt/tool or --image alpine='docker run --rm alpine'"
            raise UserError(f"--image {option}: expected IMAGE=COMMAND, for example {example}")
        images[image] = command
    return images


def apply(pipeline: Pipeline, images: Mapping[str, tuple[str, ...]]) -> Pipeline:
    """The pipeline with the commands put in: each stands before the command of containers with its image.

    Raises:
        UserError: no container has one of the images, and there are no custom jobs, whose images the run decides.
    """
    known = {each.image for each in pipeline.executors.values() if isinstance(each, Container)}
    has_custom_jobs = any(CustomJob().accepts(each) for each in pipeline.executors.values())
    for image in set() if has_custom_jobs else images.keys() - known:
        names = ", ".join(sorted(known)) or "none"
        raise UserError(f"--image {image}: no step has this image; images of the pipeline: {names}")
    return replace(
        pipeline,
        executors={
            name: replace(each, replacement=images.get(each.image, ())) if isinstance(each, Container) else each
            for name, each in pipeline.executors.items()
        },
    )

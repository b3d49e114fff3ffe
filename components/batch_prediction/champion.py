"""The champion as a batch prediction needs it: its resource name, and the size of its images."""

from typing import NamedTuple

from components.registry.labels import PROJECT_LABEL
from components.registry.registry import Registry
from localvertex_base.userinput.errors import UserError
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.results import exported


class Champion(NamedTuple):
    """The outputs of the step `find-champion`."""

    version: str
    """Resource name with the number."""
    image_size: int
    """Height and width in pixels."""


def find(*, model_name: str, region: str, pipeline_root: str) -> Champion:
    """Return the champion of the pipeline's model with a display name.

    Raises:
        UserError: There is no such model, it has no champion, or its files are not of this project.
    """
    registry = Registry(region=region, pipeline_root=pipeline_root)
    model = registry.find(model_name)
    champion = registry.champion(model) if model else None
    if champion is None:
        raise UserError(
            f"no champion of the model {model_name!r} with the label {'='.join(PROJECT_LABEL)} in {region}; register"
            " one with the pipeline image_training, or give another model_name"
        )
    image_size = exported.read(champion.artifact_uri)["image_size"]
    print(f"champion: {champion.name}, images of {image_size} pixels")
    return Champion(version=champion.name, image_size=image_size)

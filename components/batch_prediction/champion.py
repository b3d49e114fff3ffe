"""The champion as a batch prediction needs it: its resource name, and the size of its images."""

from typing import NamedTuple

from components.registry.labels import CHAMPION
from components.registry.registry import Registry
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
    champion = Registry(region=region, pipeline_root=pipeline_root).version(model_name, CHAMPION)
    image_size = exported.read(champion.artifact_uri)["image_size"]
    print(f"champion: {champion.name}, images of {image_size} pixels")
    return Champion(version=champion.name, image_size=image_size)

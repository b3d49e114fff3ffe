"""The `write-instances` step: images in, instances of a batch prediction out."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def write_instances(
    source: str,
    image_size: int,
    max_bad_fraction: float,
    instances: dsl.Output[dsl.Dataset],
    bad_images: dsl.Output[dsl.Artifact],
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "Instances",
    [("uris", list), ("destination", str), ("num_images", int), ("num_bad", int)],
):
    """Resize the images and write them as JSON Lines.

    Args:
        source: A folder, a manifest, or `tfds:NAME`.
        image_size: Height and width of the model's images, in pixels.
        max_bad_fraction: Fraction of unreadable images (0 to 1) above which the step fails.
        instances: Folder with the instances.
        bad_images: Images that cannot be read, with the reasons, JSON Lines.

    Returns:
        URIs of the files, a folder for the predictions, and the numbers of good and bad images.
    """
    from trainer.results.batch.instances import report_errors, write

    return report_errors(write)(
        source=source,
        image_size=image_size,
        directory=instances.path,
        uri=instances.uri,
        bad_images_path=bad_images.path,
        max_bad_fraction=max_bad_fraction,
    )

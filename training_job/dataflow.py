"""Whether `prepare` may start a Dataflow job, and with which machines; decided before it reads anything."""

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from typing import Any

import PIL

from trainer.data import dataset
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import factory
from trainer.files import storage
from training_job.container_image import PLACEHOLDER_IMAGE
from training_job.notification.targets import is_local_run
from vertex_gpu_training.userinput.errors import UserError


def dataflow_settings(
    parameters: Mapping[str, Any],
    *,
    source: str,
    image_size: int,
    max_examples: int,
    prepare_engine: str = factory.LOCAL,
    beam_runner: str = "",
) -> Settings | None:
    """Return what the job is started with; None if this run needs no job.

    Args:
        parameters: Fields of the settings, except `folder`, and `pipeline_root`.
        source: Where the images are.
        image_size: Height and width of the prepared images in pixels.
        max_examples: Maximum number of images; 0: all.
        prepare_engine: `local` or `dataflow`.
        beam_runner: The name of a local runner; empty for Dataflow.

    Raises:
        UserError: A value is wrong, or this is a local run, which must not start machines in the cloud.
    """
    factory.check(prepare_engine, beam_runner)
    if prepare_engine != factory.DATAFLOW or beam_runner:
        return None
    if is_local_run():
        raise UserError(
            "prepare_engine is 'dataflow', which starts machines in Google Cloud; a local run does not: set "
            f"prepare_engine=local, or add beam_runner={factory.FN_API_RUNNER} to try it on this machine"
        )
    if parameters.get("image", "") in ("", PLACEHOLDER_IMAGE) or importlib.util.find_spec("apache_beam") is None:
        raise UserError(
            "prepare_engine is 'dataflow', and the container image of this step has no Apache Beam; recompile with "
            "--cpu-image and the image that the target `cpu` of the Dockerfile builds"
        )
    if not source.startswith("gs://"):
        raise UserError(f"prepare_engine is 'dataflow' and source is {source!r}; Dataflow's workers read only gs://...")
    given = dict(parameters)
    identity = [source, image_size, max_examples, dataset.FORMAT_VERSION, PIL.__version__]
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]
    root = str(given.pop("pipeline_root")).replace("/gcs/", "gs://", 1).rstrip("/")
    return Settings(**given, folder=storage.join(root, "prepared", key))

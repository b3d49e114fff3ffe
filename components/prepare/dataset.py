"""The first step of the pipeline: it refuses wrong values of all steps before it reads a single image."""

from collections.abc import Mapping
from typing import Any

from components.container_image import PLACEHOLDER_IMAGE
from components.prepare.dataflow import dataflow_settings
from components.values import check_values
from trainer import prepare as dataset
from trainer.command_line import report_errors as report_errors  # a component imports it from here


def prepare(
    *, settings: Mapping[str, Any], prepare_engine: str = "local", dataflow: Mapping[str, Any], **options: Any
) -> dict[str, Any]:
    """Check the values of the later steps, then write the dataset.

    Args:
        settings: Values of the pipeline's parameters by name, and the `image` of the training job; empty outside of
            this pipeline.
        prepare_engine: `local` or `dataflow`.
        dataflow: Values for a Dataflow job, see `components.prepare.dataflow`; its region is that of the pipeline.
        **options: Those of `trainer.prepare.prepare`.

    Returns:
        The metadata of the dataset.

    Raises:
        UserError: A value is wrong, Vertex AI would refuse the machines, or the source cannot be used.
    """
    check_values(settings, image=settings.get("image", PLACEHOLDER_IMAGE), region=dataflow.get("region", ""))
    job = dataflow_settings(dataflow, options["source"], prepare_engine)
    return dataset.prepare(dataflow=job, **options)

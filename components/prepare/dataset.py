"""The first step of the pipeline: it refuses wrong values of all steps before it reads a single image."""

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from components.container_image import PLACEHOLDER_IMAGE
from components.values import check_values
from localvertex._base.step_endpoint import MARKER
from localvertex._base.userinput.errors import UserError
from trainer import prepare as dataset
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.data.preparing.dataflow.settings import ENGINES, LOCAL, Settings
from trainer.settings import check, from_values


def prepare(
    *, settings: Mapping[str, Any], prepare_engine: str = "local", dataflow: Mapping[str, Any], **options: Any
) -> dict[str, Any]:
    """Check the values of the later steps, then write the dataset.

    Args:
        settings: Values of the pipeline's parameters by name, and the `image` of the training job; empty outside of
            this pipeline.
        prepare_engine: `local` or `dataflow`.
        dataflow: Values for a Dataflow job, see `dataflow_settings`; its region is that of the pipeline.
        **options: Options of `trainer.prepare.prepare`.

    Returns:
        The metadata of the dataset.

    Raises:
        UserError: A value is wrong, Vertex AI would refuse the machines, or the source cannot be used.
    """
    check_values(settings, image=settings.get("image", PLACEHOLDER_IMAGE), region=dataflow.get("region", ""))
    job = dataflow_settings(dataflow, options["source"], prepare_engine)
    return dataset.prepare(dataflow=job, **options)


def dataflow_settings(parameters: Mapping[str, Any], source: str, prepare_engine: str) -> Settings | None:
    """Return the settings of the Dataflow job; None if this run needs no job.

    Args:
        parameters: Fields of the settings.
        source: Location of the images.
        prepare_engine: `local` or `dataflow`.

    Raises:
        UserError: A value is wrong, or this is a local run, which must not start machines in the cloud.
    """
    check("prepare_engine", prepare_engine, ENGINES)
    if prepare_engine == LOCAL:
        return None
    if MARKER in os.environ:
        raise UserError(
            "prepare_engine is 'dataflow', which starts machines in Google Cloud; a local run does not: set "
            "prepare_engine=local"
        )
    if parameters.get("image", "") in ("", PLACEHOLDER_IMAGE) or importlib.util.find_spec("apache_beam") is None:
        raise UserError(
            "prepare_engine is 'dataflow', but the container image of this step has no Apache Beam; build and compile "
            f"for the one that has it: python cloud.py up --dataflow --project {parameters.get('project', 'PROJECT')}"
        )
    if not source.startswith("gs://"):
        raise UserError(
            f"prepare_engine is 'dataflow', but source is {source!r}; Dataflow's workers read only gs://..."
        )
    return from_values(Settings, parameters)

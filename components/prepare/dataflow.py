"""Checks whether `prepare` may start a Dataflow job, and its settings, before anything is read."""

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from components.container_image import PLACEHOLDER_IMAGE
from components.values import fields_of
from localvertex._base.step_endpoint import MARKER
from localvertex._base.userinput.errors import UserError
from trainer.data.preparing.dataflow.settings import ENGINES, LOCAL, Settings
from trainer.settings import check


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
    return Settings(**fields_of(Settings, parameters))

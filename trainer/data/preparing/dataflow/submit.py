"""Creates a job with Beam; the service refuses a second active job of the same name."""

import logging
from collections.abc import Callable
from typing import Any

from trainer.data.preparing.dataflow.service import emulator
from trainer.data.preparing.dataflow.settings import Settings


def submit(settings: Settings, build: Callable[[Any], None]) -> str:
    """Create the job and return its id; empty if the active job of another step has the name.

    Args:
        settings: Settings of the job.
        build: Adds the transforms to a pipeline of Beam.
    """
    # Beam logs hundreds of lines on the job; this project reports a refusal as a single line.
    logging.disable(logging.CRITICAL)
    try:
        return _submit(settings, build)
    finally:
        logging.disable(logging.NOTSET)


def _submit(settings: Settings, build: Callable[[Any], None]) -> str:
    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner
    from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
    from google.api_core.exceptions import Conflict

    flags = settings.arguments()
    if address := emulator():
        flags += [f"--dataflow_endpoint={address}", "--no_auth"]
    pipeline = apache_beam.Pipeline(runner=DataflowRunner(), options=PipelineOptions(flags))
    build(pipeline)
    try:
        return str(pipeline.run().job_id())
    except (DataflowJobAlreadyExistsError, Conflict):
        return ""

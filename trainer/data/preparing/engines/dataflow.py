"""The engine on Dataflow: the work items of a dataset are done by its job."""

import functools

from trainer.command_line import TrainingError
from trainer.data.preparing.dataflow import run as jobs
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import beam, exchange


def engine(settings: Settings) -> beam.Beam:
    """Return the engine after the job of an earlier attempt, if one is active, has ended.

    What that job finished is then known before any work is given to another one.

    Raises:
        TrainingError: That job failed.
    """
    jobs.wait_for_earlier(settings)
    return beam.Beam(settings.folder, functools.partial(_run, settings))


def _run(settings: Settings, folder: str) -> None:
    try:
        jobs.run(settings, functools.partial(beam.build, folder=folder), lambda: not exchange.missing(folder))
    except TrainingError:
        # What a worker raised says more than the messages of the job.
        exchange.raise_error(folder)
        raise

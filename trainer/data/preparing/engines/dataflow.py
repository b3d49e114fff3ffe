"""Does work items on Dataflow: by the one active job of a dataset."""

import dataclasses
import functools

from trainer.command_line import TrainingError
from trainer.data.preparing.dataflow import run as jobs
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import beam, exchange


def runner(settings: Settings, parts_folder: str) -> beam.Run:
    """Return what does the work, after the job of an earlier attempt has ended, if one is active.

    What that job finished is then known before any work is given to another one.

    Args:
        settings: Those of the job.
        parts_folder: That of the dataset's parts; the job's name follows from the folder that it is in.

    Raises:
        UserError: The folder is not in a bucket.
        TrainingError: The earlier job failed.
    """
    own = dataclasses.replace(settings, folder=parts_folder.rpartition("/")[0])
    jobs.wait_for_earlier(own)
    return functools.partial(_run, own)


def _run(settings: Settings, folder: str) -> None:
    try:
        jobs.run(settings, functools.partial(beam.build, folder=folder), lambda: not exchange.missing(folder))
    except TrainingError:
        # What a worker raised says more than the messages of the job.
        exchange.raise_error(folder)
        raise

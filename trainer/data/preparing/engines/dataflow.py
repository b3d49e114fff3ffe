"""Processes work items in the active Dataflow job of a dataset."""

import dataclasses
import functools

from trainer.command_line import TrainingError
from trainer.data.preparing.dataflow import run as jobs
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import beam, exchange


def runner(settings: Settings, parts_folder: str) -> beam.Run:
    """Wait for the active job of an earlier attempt, if any, and return a function that processes work items.

    Results of that job are then known before another one starts.

    Args:
        settings: Settings of the job.
        parts_folder: Folder of the dataset's parts; its parent folder determines the job's name.

    Raises:
        UserError: The folder is not in a bucket.
        TrainingError: The earlier job failed.
    """
    own = dataclasses.replace(settings, folder=parts_folder.rpartition("/")[0])
    jobs.wait_for_earlier(own)
    return functools.partial(_run, own)


def _run(settings: Settings, folder: str) -> None:
    try:
        jobs.run(settings, functools.partial(beam.build, folder=folder), lambda: not exchange.missing_results(folder))
    except TrainingError:
        # The exception of a worker is more precise than the messages of the job.
        exchange.raise_error(folder)
        raise

"""Makes the engine of a run, and processes work items in the Dataflow job of a dataset."""

import dataclasses
import functools
from typing import BinaryIO

from exact_resume.files import storage
from trainer.command_line import TrainingError
from trainer.data.preparing.dataflow import run as jobs
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import beam, exchange
from trainer.data.preparing.engines.distributed import Distributed
from trainer.data.preparing.engines.local import Local

Engine = Local | Distributed
"""Both have the same methods, which `Local` describes. Only the engine itself interprets the offsets of its rows."""


def make(dataflow: Settings | None, *, file: BinaryIO, parts_folder: str, work_folder: str, is_remote: bool) -> Engine:
    """Make an engine.

    Args:
        dataflow: Settings of the Dataflow job; None to read the images on this machine.
        file: File for the prepared images, if they are kept on this machine.
        parts_folder: Folder for parts that a later attempt can use, local or gs://; empty for none.
        work_folder: Folder for files of this attempt that workers read and write.
        is_remote: Whether the dataset will be on gs://.

    Raises:
        TrainingError: The job of an earlier attempt failed while this one waited for it.
    """
    # In a local folder, what a killed attempt published is compared: almost no image is read, and nothing is kept.
    if dataflow is None or not storage.is_remote(work_folder):
        return Local(file, parts_folder)
    # The parent folder of the dataset's parts determines the job's name.
    settings = dataclasses.replace(dataflow, folder=work_folder.rpartition("/")[0])
    # Results of an earlier attempt's job are then known before another job starts.
    jobs.wait_for_earlier(settings)
    workers = beam.Beam(work_folder, functools.partial(_run, settings))
    return Distributed(workers, parts_folder, is_remote=is_remote)


def _run(settings: Settings, folder: str) -> None:
    try:
        jobs.run(settings, functools.partial(beam.build, folder=folder), lambda: not exchange.missing_results(folder))
    except TrainingError:
        # The exception of a worker is more precise than the messages of the job.
        exchange.raise_error(folder)
        raise

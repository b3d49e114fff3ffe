"""Makes the engine of a run."""

from typing import BinaryIO

from exact_resume.files import storage
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import dataflow as on_dataflow
from trainer.data.preparing.engines.beam import Beam
from trainer.data.preparing.engines.distributed import Distributed
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.engines.local import Local


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
    beam = Beam(work_folder, on_dataflow.runner(dataflow, work_folder))
    return Distributed(beam, parts_folder, is_remote=is_remote)

"""Checks the names of engines, and makes them."""

from typing import BinaryIO

from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote
from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import dataflow as on_dataflow, fn_api
from trainer.data.preparing.engines.beam import Beam
from trainer.data.preparing.engines.distributed import Distributed
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.engines.local import Local

LOCAL, DATAFLOW = ENGINES = ("local", "dataflow")
_FN_API_RUNNER = "FnApiRunner"


def check(prepare_engine: str, beam_runner: str) -> None:
    """Refuse engines that are not available on this machine, before anything is read.

    Args:
        prepare_engine: As for `check_names`.
        beam_runner: As for `check_names`.

    Raises:
        UserError: The names are wrong, or Apache Beam is not installed.
    """
    check_names(prepare_engine, beam_runner)
    if prepare_engine != LOCAL:
        Beam.check()


def check_names(prepare_engine: str, beam_runner: str) -> None:
    """Refuse unknown and conflicting names.

    Args:
        prepare_engine: One of ENGINES.
        beam_runner: Empty, or FnApiRunner to test the work for Dataflow in two processes of this machine.

    Raises:
        UserError: The names are wrong, or do not fit together.
    """
    if prepare_engine not in ENGINES:
        raise UserError(f"prepare_engine={quote(prepare_engine)} does not exist; use local or dataflow")
    if beam_runner not in ("", _FN_API_RUNNER):
        why = ", because DirectRunner may download another runner" if beam_runner == "DirectRunner" else ""
        raise UserError(
            f"beam_runner={quote(beam_runner)} is not supported; use FnApiRunner for this machine{why}, or leave it"
            " empty for Dataflow"
        )
    if beam_runner and prepare_engine == LOCAL:
        raise UserError(
            f"beam_runner={beam_runner} has no effect with prepare_engine=local; use prepare_engine=dataflow"
        )


def make(
    prepare_engine: str,
    beam_runner: str,
    dataflow: Settings | None = None,
    *,
    file: BinaryIO,
    parts_folder: str,
    work_folder: str,
    is_remote: bool,
) -> Engine:
    """Make an engine.

    Args:
        prepare_engine: As for `check`.
        beam_runner: As for `check`.
        dataflow: Settings of the Dataflow job, without a `beam_runner`.
        file: File for the prepared images, if they are kept on this machine.
        parts_folder: Folder for parts that a later attempt can use, local or gs://; empty for none.
        work_folder: Folder for files of this attempt that workers read and write.
        is_remote: Whether the dataset will be on gs://.

    Raises:
        UserError: The settings of a Dataflow job are missing.
        TrainingError: The job of an earlier attempt failed while this one waited for it.
    """
    if prepare_engine == LOCAL:
        return Local(file, parts_folder)
    if beam_runner:
        return Distributed(Beam(work_folder, fn_api.run), parts_folder, is_remote=is_remote)
    if dataflow is None:
        raise UserError(
            "prepare_engine=dataflow needs a pipeline on Vertex AI, because it starts machines in Google Cloud; use"
            f" local, or --beam-runner={_FN_API_RUNNER} on this machine"
        )
    if not storage.is_remote(work_folder):
        # Compares with the dataset that a killed attempt published: almost no image is read, and nothing is kept.
        return Local(file, parts_folder)
    beam = Beam(work_folder, on_dataflow.runner(dataflow, work_folder))
    return Distributed(beam, parts_folder, is_remote=is_remote)

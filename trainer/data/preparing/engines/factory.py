"""Returns an engine by its name."""

from typing import BinaryIO

from trainer.data.preparing.engines import fn_api
from trainer.data.preparing.engines.beam import Beam
from trainer.data.preparing.engines.distributed import Distributed
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.engines.local import Local
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import quoted

LOCAL, DATAFLOW = ENGINES = ("local", "dataflow")
FN_API_RUNNER = "FnApiRunner"


def check(prepare_engine: str, beam_runner: str) -> None:
    """Refuse what is not available, before anything is read.

    Args:
        prepare_engine: One of ENGINES.
        beam_runner: Empty, or for tests FnApiRunner: it runs the work for Dataflow in two processes of this machine.

    Raises:
        UserError: The names are wrong, do not fit together, or need what is not installed.
    """
    if prepare_engine not in ENGINES:
        raise UserError(f"prepare_engine={quoted(prepare_engine)} does not exist; use local or dataflow")
    if beam_runner not in ("", FN_API_RUNNER):
        why = ", because DirectRunner may download another runner" if beam_runner == "DirectRunner" else ""
        raise UserError(
            f"beam_runner={quoted(beam_runner)} is not supported; use FnApiRunner for this machine{why}, or nothing"
            " for Dataflow"
        )
    if beam_runner and prepare_engine == LOCAL:
        raise UserError(
            f"beam_runner={beam_runner} has no effect with prepare_engine=local; use prepare_engine=dataflow"
        )
    if prepare_engine != LOCAL:
        Beam.check()


def make(
    prepare_engine: str, beam_runner: str, *, file: BinaryIO, parts_folder: str, scratch: str, is_remote: bool
) -> Engine:
    """Return an engine.

    Args:
        prepare_engine: As for `check`.
        beam_runner: As for `check`.
        file: For the prepared images, if they are kept on this machine.
        parts_folder: For parts that a later attempt can use, local or gs://; empty for none.
        scratch: A folder on this machine; the caller removes it.
        is_remote: Whether the dataset will be on gs://.

    Raises:
        UserError: There is no Dataflow job to start.
    """
    if prepare_engine == LOCAL:
        return Local(file, parts_folder)
    if not beam_runner:
        raise UserError(
            "prepare_engine=dataflow starts machines in Google Cloud, which only a pipeline on Vertex AI does; use"
            f" local, or beam_runner={FN_API_RUNNER} on this machine"
        )
    return Distributed(Beam(parts_folder or scratch, fn_api.run), parts_folder, is_remote=is_remote)

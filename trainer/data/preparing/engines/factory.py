"""Returns an engine by its name."""

from trainer.data.preparing.engines import fn_api
from trainer.data.preparing.engines.beam import Beam
from trainer.data.preparing.engines.engine import Engine, Local
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import quoted

LOCAL, DATAFLOW = ENGINES = ("local", "dataflow")
FN_API_RUNNER = "FnApiRunner"


def check(prepare_engine: str, beam_runner: str) -> None:
    """Refuse what is not available.

    Args:
        prepare_engine: One of ENGINES.
        beam_runner: Empty, or for tests FnApiRunner: it runs the work for Dataflow in two processes of this machine.

    Raises:
        UserError: The names are wrong, or do not fit together.
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


def make(prepare_engine: str, beam_runner: str, folder: str) -> Engine:
    """Return an engine.

    Args:
        prepare_engine: As for `check`.
        beam_runner: As for `check`.
        folder: For work items and results, local or gs://; all workers can read and write it.

    Raises:
        UserError: Apache Beam is not installed.
    """
    check(prepare_engine, beam_runner)
    if prepare_engine == LOCAL:
        return Local()
    return Beam(folder, fn_api.run)

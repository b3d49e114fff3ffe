"""Returns an engine by its name."""

from trainer.data.preparing.dataflow.settings import Settings
from trainer.data.preparing.engines import dataflow as on_dataflow, fn_api
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


def make(prepare_engine: str, beam_runner: str, folder: str, dataflow: Settings | None = None) -> Engine:
    """Return an engine.

    Args:
        prepare_engine: As for `check`.
        beam_runner: As for `check`.
        folder: For work items and results on this machine.
        dataflow: The job to start without a local runner.

    Raises:
        UserError: Apache Beam is not installed, or there is no job to start.
        TrainingError: The job of an earlier attempt failed.
    """
    check(prepare_engine, beam_runner)
    if prepare_engine == LOCAL:
        return Local()
    if beam_runner:
        return Beam(folder, fn_api.run)
    if dataflow is None:
        raise UserError(
            "prepare_engine=dataflow starts machines in Google Cloud, which only a pipeline on Vertex AI does; use"
            f" local, or beam_runner={FN_API_RUNNER} on this machine"
        )
    return on_dataflow.engine(dataflow)

"""How a step is executed, one class for each kind of executor; what is executed when is decided in `runner`."""

from typing import ClassVar, Protocol

from localvertex._base.compiled.spec import Container, Importer
from localvertex.executors.attempt import Attempt
from localvertex.executors.container_command import ContainerCommandExecutor
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.endpoint_create import EndpointCreateExecutor, EndpointDeleteExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor, ModelUndeployExecutor
from localvertex.executors.google_cloud.model_get import ModelGetExecutor
from localvertex.executors.google_cloud.tuning_job import TuningJobExecutor
from localvertex.executors.google_cloud.tuning_trials import TuningTrialsExecutor
from localvertex.executors.importer import ImporterExecutor
from localvertex.executors.model_upload import ModelUploadExecutor
from localvertex.executors.notification_email import NotificationEmailExecutor
from localvertex.executors.python_step import PythonStepExecutor


class Executor(Protocol):
    """Runs steps of one kind. It holds no state of a run."""

    name: ClassVar[str]
    """Name in messages and run.json."""

    def accepts(self, executor: Container | Importer) -> bool:
        """Return whether this executor runs the spec."""
        ...

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Return the parts of the spec that cannot be honoured, one reason each, before anything runs."""
        ...

    def execute(self, attempt: Attempt) -> None:
        """Run one attempt and leave the outputs where the executor input names them.

        Raises:
            TaskFailed: The attempt failed.
            Cancelled: The run was stopped.
        """
        ...


_EXECUTORS: tuple[Executor, ...] = (
    ImporterExecutor(),
    CustomJobExecutor(),
    TuningJobExecutor(),
    TuningTrialsExecutor(),
    ModelUploadExecutor(),
    ModelGetExecutor(),
    EndpointCreateExecutor(),
    EndpointDeleteExecutor(),
    ModelDeployExecutor(),
    ModelUndeployExecutor(),
    BatchPredictExecutor(),
    NotificationEmailExecutor(),
    PythonStepExecutor(),
    ContainerCommandExecutor(),
)


def find_executor(executor: Container | Importer) -> Executor | None:
    """Return the first executor that accepts the spec, None when no executor does."""
    return next((each for each in _EXECUTORS if each.accepts(executor)), None)


def has_replicas(executor: Container | Importer) -> bool:
    """Return whether the step is a custom job or a tuning job; only their replicas get the run's faults."""
    return isinstance(find_executor(executor), CustomJobExecutor | TuningJobExecutor)


def runs_given_command(executor: Container | Importer) -> bool:
    """Return whether the command in the file would run, and not a local replacement of it."""
    return isinstance(find_executor(executor), PythonStepExecutor | ContainerCommandExecutor)


__all__ = ["Executor", "find_executor", "has_replicas", "runs_given_command"]

"""What can execute a step. One class a file; the first that accepts an executor spec gets it."""

from compiled.spec import Container, Importer
from localvertex.executors.base import Executor
from localvertex.executors.container_command import ContainerCommand
from localvertex.executors.custom_job import CustomJob
from localvertex.executors.importing import Importing
from localvertex.executors.model_upload import ModelUpload
from localvertex.executors.notification_email import NotificationEmail
from localvertex.executors.python_step import PythonStep

EXECUTORS: tuple[Executor, ...] = (
    Importing(), CustomJob(), ModelUpload(), NotificationEmail(), PythonStep(), ContainerCommand(),
)  # fmt: skip


def find(executor: Container | Importer) -> Executor | None:
    """The one that runs this spec here, None when there is none."""
    return next((each for each in EXECUTORS if each.accepts(executor)), None)


__all__ = ["EXECUTORS", "Executor", "find"]

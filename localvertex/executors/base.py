"""What an executor is."""

from typing import ClassVar, Protocol

from compiled.spec import Container, Importer
from localvertex.executors.attempt import Job


class Executor(Protocol):
    """Runs steps of one kind. An executor holds no state of a run."""

    name: ClassVar[str]
    """For messages and run.json."""

    def accepts(self, executor: Container | Importer) -> bool:
        """Whether this is the one for the spec."""
        ...

    def refusals(self, executor: Container | Importer) -> list[str]:
        """What in the spec cannot be honoured, before anything runs."""
        ...

    def execute(self, job: Job) -> None:
        """Runs one attempt, leaving the outputs where the executor input says.

        Raises:
            TaskFailed: it failed.
            Cancelled: the run was stopped.
        """
        ...

"""The ways in which a run ends early: it is refused, a task fails, it is stopped, or its record cannot be written."""

from localvertex_base.userinput.errors import UserError


class Refused(UserError):
    """The pipeline uses features that cannot run locally; `reasons` names each of them with its path in the file."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class TaskFailed(Exception):
    """A task ran and failed.

    Attributes:
        exit_code: The exit code of its process, None when no process was started.
        is_retryable: Whether the task's retry policy applies.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, is_retryable: bool = True) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.is_retryable = is_retryable


class Cancelled(Exception):
    """The run was stopped while this task was running."""


class RecordNotWritten(Exception):
    """The record of a run cannot be written, so that the run had to stop; it can be resumed."""

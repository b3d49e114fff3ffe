"""The two ways in which things go wrong: the user's input, and a task that ran."""

from userinput.errors import UserError


class Refused(UserError):
    """The pipeline uses features that do not run here; `reasons` names each of them and its place."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class TaskFailed(Exception):
    """A task ran and failed.

    Attributes:
        exit_code: the exit code of its process, None when no process had started.
        is_retryable: whether the task's own retry policy may try again.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, is_retryable: bool = True) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.is_retryable = is_retryable


class Cancelled(Exception):
    """The run was stopped while this task was running."""

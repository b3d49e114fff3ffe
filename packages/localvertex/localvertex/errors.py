"""The ways in which a run ends early: it is refused, a task fails, it is stopped, or its record cannot be written."""

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError


class Refusal(str):
    """Why a part of a pipeline cannot run here, one line that starts with its path, and what would let it run.

    Attributes:
        step: The path in the file of the task that can be given, or the label of its executor; empty for none.
        table: The names of a table of localvertex.toml that helps; empty: only the step's outputs do.
        content: What the table needs, with examples to replace.
    """

    step: str
    table: tuple[str, ...]
    content: JsonObject

    def __new__(
        cls, text: str, *, step: str = "", table: tuple[str, ...] = (), content: JsonObject | None = None
    ) -> "Refusal":
        """Create it from its line."""
        self = super().__new__(cls, text)
        self.step, self.table, self.content = step, table, content or {}
        return self


class Refused(UserError):
    """The pipeline uses features that cannot run locally, or a run lacks values.

    Attributes:
        reasons: Each of them with its path in the file, one line each.
        proposal: Lines for localvertex.toml that resolve what can be resolved; empty for none.
    """

    def __init__(self, reasons: list[str], proposal: str = "") -> None:
        super().__init__("; ".join(reasons))
        self.reasons, self.proposal = reasons, proposal

    @property
    def way_on(self) -> str:
        """The proposal with its heading; empty without one."""
        return f"add to localvertex.toml:\n\n{self.proposal}" if self.proposal else ""


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

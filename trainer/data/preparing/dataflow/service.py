"""Idempotent calls to the Dataflow service about existing jobs: find, get, cancel."""

import dataclasses
import os
import re
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.command_line import TrainingError
from trainer.data.preparing.dataflow.settings import Settings
from trainer.google_errors import google_error, is_temporary

_EMULATOR = "DATAFLOW_EMULATOR_HOST"
"""Environment variable for tests: localhost:PORT of a server in place of Dataflow, without credentials."""
_TERMINAL = {"DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINED"}
_ENDING = {"CANCELLING", "DRAINING"}
_PREFIX = "JOB_STATE_"
_RETRY_SECONDS = 600.0
"""Time without an answer after which the step fails."""
_CALL_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the service describes it."""

    id: str
    state: str
    """State without its prefix, e.g. RUNNING."""

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state in _TERMINAL

    @property
    def is_ending(self) -> bool:
        """Whether the job is being stopped."""
        return self.state in _ENDING


class Service:
    """The jobs of one project and region."""

    def __init__(self, settings: Settings) -> None:
        import google.cloud.dataflow as dataflow

        self.settings = settings
        self._place = {"project_id": settings.project, "location": settings.region}
        client: dict[str, Any] = {"transport": "rest"}
        if address := emulator():
            from google.auth.credentials import AnonymousCredentials

            anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
            client |= {"credentials": anonymous, "client_options": {"api_endpoint": address}}
        self._jobs = dataflow.JobsV1Beta3Client(**client)
        self._messages = dataflow.MessagesV1Beta3Client(**client)

    def active(self, name: str) -> Job | None:
        """Return the active job of this name, if any; the service allows only one."""
        jobs = self._call(self._jobs.list_jobs, {"name": name})
        found = (_job(each) for each in jobs if each.name == name)
        return next((job for job in found if not job.is_over), None)

    def get(self, job_id: str) -> Job:
        """Return the current state of the job."""
        return _job(self._call(self._jobs.get_job, {"job_id": job_id}))

    def cancel(self, job_id: str) -> None:
        """Request the end of the job; a job that has ended stays unchanged."""
        import google.cloud.dataflow as dataflow
        from google.api_core import exceptions

        wanted = dataflow.Job(requested_state=dataflow.JobState.JOB_STATE_CANCELLED)
        try:
            self._call(self._jobs.update_job, {"job_id": job_id, "job": wanted})
        except exceptions.ClientError:
            if not self.get(job_id).is_over:
                raise

    def errors(self, job_id: str) -> list[str]:
        """Return the error messages of a job, oldest first."""
        import google.cloud.dataflow as dataflow

        wanted = {"job_id": job_id, "minimum_importance": dataflow.JobMessageImportance.JOB_MESSAGE_ERROR}
        found = self._call(self._messages.list_job_messages, wanted)
        return [on_one_line(each.message_text, 500) for each in found]

    def _call(self, method: Any, fields: dict[str, Any]) -> Any:
        from google.api_core import retry

        # For a moment, Dataflow does not find a new job.
        again = retry.Retry(
            predicate=lambda error: is_temporary(error) or getattr(error, "code", 0) == 404, timeout=_RETRY_SECONDS
        )
        return method(request=self._place | fields, retry=again, timeout=_CALL_SECONDS)


def emulator() -> str:
    """Return the address of the tests' server; empty without one.

    Raises:
        UserError: The address is not localhost, so it could be a paid service.
    """
    host = os.environ.get(_EMULATOR, "")
    if host and not re.fullmatch(r"localhost:\d+", host):
        raise UserError(f"{_EMULATOR} is {host!r}; expected localhost:PORT of a test server")
    return f"http://{host}" if host else ""


def explain(error: BaseException, settings: Settings, doing: str) -> TrainingError:
    """Return the error of a call as one line with a hint."""
    hint = f"; docs/cloud.md lists the roles and the API that Dataflow needs in {settings.project}"
    line = found.line() if (found := google_error(error)) else on_one_line(error)
    return TrainingError(f"{doing} failed: {line}{hint if is_refusal(error) else ''}")


def is_refusal(error: BaseException) -> bool:
    """Return whether the service has refused a request, which therefore had no effect."""
    return getattr(error, "code", None) in (400, 401, 403)


def _job(found: Any) -> Job:
    return Job(id=found.id, state=found.current_state.name.removeprefix(_PREFIX))

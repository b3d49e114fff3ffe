"""The collection customJobs of the API: worker pools run as processes of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

from localvertex._base.lines import WriteLine
from localvertex.api.jobs.collection import JobCollection, RunningJob, failed
from localvertex.api.jobs.host import JobHost
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError, Status, refusing
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import Store
from localvertex.errors import TaskFailed
from localvertex.executors.step_jobs import NotGranted
from localvertex.jobs import CustomJob, JobState, JobStatus, Outcome, QuotaExceeded
from localvertex.jobs.status import FINAL_STATES, StatusFile
from localvertex.runner.engine import Options

_NOT_GRANTED = (
    "{method} is not available to this step: {reason}; it may create what its inputs worker_pool_specs and candidates "
    "describe, and stop that"
)


class StepCustomJobs(JobCollection):
    """The custom jobs that steps create; each step stops and deletes its own only."""

    collection, message, objects = "customJobs", "CustomJob", ("jobSpec",)

    def create(self, call: Call) -> Resource:
        """Start a job of a step."""
        message = messages.parse("CustomJob", call.body)
        if (owner := call.jobs) is None:
            raise _refused("CreateCustomJob", "it has no such inputs")
        try:
            with _refusing():
                job = owner.read(message, call.location.region)
            return self._start(call.location, message, lambda each: self._run_owned(each, job), owner=owner).resource
        except NotGranted as error:
            raise _refused("CreateCustomJob", str(error)) from None

    def cancel(self, call: Call) -> Resource:
        """Ask a running job to stop; one that has ended is unchanged."""
        self._check_own(call, "CancelCustomJob")
        return super().cancel(call)

    def delete(self, call: Call) -> Resource:
        """Delete a job that has ended; its logs are those of its step."""
        self._check_own(call, "DeleteCustomJob")
        return super().delete(call)

    def _check_own(self, call: Call, method: str) -> None:
        """Refuse a step that has not created the job.

        Raises:
            ApiError: It has not.
        """
        try:
            if call.jobs:
                call.jobs.check_own(call.resource_id)
        except NotGranted as error:
            raise _refused(method, str(error)) from None

    def _run_owned(self, running: RunningJob, job: CustomJob) -> Resource:
        """Run the processes of a job of a step."""
        if (owner := running.owner) is None:
            raise TypeError(f"{running.name} has no step")
        outcome = owner.execute(
            job,
            name=running.resource["name"],
            processes=running.processes,
            observe=lambda status: self._observe(running, status),
        )
        return _end_of(outcome)

    def _observe(self, running: RunningJob, status: JobStatus) -> None:
        if status.state not in FINAL_STATES:
            self._follow(running, status.state)


class CustomJobs(StepCustomJobs):
    """The custom jobs of a server: those of clients, too.

    Args:
        store: The records of the server.
        log: Called with the start, the end and the warnings of each job.
        options: Options of the server.
    """

    def __init__(self, store: Store, log: WriteLine, options: Options) -> None:
        super().__init__(store, log)
        self.host = JobHost(store, options)
        """Runs them, and the jobs of other kinds."""

    def create(self, call: Call) -> Resource:
        """Start a job."""
        if call.jobs:
            return super().create(call)
        return self.start(call.location, messages.parse("CustomJob", call.body)).resource

    def start(self, location: Location, message: Resource) -> RunningJob:
        """Start a job of a client.

        Raises:
            ApiError: The service would refuse it, or it cannot run here.
        """
        warnings: list[str] = []
        with _refusing():
            job = self.host.read(message, location.region, warnings.append)
            self.host.shortages.check_quota(job, self._log)
        return self._start(location, message, lambda running: self._run(running, job, location.project), warnings)

    def _run(self, running: RunningJob, job: CustomJob, project: str) -> Resource:
        """Run the processes of a job of a client."""
        with self.host.surroundings(running) as (machine, ledger):
            status_file = StatusFile(running.folder, machine.credentials.secrets.remove)

            def observe(status: JobStatus) -> None:
                self._observe(running, status)
                status_file.write(status)

            outcome = self.host.run(job, running, ledger, project, observe=observe, credentials=machine.credentials)
        return _end_of(outcome)


def _end_of(outcome: Outcome) -> Resource:
    """Return the last fields of a job."""
    if outcome.state is not JobState.FAILED:
        return {"state": str(outcome.state)}
    if outcome.is_shortage:
        return failed(Status.RESOURCE_EXHAUSTED, outcome.error)
    # The service reports a failing user program as an invalid argument.
    return failed(Status.ABORTED if outcome.exit_code is None else Status.INVALID_ARGUMENT, outcome.error)


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse a job as the service does."""
    with refusing(Status.INVALID_ARGUMENT, TaskFailed), refusing(Status.RESOURCE_EXHAUSTED, QuotaExceeded):
        yield


def _refused(method: str, reason: str) -> ApiError:
    return ApiError(Status.PERMISSION_DENIED, _NOT_GRANTED.format(method=f"JobService.{method}", reason=reason))

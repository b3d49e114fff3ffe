"""The collection customJobs of the API: worker pools run as processes of this machine."""

from localvertex._base.lines import WriteLine
from localvertex.api.jobs.collection import JobCollection, RunningJob, failed
from localvertex.api.jobs.host import JobHost
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import Status, refusing
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import Store
from localvertex.errors import TaskFailed
from localvertex.jobs import CustomJob, JobState, JobStatus
from localvertex.jobs.status import StatusFile
from localvertex.runner.engine import Options


class CustomJobs(JobCollection):
    """The custom jobs of the API.

    Args:
        store: The records of the server.
        log: Called with the start, the end and the warnings of each job.
        options: Options of the server.
    """

    collection, message, objects = "customJobs", "CustomJob", ("jobSpec",)

    def __init__(self, store: Store, log: WriteLine, options: Options) -> None:
        super().__init__(store, log)
        self.host = JobHost(store, options)
        """Runs them, and the jobs of other kinds."""

    def create(self, call: Call) -> Resource:
        """Start a job."""
        return self.start(call.location, messages.parse("CustomJob", call.body)).resource

    def start(self, location: Location, message: Resource) -> RunningJob:
        """Start a job.

        Raises:
            ApiError: The service would refuse it, or it cannot run here.
        """
        warnings: list[str] = []
        with refusing(Status.INVALID_ARGUMENT, TaskFailed):
            job = self.host.read(message, location.region, warnings.append)
        return self._start(location, message, lambda running: self._run(running, job, location.project), warnings)

    def _run(self, running: RunningJob, job: CustomJob, project: str) -> Resource:
        """Run the processes of a job."""
        with self.host.surroundings(running) as (machine, ledger):
            status_file = StatusFile(running.folder, machine.credentials.secrets.remove)

            def observe(status: JobStatus) -> None:
                if status.state is JobState.RUNNING:
                    self._begin(running)
                status_file.write(status)

            outcome = self.host.run(job, running, ledger, project, observe=observe, credentials=machine.credentials)
        if outcome.state is not JobState.FAILED:
            return {"state": str(outcome.state)}
        # The service reports a failing user program as an invalid argument.
        return failed(Status.ABORTED if outcome.exit_code is None else Status.INVALID_ARGUMENT, outcome.error)

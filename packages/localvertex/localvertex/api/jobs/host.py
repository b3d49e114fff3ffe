"""This machine as a host of jobs: it checks custom jobs, and runs them and the trials of tuning jobs."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex.api.jobs.collection import RunningJob
from localvertex.api.rest.store import Store
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import IsolatedCredentials, NoCredentials
from localvertex.jobs import CustomJob, FaultLedger, JobStatus, Outcome, Workspace, images, read_job, run_job
from localvertex.jobs.tuning.trial_run import TrialRun
from localvertex.runner.engine import Options
from localvertex.store import record
from localvertex.values.buckets import Buckets

_BUCKETS = "buckets"
"""The folder of the work folder that has one folder per bucket."""

_TENSORBOARD = "tensorboard: its logs stay in their folder; upload them with aiplatform.upload_tb_log"


class JobHost:
    """Runs the jobs of a server.

    Args:
        store: The records of the server.
        options: Options of the server.
    """

    def __init__(self, store: Store, options: Options) -> None:
        self._options, self._work_dir = options, store.folder.parent
        self.buckets = options.gcs_root.absolute() if options.gcs_root else self._work_dir / _BUCKETS
        """The folder that has one folder per bucket."""
        self.choice = options.container_choice
        self.shortages = FaultLedger(options.faults).shortages
        """Those of all jobs of clients."""

    def read(self, message: JsonObject, region: str, warn: WriteLine) -> CustomJob:
        """Check a CustomJob message, and build the job.

        Raises:
            TaskFailed: The service would refuse it, or it cannot run here.
        """
        job = read_job(message, region=region, warn=warn, choice=self.choice)
        images.check(job, self.choice)
        # Refuses what leads out of a bucket.
        Buckets(root=self.buckets).to_local_paths(job.spec)
        if job.spec.get("tensorboard"):
            warn(_TENSORBOARD)
        return job

    @contextmanager
    def surroundings(self, running: RunningJob) -> Iterator[tuple[Machine, FaultLedger]]:
        """Open the endpoint that the processes of a job find; warn of the faults that did not happen to it.

        Yields what its processes find, and what notes which faults happen to it.
        """
        ledger = FaultLedger(self._options.faults, self.shortages)
        running.processes.mask = self._options.mask(self._work_dir, [self.buckets])
        if text := running.processes.mask.warning:
            running.warn(text)
        with closing(NoCredentials()) as credentials:
            machine = Machine(
                work_dir=self._work_dir.absolute(),
                processes=running.processes,
                credentials=credentials,
                choice=self.choice,
                buckets=Buckets(root=self.buckets),
            )
            server = self._options.server
            with server.open_endpoint(machine, running.warn) if server else nullcontext():
                yield machine, ledger
        for text in ledger.unused:
            running.warn(text)

    def run(
        self,
        job: CustomJob,
        running: RunningJob,
        ledger: FaultLedger,
        project: str,
        *,
        credentials: IsolatedCredentials,
        observe: Callable[[JobStatus], None],
        trial: TrialRun | None = None,
    ) -> Outcome:
        """Run a custom job, or one of the trials of a tuning job, to its end.

        Raises:
            TaskFailed: It could not be started.
            Cancelled: It was cancelled before its replicas started.
        """
        Buckets(root=self.buckets).create_named(job.spec)
        prefix = f"trial {trial.id}: " if trial else ""
        return run_job(
            job,
            workspace=Workspace(
                folder=trial.folder if trial else running.folder,
                private_dir=self._work_dir / record.PRIVATE,
                project=project,
                buckets=self.buckets,
            ),
            processes=running.processes,
            credentials=credentials,
            containers=self.choice,
            observe=observe,
            warn=lambda text: running.warn(f"{prefix}{text}"),
            report=lambda text: running.report(f"{prefix}{text}"),
            cancel=trial.cancel if trial else running.processes.stopped,
            injected=self._options.replica_faults,
            ledger=ledger,
            gpus=trial.gpus if trial else None,
        )

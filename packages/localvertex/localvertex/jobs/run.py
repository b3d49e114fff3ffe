"""Sets up a custom job and runs it."""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from localvertex._base import linux
from localvertex._base.lines import WriteLine
from localvertex.containers import leftovers
from localvertex.containers.choice import Choice
from localvertex.containers.variables import OUTPUT_FOLDERS
from localvertex.credentials.isolation import IsolatedCredentials, NoCredentials
from localvertex.errors import TaskFailed
from localvertex.jobs import images
from localvertex.jobs.environment import reserve_addresses, service_environment
from localvertex.jobs.faults import faults
from localvertex.jobs.faults.injector import Disturb
from localvertex.jobs.faults.ledger import FaultLedger
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.gpus import gpu_environments
from localvertex.jobs.job import CustomJob
from localvertex.jobs.replica_command import ReplicaCommands
from localvertex.jobs.replica_process import ReplicaProcess
from localvertex.jobs.replicas import JobRun
from localvertex.jobs.restart_rules import Restarts
from localvertex.jobs.status import EventKind, JobEvent, JobState, JobStatus, Outcome, Workspace
from localvertex.processes.forking import ForkServer
from localvertex.processes.network.metadata_server import MetadataServer
from localvertex.processes.processes import Processes
from localvertex.values.buckets import Buckets


def run_job(
    job: CustomJob,
    *,
    workspace: Workspace,
    processes: Processes,
    credentials: IsolatedCredentials | None = None,
    containers: Choice | None = None,
    observe: Callable[[JobStatus], None] = lambda _: None,
    warn: WriteLine = lambda _: None,
    report: WriteLine = lambda _: None,
    cancel: threading.Event | None = None,
    injected: tuple[faults.Fault, ...] = (),
    ledger: FaultLedger | None = None,
    gpus: Sequence[str] | None = None,
    disturb: Disturb = lambda replicas, seconds: [],
) -> Outcome:
    """Run a job to its end.

    Args:
        job: The result of `read`.
        workspace: Its folders, and the project that replicas see.
        processes: Holds the job's processes; stopping it cancels the job.
        credentials: Credentials for the replicas; None: they get none.
        containers: How container commands run; None: in the sandbox.
        observe: Called with the status after every change, in the caller's thread.
        warn: Called with each difference from the service.
        report: Called with each fault and restart, as a line of text.
        cancel: Cancels the job once another thread sets it.
        injected: The faults that the user has given.
        ledger: Notes which faults happen.
        gpus: The GPUs of this machine for the job; None: all that are visible.
        disturb: Called about 20 times per second; returns further faults, which happen at once.

    Raises:
        TaskFailed: The job could not be started.
        Cancelled: It was cancelled before its replicas started.
    """
    ledger = ledger or FaultLedger()
    base = job.base_output_directory
    output_uri = base if workspace.keeps_addresses else ""
    job = replace(job, base_output_directory=workspace.to_local_path(base), output_uri=output_uri)
    containers = containers or Choice()
    images.check(job, containers)
    faults.check_for(job, injected)
    if not job.scheduling.is_spot and any(fault.action is faults.Action.PREEMPT for fault in injected):
        warn(faults.NOT_SPOT)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    cancel = cancel or threading.Event()
    if error := ledger.shortages.wait(job, workspace.folder, cancel=cancel, observe=observe, report=report):
        event = JobEvent(kind=EventKind.STATE, text=error, phase=JobState.FAILED)
        observe(status := JobStatus(state=JobState.FAILED, events=(event,)))
        return Outcome(status=status, error=error, is_shortage=True)
    if any(pool.is_reduction_server for pool in job.pools):
        warn("Reduction Server does not run locally; the workers reduce gradients without it")
    with ExitStack() as servers:
        if credentials is None:
            credentials = NoCredentials()
            servers.callback(credentials.close)
        processes.secrets = credentials.secrets.live
        commands = ReplicaCommands(job, workspace, processes, credentials, containers, servers, warn)
        if commands.announcement:
            warn(commands.announcement)
        replicas = _replicas_of(job, workspace, processes, commands, servers, warn, gpus)
        _make_output_folders(job.base_output_directory, Buckets(root=workspace.buckets))
        ledger.plan(injected)
        try:
            outcome = JobRun(
                job,
                replicas,
                events=EventFiles.of_job(job.base_output_directory, [each.name for each in replicas]),
                faults=injected,
                ledger=ledger,
                restarts=Restarts(scheduling=job.scheduling),
                folder=workspace.folder,
                observe=observe,
                report=report,
                cancel=cancel,
                disturb=disturb,
            ).execute()
        finally:
            leftovers.check_links(workspace.folder, processes.mask, (workspace.folder, *workspace.readable))
            commands.check_leftovers()
        credentials.secrets.remove_from([*workspace.folder.glob("*.log"), *workspace.folder.glob("log.txt")])
        return replace(outcome, error=credentials.secrets.remove(outcome.error))


def _replicas_of(
    job: CustomJob,
    workspace: Workspace,
    processes: Processes,
    commands: ReplicaCommands,
    servers: ExitStack,
    warn: WriteLine,
    visible: Sequence[str] | None,
) -> list[ReplicaProcess]:
    """Build the replicas that run here, without starting them; their servers close with `servers`."""
    job_id = uuid4().hex
    gpus = gpu_environments(job, warn, visible)
    replicas, supervisors = [], None
    # It reads the texts of a request as UTF-8.
    if linux.is_used() and sys.getfilesystemencoding() == "utf-8":
        supervisors = servers.enter_context(closing(ForkServer({})))
    # Released before the first process starts, so that it can bind its port.
    with reserve_addresses(job) as addresses:
        for replica in [each for each in job.replicas if not each.pool.is_reduction_server]:
            metadata = MetadataServer()
            servers.callback(metadata.close)
            service = service_environment(job, replica, addresses=addresses, project=workspace.project, job_id=job_id)
            prepared = commands.prepare(replica, service | gpus[replica.name], metadata.address)
            replicas.append(
                ReplicaProcess(
                    replica=replica,
                    command=prepared.command,
                    env=prepared.env,
                    clean_up=prepared.clean_up,
                    has_mask=prepared.has_mask,
                    supervisors=supervisors,
                    folder=workspace.folder,
                    processes=processes,
                    metadata=metadata,
                    warn=warn,
                    address=addresses[replica.name],
                )
            )
    return replicas


def _make_output_folders(base: str, buckets: Buckets) -> None:
    """Create the folders that variables of the replicas name; in Cloud Storage the program that writes there does that.

    Raises:
        TaskFailed: One cannot be created, or leads out of its bucket.
    """
    if not base or "://" in base:
        return
    for name in OUTPUT_FOLDERS.values():
        folder = Path(base, name)
        buckets.check_links(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TaskFailed(f"base_output_directory {base}: {name}: {error.strerror}", is_retryable=False) from None

"""Sets up a custom job and runs it."""

import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from localvertex.credentials.isolation import Credentials, NoCredentials
from localvertex.custom_jobs.environment import (
    held_addresses,
    metadata_environment,
    own_environment,
    service_environment,
)
from localvertex.custom_jobs.faults import faults
from localvertex.custom_jobs.faults.faults import Fault
from localvertex.custom_jobs.goodput.event_files import EventFiles
from localvertex.custom_jobs.gpus import gpu_environments
from localvertex.custom_jobs.job import CustomJob
from localvertex.custom_jobs.job_run import JobRun
from localvertex.custom_jobs.python_package import environment_of
from localvertex.custom_jobs.replica_process import ReplicaProcess
from localvertex.custom_jobs.restart_rules import Restarts
from localvertex.custom_jobs.status import Options, Outcome, Status, Workspace
from localvertex.errors import TaskFailed
from localvertex.processes.environments import activated
from localvertex.processes.metadata_server import MetadataServer
from localvertex.processes.own_packages import variables
from localvertex.processes.processes import Processes
from localvertex.values.buckets import Buckets


def run(
    job: CustomJob,
    *,
    workspace: Workspace,
    processes: Processes,
    credentials: Credentials | None = None,
    observe: Callable[[Status], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    report: Callable[[str], None] = lambda _: None,
    cancel: threading.Event | None = None,
    options: Options | None = None,
) -> Outcome:
    """Run a job to its end.

    Args:
        job: What `read` returned.
        workspace: Its folders, and the project that replicas see.
        processes: Holds the job's processes; stopping it cancels the job.
        credentials: What the replicas get of the user's credentials; None: nothing.
        observe: Called with the status after every change, in the caller's thread.
        warn: Called with each difference from the service.
        report: Called with each fault and restart, as a line of text.
        cancel: Cancels the job once another thread sets it.
        options: Restart rule and faults.

    Raises:
        TaskFailed: The job could not be started.
    """
    options = options or Options()
    job = replace(job, base_output_directory=workspace.localised(job.base_output_directory))
    planned = _planned_faults(job, options, warn)
    _make_output_directory(job.base_output_directory)
    workspace.folder.mkdir(parents=True, exist_ok=True)
    if any(pool.is_reduction_server for pool in job.pools):
        warn("Reduction Server does not run locally; the workers reduce gradients without it")
    with ExitStack() as servers:
        if credentials is None:
            credentials = NoCredentials()
            servers.callback(credentials.close)
        processes.secrets = credentials.secrets.known
        replicas = _replicas_of(job, workspace, processes, credentials, servers, warn)
        outcome = JobRun(
            job,
            replicas,
            events=EventFiles(job.base_output_directory, [each.name for each in replicas]),
            faults=planned,
            restarts=Restarts(scheduling=job.scheduling, rule=options.restart_rule),
            folder=workspace.folder,
            observe=observe,
            warn=warn,
            report=report,
            cancel=cancel or threading.Event(),
        ).execute()
        credentials.secrets.remove_from(workspace.folder.glob("*.log"))
        return replace(outcome, error=credentials.secrets.removed(outcome.error))


def _replicas_of(
    job: CustomJob,
    workspace: Workspace,
    processes: Processes,
    credentials: Credentials,
    servers: ExitStack,
    warn: Callable[[str], None],
) -> list[ReplicaProcess]:
    """Build the replicas that run here, without starting them; their metadata servers close with `servers`."""
    job_id = uuid4().hex
    gpus = gpu_environments(job, warn)
    replicas = []
    # Released before the first process starts, so that it can bind its port.
    with held_addresses(job) as addresses:
        for replica in [each for each in job.replicas if not each.pool.is_reduction_server]:
            metadata = MetadataServer()
            servers.callback(metadata.close)
            service = service_environment(job, replica, addresses=addresses, project=workspace.project, job_id=job_id)
            env = own_environment() | service | gpus[replica.name]
            declared = replica.pool.env
            bin_folder = Path(sys.executable).parent
            if replica.pool.is_python_package:
                package = environment_of(replica.pool, workspace, processes, credentials.environment(env))
                env, bin_folder = activated(env, package), package / "bin"
            env |= replica.pool.env
            own = Path(
                servers.enter_context(tempfile.TemporaryDirectory(prefix="localvertex-", ignore_cleanup_errors=True))
            )
            env |= variables(env, python=bin_folder / "python3", folder=workspace.folder, temporary=own)
            replicas.append(
                ReplicaProcess(
                    replica=replica,
                    command=Buckets(root=workspace.buckets).mounted(_local_command(replica.pool.command, bin_folder)),
                    env=credentials.environment(env, declared=declared)
                    | ({} if credentials.is_users else metadata_environment(metadata.address)),
                    folder=workspace.folder,
                    processes=processes,
                    metadata=metadata,
                )
            )
    return replicas


def _planned_faults(job: CustomJob, options: Options, warn: Callable[[str], None]) -> tuple[Fault, ...]:
    """Collect the faults of this job; random ones are reported, so that each can be repeated on its own.

    Raises:
        TaskFailed: A fault cannot happen in this job.
    """
    planned = options.faults
    if options.random_faults_seed is not None:
        chosen = faults.random_faults(job, options.random_faults_seed)
        warn(f"random faults with seed {options.random_faults_seed}: {', '.join(map(str, chosen))}")
        planned += chosen
    faults.check_for(job, planned)
    if not job.scheduling.is_spot and any(fault.action is faults.Action.PREEMPT for fault in planned):
        warn("the job does not have strategy SPOT; on Vertex its machines would not be preempted")
    return planned


def _local_command(command: tuple[str, ...], bin_folder: Path) -> list[str]:
    """Return the command with `python` replaced by the one in this folder."""
    program = str(bin_folder / Path(sys.executable).name) if command[0] in ("python", "python3") else command[0]
    return [program, *command[1:]]


def _make_output_directory(uri: str) -> None:
    """Create a local base output directory; in a bucket the program that writes to it does that.

    Raises:
        TaskFailed: It cannot be created.
    """
    if not uri or "://" in uri:
        return
    try:
        Path(uri).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TaskFailed(f"base_output_directory {uri}: {error.strerror}", is_retryable=False) from None

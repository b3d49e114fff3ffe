"""Sets a custom job up and runs it."""

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from localvertex.custom_jobs.cluster import held_addresses
from localvertex.custom_jobs.environment import (
    local_command,
    make_output_directory,
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
from localvertex.custom_jobs.metadata_server import MetadataServer
from localvertex.custom_jobs.python_package import environment_of
from localvertex.custom_jobs.replica_process import ReplicaProcess
from localvertex.custom_jobs.restart_rules import Restarts
from localvertex.custom_jobs.status import Options, Outcome, Place, Status
from localvertex.processes.environments import activated
from localvertex.processes.processes import Processes


def run(
    job: CustomJob,
    *,
    place: Place,
    processes: Processes,
    observe: Callable[[Status], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
    cancel: threading.Event | None = None,
    options: Options | None = None,
) -> Outcome:
    """Runs a job to its end.

    Args:
        job: What `read` returned.
        place: Folders, and the project that replicas are told.
        processes: Holds the job's processes; stopping it cancels the job.
        observe: Is told every change, in the caller's thread.
        warn: Is told what differs from the service.
        tell: Is told faults and restarts, in words.
        cancel: Set from another thread, it cancels the job.
        options: Restart rule and faults.

    Raises:
        TaskFailed: it could not be started.
    """
    options = options or Options()
    job = replace(job, base_output_directory=place.localised(job.base_output_directory))
    planned = planned_faults(job, options, warn)
    make_output_directory(job.base_output_directory)
    place.folder.mkdir(parents=True, exist_ok=True)
    if any(pool.is_reduction_server for pool in job.pools):
        warn("Reduction Server does not run here; workers reduce without it")
    with ExitStack() as servers:
        replicas = replicas_of(job, place, processes, servers, warn)
        return JobRun(
            job,
            replicas,
            events=EventFiles(job.base_output_directory, [each.name for each in replicas]),
            faults=planned,
            restarts=Restarts(scheduling=job.scheduling, rule=options.restart_rule),
            folder=place.folder,
            observe=observe,
            warn=warn,
            tell=tell,
            cancel=cancel or threading.Event(),
        ).execute()


def replicas_of(
    job: CustomJob, place: Place, processes: Processes, servers: ExitStack, warn: Callable[[str], None]
) -> list[ReplicaProcess]:
    """The replicas that run here, none started yet; their metadata servers end with `servers`."""
    job_id = uuid4().hex
    gpus = gpu_environments(job, warn)
    replicas = []
    # Given back before the first process starts, which then takes its port.
    with held_addresses(job) as addresses:
        for replica in [each for each in job.replicas if not each.pool.is_reduction_server]:
            metadata = MetadataServer()
            servers.callback(metadata.close)
            service = service_environment(job, replica, addresses=addresses, project=place.project, job_id=job_id)
            env = own_environment() | service | metadata_environment(metadata.address) | gpus[replica.name]
            bin_folder = Path(sys.executable).parent
            if replica.pool.is_python_package:
                package = environment_of(replica.pool, place, processes, env)
                env, bin_folder = activated(env, package), package / "bin"
            replicas.append(
                ReplicaProcess(
                    replica=replica,
                    command=local_command(replica.pool.command, bin_folder),
                    env=env | replica.pool.env,
                    folder=place.folder,
                    processes=processes,
                    metadata=metadata,
                )
            )
    return replicas


def planned_faults(job: CustomJob, options: Options, warn: Callable[[str], None]) -> tuple[Fault, ...]:
    """The faults of this job; random ones are told, so that they can be repeated one by one.

    Raises:
        TaskFailed: one cannot happen in this job.
    """
    planned = options.faults
    if options.random_faults_seed is not None:
        chosen = faults.random_faults(job, options.random_faults_seed)
        warn(f"random faults of seed {options.random_faults_seed}: {', '.join(map(str, chosen))}")
        planned += chosen
    faults.check_for(job, planned)
    if not job.scheduling.is_spot and any(fault.action is faults.Action.PREEMPT for fault in planned):
        warn("the job is not of strategy SPOT: on Vertex its machines are not preempted")
    return planned

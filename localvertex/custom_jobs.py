"""A custom job on this machine: worker pools become processes with the environment that the service gives them.

Exit codes: 0 ends the job well. 2 means that the user's input is wrong and is permanent. Anything else restarts the
replica, at most MAX_RESTARTS times (cloud.google.com/vertex-ai/docs/training/understanding-training-service).
"""

import json
import sys
from dataclasses import dataclass, field
from typing import Any

from accelerators import Finding, check_worker_pools
from localvertex import logs
from localvertex.context import Warnings
from localvertex.errors import TaskFailed
from localvertex.job import Job
from localvertex.payload import without_empty

MAX_RESTARTS = 5
EXIT_USER_ERROR = 2

POOL_FIELDS = {
    "machine_spec", "replica_count", "container_spec", "python_package_spec", "disk_spec", "nfs_mounts",
    "lustre_mounts",
}  # fmt: skip
"""Fields of WorkerPoolSpec in google-cloud-aiplatform 1.165.1."""


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One process of the job."""

    pool: int
    index: int
    command: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Like the service's host names: `workerpool0-0`."""
        return f"workerpool{self.pool}-{self.index}"


@dataclass(frozen=True, kw_only=True)
class CustomJob:
    """A CustomJob message, as far as it matters here."""

    display_name: str
    pools: tuple[dict[str, Any], ...]
    """WorkerPoolSpecs in the API's snake_case."""
    base_output_directory: str = ""
    scheduling: dict[str, Any] = field(default_factory=dict)

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All replicas, pool by pool."""
        return tuple(
            replica_of(pool, number, index)
            for number, pool in enumerate(self.pools)
            for index in range(int(pool.get("replica_count", 1)))
        )


def replica_of(pool: dict[str, Any], number: int, index: int) -> Replica:
    """One replica of a pool."""
    container = pool["container_spec"]
    env = {variable["name"]: str(variable.get("value", "")) for variable in container.get("env", [])}
    return Replica(pool=number, index=index, command=(*container["command"], *container.get("args", [])), env=env)


def from_payload(payload: dict[str, Any]) -> CustomJob:
    """The job of a launcher's payload.

    Raises:
        TaskFailed: a part is missing or of the wrong type.
    """
    job_spec = payload.get("job_spec")
    job_spec = job_spec if isinstance(job_spec, dict) else {}
    pools = job_spec.get("worker_pool_specs")
    if isinstance(pools, list) and {} in pools[: max((i for i, pool in enumerate(pools) if pool), default=0)]:
        raise TaskFailed(
            "worker_pool_specs: an empty pool stands before a filled one; Google's launcher drops it, and the later "
            "pools move to another role. Fill the pool or leave out those after it",
            is_retryable=False,
        )
    pools = without_empty(pools)
    if not isinstance(pools, list) or not pools or not all(isinstance(pool, dict) for pool in pools):
        raise invalid("worker_pool_specs", "a list of at least one pool expected", pools)
    for number, pool in enumerate(pools):
        check_pool(pool, f"worker_pool_specs[{number}]")
    output = job_spec.get("base_output_directory")
    scheduling = without_empty(job_spec.get("scheduling") or {})
    return CustomJob(
        display_name=str(payload.get("display_name", "")),
        pools=tuple(pools),
        base_output_directory=str(output.get("output_uri_prefix", "")) if isinstance(output, dict) else "",
        scheduling=scheduling,
    )


def check_pool(pool: dict[str, Any], place: str) -> None:
    """Refuses a pool that the launcher's own schema would refuse."""
    for name in pool.keys() - POOL_FIELDS:
        raise invalid(f"{place}.{name}", f"unknown field, expected one of {', '.join(sorted(POOL_FIELDS))}", name)
    if ("container_spec" in pool) == ("python_package_spec" in pool):
        raise invalid(place, "exactly one of container_spec and python_package_spec expected", sorted(pool))
    if "python_package_spec" in pool:
        raise TaskFailed(f"{place}.python_package_spec: Python packages do not run locally yet", is_retryable=False)
    count = pool.get("replica_count", 1)
    if not str(count).isdigit() or int(count) < 1:
        raise invalid(f"{place}.replica_count", "a positive integer expected", count)
    container = pool["container_spec"]
    if not isinstance(container, dict) or not container.get("image_uri"):
        raise invalid(f"{place}.container_spec", "an object with an image_uri expected", container)
    variables = container.get("env", [])
    if not isinstance(variables, list) or not all(isinstance(each, dict) and "name" in each for each in variables):
        raise invalid(f"{place}.container_spec.env", "a list of objects with name and value expected", variables)
    for part in ("command", "args"):
        words = container.get(part, [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise invalid(f"{place}.container_spec.{part}", "a list of strings expected", words)
    if not container.get("command"):
        raise TaskFailed(
            f"{place}.container_spec.command is empty: the entry point of {container['image_uri']} is not known here; "
            "write the command out, e.g. ['python', '-m', 'trainer.task']",
            is_retryable=False,
        )


def invalid(place: str, expected: str, found: Any) -> TaskFailed:
    """The error of a malformed part of the job; trying again does not help."""
    return TaskFailed(f"{place}: {expected}, found {json.dumps(found, default=str)[:100]}", is_retryable=False)


def check(job: CustomJob, region: str, warnings: Warnings) -> None:
    """Checks the machines against what Google offers, and the number of replicas against what runs here.

    Raises:
        TaskFailed: names every error found.
    """
    findings = check_worker_pools(
        list(job.pools),
        region=region,
        scheduling_strategy=job.scheduling.get("strategy", "STANDARD"),
        restart_job_on_worker_restart=bool(job.scheduling.get("restart_job_on_worker_restart")),
    )
    for finding in findings:
        # No image is used here, so one that is yet to be named is nothing to warn of.
        if finding.severity != "error" and finding.rule != "placeholder-image":
            warnings.say(sentence(finding))
    if errors := [sentence(finding) for finding in findings if finding.severity == "error"]:
        text = "; ".join(errors)
        raise TaskFailed(f"Vertex would refuse these machines: {text}", exit_code=EXIT_USER_ERROR, is_retryable=False)
    if len(job.replicas) > 1:
        raise TaskFailed(
            f"this job has {len(job.replicas)} replicas; jobs of one replica run locally so far", is_retryable=False
        )


def run(custom_job: CustomJob, job: Job, env: dict[str, str]) -> None:
    """Runs the job's replica until it ends well, fails for good, or has used up its restarts.

    Raises:
        TaskFailed: the job failed.
        Cancelled: the run was stopped.
    """
    replica = custom_job.replicas[0]
    log = job.folder / f"{replica.name}.log"
    for restart in range(MAX_RESTARTS + 1):
        code = job.context.processes.run(local_command(replica.command), cwd=job.folder, env=env, log=log)
        job.report_exit(code)
        logs.add(job.log, f"{replica.name}: exit code {code}")
        if code == 0:
            return
        if code == EXIT_USER_ERROR:
            raise TaskFailed(f"{replica.name}: {logs.failure_text(code, log)}", exit_code=code, is_retryable=False)
        if restart < MAX_RESTARTS:
            logs.add(job.log, f"{replica.name}: restart {restart + 1} of {MAX_RESTARTS}")
    text = f"{replica.name}: after {MAX_RESTARTS} restarts, {logs.failure_text(code, log)}"
    raise TaskFailed(text, exit_code=code)


def local_command(command: tuple[str, ...]) -> list[str]:
    """The command with `python` meaning this interpreter, whatever the image has."""
    program = sys.executable if command[0] in ("python", "python3") else command[0]
    return [program, *command[1:]]


def sentence(finding: Finding) -> str:
    """A finding with its place and the nearest valid choices."""
    nearest = f" (nearest: {', '.join(finding.alternatives)})" if finding.alternatives else ""
    return f"{finding.where}: {finding.message}{nearest}"

"""A custom job: its pools, replicas and scheduling, read from a CustomJob message and checked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localvertex._base.compiled.launchers import launcher_of
from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.nested import parts
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import StandIn
from localvertex.errors import TaskFailed
from localvertex.machines import Finding, check_custom_job, custom_job_fields
from localvertex.machines.job.schema import OLD_STRATEGIES
from localvertex.values import facts

ROLES = ("chief", "worker", "ps", "evaluator")
"""TensorFlow's names for the tasks of pools 0, 1, 2 and 3."""

PRIMARY = "workerpool0-0"

_DEFAULT_TIMEOUT_SECONDS = facts.number("limit.timeout_seconds")
"""The service's default (Scheduling.timeout of google-cloud-aiplatform 1.165.1)."""

_DEFAULT_MAX_WAIT_SECONDS = facts.number("limit.max_wait_seconds")

_UNSPECIFIED = "STRATEGY_UNSPECIFIED"

_REDUCTION_SERVER = "reductionserver"
"""Part of the image name of Google's gradient reducer, which exists only in that image."""

_EXIT_USER_ERROR = 2

_QUIET_RULES = {"placeholder-image", "pool-gap"}
"""No container image is used here, and the code that drops an empty pool reports the consequences."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A worker pool that has replicas."""

    number: int
    num_replicas: int
    image_uri: str
    entry_point: tuple[str, ...]
    """Empty: the image's own, which only a container engine knows."""
    arguments: tuple[str, ...]
    env: dict[str, str]
    machine_type: str = ""
    accelerator_type: str = ""
    num_gpus: int = 0
    """GPUs of each replica."""
    is_python_package: bool = False
    """Whether it runs from packages, in its own environment."""
    package_uris: tuple[str, ...] = ()
    has_local_command: bool = False
    """Whether the user has given a command in place of its image."""
    stand_in: StandIn = field(default_factory=StandIn)
    """The program that runs in place of its image."""

    @property
    def command(self) -> tuple[str, ...]:
        """Entry point and arguments."""
        return (*self.entry_point, *self.arguments)

    @property
    def is_reduction_server(self) -> bool:
        """Whether its image is Google's gradient reducer, which cannot run here."""
        return _REDUCTION_SERVER in self.image_uri


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One machine of the job."""

    pool: Pool
    index: int

    @property
    def name(self) -> str:
        """The host name in the service's format: `workerpool0-0`."""
        return f"workerpool{self.pool.number}-{self.index}"

    @property
    def is_primary(self) -> bool:
        """Whether the job ends when this replica ends."""
        return self.name == PRIMARY


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """When a job restarts, and how long it may take."""

    timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS
    strategy: str = "STANDARD"
    max_wait_seconds: float = _DEFAULT_MAX_WAIT_SECONDS
    """How long a job of strategy FLEX_START waits for machines."""
    disable_retries: bool = False
    restart_job_on_worker_restart: bool = False

    @classmethod
    def of(cls, fields: JsonObject) -> "Scheduling":
        """Build it from the fields of the message, in snake_case.

        Raises:
            TaskFailed: The timeout is negative.
        """

        def is_set(name: str) -> bool:
            return fields.get(name) in (True, "true")

        disable_retries, max_wait = is_set("disable_retries"), str(fields.get("max_wait_duration", ""))
        timeout_seconds = float(str(fields.get("timeout", "")).removesuffix("s") or 0)
        if timeout_seconds < 0:
            text = f"scheduling.timeout {timeout_seconds:g}s: expected a positive duration, or leave it out"
            raise TaskFailed(text, is_retryable=False)
        strategy = str(fields.get("strategy", _UNSPECIFIED))
        return cls(
            timeout_seconds=timeout_seconds or _DEFAULT_TIMEOUT_SECONDS,
            strategy="STANDARD" if strategy == _UNSPECIFIED else OLD_STRATEGIES.get(strategy, strategy),
            # The API reference: with 0 it waits without limit.
            max_wait_seconds=float(max_wait.removesuffix("s")) or math.inf if max_wait else _DEFAULT_MAX_WAIT_SECONDS,
            disable_retries=disable_retries,
            # The API reference: disable_retries overrides it to false.
            restart_job_on_worker_restart=is_set("restart_job_on_worker_restart") and not disable_retries,
        )

    @property
    def is_spot(self) -> bool:
        """Whether its machines can be preempted."""
        return self.strategy == "SPOT"


@dataclass(frozen=True, kw_only=True)
class TrialVariables:
    """Variables of the replicas of a tuning job's trial, besides those that any custom job has."""

    id: str
    metric_file: Path
    """File in which the trials report their metrics."""


@dataclass(frozen=True, kw_only=True)
class CustomJob:
    """A CustomJob message that has been checked."""

    display_name: str
    pools: tuple[Pool, ...]
    scheduling: Scheduling
    base_output_directory: str = ""
    output_uri: str = ""
    """The base output directory as replicas see it, where that is another text."""
    spec: JsonObject = field(default_factory=dict)
    """The CustomJobSpec in the API's snake_case, as replicas receive it."""
    region: str = ""
    candidate: str = ""
    """Its label `candidate`, by which a step that creates jobs numbers its choices."""
    trial: TrialVariables | None = None
    """Set for the trial of a hyperparameter tuning job."""

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All replicas, pool by pool."""
        return tuple(Replica(pool=pool, index=index) for pool in self.pools for index in range(pool.num_replicas))

    @classmethod
    def of(cls, message: JsonObject, choice: Choice, region: str) -> "CustomJob":
        """Build it from a CustomJob message whose fields have been read and checked.

        Raises:
            TaskFailed: A container has no command, `choice` has none for its image, and no image runs here; or no
                process can receive a text of the message.
        """
        spec = message.get("job_spec", {})
        if any("\0" in each for each in parts(spec, with_keys=True) if isinstance(each, str)):
            text = "a text of the job contains a NUL character, which no program can receive; remove it"
            raise TaskFailed(text, is_retryable=False)
        given = enumerate(spec.get("worker_pool_specs", []))
        return cls(
            display_name=message.get("display_name", ""),
            pools=tuple(_pool_of(number, pool, choice) for number, pool in given if pool),
            scheduling=Scheduling.of(spec.get("scheduling", {})),
            base_output_directory=spec.get("base_output_directory", {}).get("output_uri_prefix", ""),
            spec=spec,
            region=region,
            candidate=message.get("labels", {}).get("candidate", ""),
        )


def read_job(
    message: JsonObject,
    *,
    region: str,
    warn: WriteLine,
    choice: Choice | None = None,
) -> CustomJob:
    """Check a CustomJob message and build the job.

    Args:
        message: Fields in camelCase or snake_case.
        region: The region in which it would run.
        warn: Called with each difference from the service, and with each remark of the machine check.
        choice: How containers run, and what the user has named in place of images.

    Raises:
        TaskFailed: The service would refuse the message; the error names every reason.
    """
    findings = check_custom_job(message, region=region)
    if errors := [_sentence(finding) for finding in findings if finding.severity == "error"]:
        text = f"Vertex AI would refuse this job: {'; '.join(errors)}"
        raise TaskFailed(text, exit_code=_EXIT_USER_ERROR, is_retryable=False)
    for finding in findings:
        if finding.rule not in _QUIET_RULES:
            warn(_sentence(finding))
    return CustomJob.of(custom_job_fields(message), choice or Choice(), region)


def _sentence(finding: Finding) -> str:
    """Format a finding with its path and the nearest valid choices."""
    return f"{finding.path}: {finding.message}{finding.nearest}"


def missing_command(pool: JsonObject, choice: Choice) -> str:
    """Return why a WorkerPoolSpec with a container has nothing to run here; empty when it has something."""
    container = pool.get("container_spec") or {}
    image = container.get("image_uri", "")
    command, arguments = container.get("command") or (), container.get("args") or ()
    if (stand_in := choice.stand_ins.of(image, command)).image and image not in choice.command_prefixes:
        try:
            words = [*map(str, command)], [*map(str, arguments)]
            if not (stand_in.words(*words) or choice.options.engine):
                stand_in.localized([*words[0], *words[1]])
        except UserError as error:
            return str(error)
        return ""
    if command or choice.command_prefixes.get(image) or _REDUCTION_SERVER in image or choice.options.engine:
        return ""
    return (
        f"the command is empty, and the entry point of {image} is not known locally; set the command, "
        f"e.g. ['python', '-m', 'trainer.task'], or pass --engine docker or --image {image}=COMMAND"
    )


def _pool_of(number: int, fields: JsonObject, choice: Choice) -> Pool:
    """Build a pool from the fields of a WorkerPoolSpec."""
    package = fields.get("python_package_spec", {})
    container = fields.get("container_spec") or package
    entry_point = ("python", "-m", package.get("python_module", "")) if package else container.get("command", ())
    image = container.get("image_uri", "") or package.get("executor_image_uri", "")
    prefix = () if package else choice.command_prefixes.get(image, ())
    entry_point = (*prefix, *entry_point)
    if not package and (problem := missing_command(fields, choice)):
        raise TaskFailed(f"worker_pool_specs[{number}].container_spec: {problem}", is_retryable=False)
    if module := launcher_of(entry_point, container.get("args", ())):
        raise TaskFailed(
            f"worker_pool_specs[{number}]: the command starts Google's {module}, which does not run here; remove it",
            is_retryable=False,
        )
    stand_in, arguments = choice.stand_ins.of(image, entry_point), tuple(container.get("args", ()))
    direct = () if package or prefix else stand_in.words(entry_point, arguments)
    if not (package or prefix or direct or choice.options.engine):
        words = stand_in.localized((*entry_point, *arguments))
        entry_point, arguments = words[: len(entry_point)], words[len(entry_point) :]
    return Pool(
        number=number,
        num_replicas=int(fields.get("replica_count", 1)),
        image_uri=image,
        entry_point=direct or entry_point,
        arguments=() if direct else arguments,
        env=_variables(number, container.get("env", ())),
        machine_type=fields.get("machine_spec", {}).get("machine_type", ""),
        accelerator_type=fields.get("machine_spec", {}).get("accelerator_type", ""),
        num_gpus=int(fields.get("machine_spec", {}).get("accelerator_count", 0)),
        is_python_package=bool(package),
        package_uris=tuple(package.get("package_uris", ())),
        has_local_command=bool(prefix or direct),
        stand_in=stand_in,
    )


def _variables(number: int, env: Sequence[JsonObject]) -> dict[str, str]:
    """Return environment variables by their names."""
    if not all(each.get("name") for each in env):
        raise TaskFailed(
            f"worker_pool_specs[{number}]: a variable in env has no name; every variable needs one", is_retryable=False
        )
    if wrong := [each["name"] for each in env if "=" in each["name"]]:
        text = f"worker_pool_specs[{number}]: a variable in env is called {wrong[0][:100]!r}; a name contains no '='"
        raise TaskFailed(text, is_retryable=False)
    return {each["name"]: each.get("value", "") for each in env}

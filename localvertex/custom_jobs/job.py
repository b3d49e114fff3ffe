"""A custom job as far as it matters here: pools, replicas, scheduling."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex.errors import TaskFailed

ROLES = ("chief", "worker", "ps", "evaluator")
"""What TensorFlow calls the tasks of pool 0, 1, 2 and 3."""

PRIMARY = "workerpool0-0"

DEFAULT_TIMEOUT_SECONDS = 7 * 24 * 3600.0
"""The service's (Scheduling.timeout of google-cloud-aiplatform 1.165.1)."""

REDUCTION_SERVER = "reductionserver"
"""In the name of an image: Google's gradient reducer, which only that image holds."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A worker pool that has replicas."""

    number: int
    num_replicas: int
    image_uri: str
    command: tuple[str, ...]
    """Entry point and arguments."""
    env: dict[str, str]
    num_gpus: int = 0
    """GPUs of each replica."""
    is_python_package: bool = False
    """Whether it runs from packages, in an environment of its own."""
    package_uris: tuple[str, ...] = ()

    @property
    def is_reduction_server(self) -> bool:
        """Whether its image holds Google's gradient reducer, of which there is nothing to run here."""
        return REDUCTION_SERVER in self.image_uri


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One machine of the job."""

    pool: Pool
    index: int

    @property
    def name(self) -> str:
        """Like the service's host names: `workerpool0-0`."""
        return f"workerpool{self.pool.number}-{self.index}"

    @property
    def is_primary(self) -> bool:
        """Whether the job ends with it."""
        return self.name == PRIMARY


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """When a job restarts, and how long it may take."""

    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    is_spot: bool = False
    disable_retries: bool = False
    restart_job_on_worker_restart: bool = False

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Scheduling":
        """From the fields of the message, in snake_case."""
        disable_retries = bool(fields.get("disable_retries"))
        return cls(
            timeout_seconds=float(str(fields.get("timeout", "")).removesuffix("s") or 0) or DEFAULT_TIMEOUT_SECONDS,
            is_spot=fields.get("strategy") == "SPOT",
            disable_retries=disable_retries,
            # disable_retries overrides it to false (the API's own words).
            restart_job_on_worker_restart=bool(fields.get("restart_job_on_worker_restart")) and not disable_retries,
        )


@dataclass(frozen=True, kw_only=True)
class CustomJob:
    """A CustomJob message that has been checked."""

    display_name: str
    pools: tuple[Pool, ...]
    scheduling: Scheduling
    base_output_directory: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    """The CustomJobSpec in the API's snake_case; replicas are told it."""

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All replicas, pool by pool."""
        return tuple(Replica(pool=pool, index=index) for pool in self.pools for index in range(pool.num_replicas))

    @classmethod
    def of(cls, message: dict[str, Any], images: Mapping[str, tuple[str, ...]]) -> "CustomJob":
        """From a CustomJob whose fields have been read and checked.

        Raises:
            TaskFailed: a container has no command of its own, and `images` has none for its image.
        """
        spec = message.get("job_spec", {})
        given = enumerate(spec.get("worker_pool_specs", []))
        pools = tuple(pool_of(number, pool, images) for number, pool in given if pool)
        return cls(
            display_name=message.get("display_name", ""),
            pools=pools,
            scheduling=Scheduling.of(spec.get("scheduling", {})),
            base_output_directory=spec.get("base_output_directory", {}).get("output_uri_prefix", ""),
            spec=spec,
        )


def pool_of(number: int, fields: dict[str, Any], images: Mapping[str, tuple[str, ...]]) -> Pool:
    """A pool from the fields of a WorkerPoolSpec."""
    package = fields.get("python_package_spec", {})
    container = fields.get("container_spec") or package
    entry_point = ("python", "-m", package.get("python_module", "")) if package else container.get("command", ())
    image = container.get("image_uri", "") or package.get("executor_image_uri", "")
    if not package:
        entry_point = (*images.get(image, ()), *entry_point)
    if not entry_point and REDUCTION_SERVER not in image:
        raise TaskFailed(
            f"worker_pool_specs[{number}].container_spec.command is empty: the entry point of {image} is not known "
            "here; write the command out, e.g. ['python', '-m', 'trainer.task'], or say what runs instead with "
            f"--image {image}=COMMAND",
            is_retryable=False,
        )
    return Pool(
        number=number,
        num_replicas=int(fields.get("replica_count", 1)),
        image_uri=image,
        command=(*entry_point, *container.get("args", ())),
        env={variable["name"]: variable.get("value", "") for variable in container.get("env", ())},
        num_gpus=int(fields.get("machine_spec", {}).get("accelerator_count", 0)),
        is_python_package=bool(package),
        package_uris=tuple(package.get("package_uris", ())),
    )

"""The options of a run, which do not change what the pipeline computes, and the job-wide placeholders."""

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.mounts import contains_private
from localvertex.containers.options import ContainerOptions
from localvertex.containers.stand_ins import StandIns
from localvertex.executors.api_access import ApiAccess
from localvertex.jobs import Fault, Shortage
from localvertex.processes.masks.mask import Mask
from localvertex.store import record as run_record
from localvertex.values import facts
from localvertex.values.arguments import CommandPrefixes
from localvertex.values.configuration import MASK, Configuration

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
"""Valid projects and regions, which become parts of resource names."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `localvertex run` that do not belong to the pipeline.

    Raises:
        UserError: A value is out of range.
    """

    work_dir: Path = Path("runs")
    file: str = ""
    """The compiled file as the record names it; empty: the one that is read."""
    sha256: str = ""
    """The digest of `file`."""
    run_id: str | None = None
    """Name of a new run; None: made from the pipeline's name and the time."""
    project: str = "local-project"
    region: str = "us-central1"
    use_cache: bool = True
    max_parallel: int = field(default_factory=lambda: max(2, os.cpu_count() or 2))
    """Maximum number of steps to run in parallel."""
    max_backoff_seconds: float = 10.0
    """Maximum wait before a retry, even if the pipeline asks for more."""
    grace_seconds: float = facts.number("grace.end")
    """Time between SIGTERM and SIGKILL when a run is stopped."""
    command_prefixes: CommandPrefixes = field(default_factory=dict)
    """Local commands in place of container images, by image."""
    has_other_images: bool = False
    """Whether `command_prefixes` and `configuration` have names of other pipelines too, as on a server."""
    configuration: Configuration = field(default_factory=Configuration)
    """Stand-ins for what this machine lacks; its bucket root counts unless `gcs_root` is given."""
    fail_fast: bool = False
    """Whether no further step starts after a failure, except exit tasks."""
    with_credentials: bool = False
    """Whether steps and replicas get the user's Google Cloud credentials and other secrets."""
    gcs_root: Path | None = None
    """A folder with one folder per bucket, in place of Cloud Storage."""
    schedule_time: str = ""
    """Time for which a schedule started the run, RFC 3339; empty: the run's own creation time."""
    containers: ContainerOptions = field(default_factory=ContainerOptions)
    """How container commands run."""
    faults: tuple[Fault | Shortage, ...] = ()
    """Each custom job gets them."""
    server: ApiAccess | None = None
    """The API of the server that starts the run, which its steps can call; None: the run has an endpoint of its own."""

    @cached_property
    def container_choice(self) -> Choice:
        """Return how container commands run.

        Raises:
            UserError: A folder or an interpreter of the configuration is not one.
        """
        return Choice(self.containers, command_prefixes=self.command_prefixes, stand_ins=StandIns(self.configuration))

    @property
    def replica_faults(self) -> tuple[Fault, ...]:
        """Return the faults that happen to replicas."""
        return tuple(each for each in self.faults if isinstance(each, Fault))

    def mask(self, work_dir: Path, given: Iterable[Path] = ()) -> Mask:
        """Return what steps and jobs see of this machine; `given` are paths that the user has chosen for a run."""
        stand_ins = self.configuration.image.values()
        paths = [Path(each[name]) for each in stand_ins for name in ("path", "python") if name in each]
        return Mask(
            work_dir=work_dir,
            given=(*given, *paths, *([self.gcs_root] if self.gcs_root else [])),
            has_credentials=self.with_credentials,
            is_wanted=self.configuration.sandbox == MASK,
        )

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        buckets = self.configuration.buckets
        if self.gcs_root is None and "root" in buckets:
            object.__setattr__(self, "gcs_root", Path(buckets["root"]))
        if self.gcs_root is not None:
            _check_gcs_root(self.gcs_root, self.work_dir, may_create=buckets.get("create", False))
        if self.max_parallel < 1:
            raise UserError(f"--max-parallel {self.max_parallel}: expected at least 1")
        for name, seconds in (("--max-backoff", self.max_backoff_seconds), ("--grace", self.grace_seconds)):
            if not 0 <= seconds < math.inf:
                raise UserError(f"{name} {seconds}: expected 0 or more seconds")
        for name, text in (("--project", self.project), ("--region", self.region)):
            if not _NAME.fullmatch(text):
                raise UserError(f"{name} {text!r}: expected letters, digits, '-', '.', ':' and '_'")


def _check_gcs_root(root: Path, work_dir: Path, *, may_create: bool) -> None:
    """Refuse a folder of buckets that is missing, or whose buckets would be files of the user or of runs.

    Raises:
        UserError: It cannot be used.
    """
    if not (root.is_dir() or (may_create and not root.exists())):
        text = "expected an existing folder, which has one folder per bucket; to create it, add --create-buckets"
        raise UserError(f"--gcs-root {root}: {text}")
    if content := contains_private(root.absolute(), work_dir.absolute()):
        raise UserError(f"--gcs-root {root}: this folder contains {content}; give a folder that has only buckets")


def new_job_fields(run_id: str, work_dir: Path, options: Options) -> dict[str, str]:
    """Return the job-wide placeholders of a run that is created now."""
    now = run_record.now()
    uuid = str(uuid4().int >> 66)
    scheduled = options.schedule_time or now
    return _job_fields(run_id, str(work_dir), options.project, options.region, now, uuid, scheduled)


def earlier_job_fields(record: JsonObject) -> dict[str, str]:
    """Return the job-wide placeholders of a resumed run, the same as when it was created."""
    names = ("run_id", "work_dir", "project", "region", "create_time", "uuid")
    schedule_time = str(record.get("schedule_time", record["create_time"]))
    return _job_fields(**{name: str(record[name]) for name in names}, schedule_time=schedule_time)


def _job_fields(
    run_id: str, work_dir: str, project: str, region: str, create_time: str, uuid: str, schedule_time: str
) -> dict[str, str]:
    """Return all of placeholders.JOB_FIELDS; those without a local value are empty, as on Vertex AI when not set."""
    return {
        "pipeline_root": work_dir,
        "pipeline_job_name": run_id,
        "pipeline_job_uuid": uuid,
        "pipeline_job_resource_name": f"projects/{project}/locations/{region}/pipelineJobs/{run_id}",
        "pipeline_job_create_time_utc": create_time,
        "pipeline_job_schedule_time_utc": schedule_time,
        "pipeline_google_cloud_project_id": project,
        "pipeline_google_cloud_location": region,
        "pipeline_service_account": "",
        "pipeline_network": "",
        "pipeline_persistent_resource_id": "",
        "pipeline_encryption_key_name": "",
    }

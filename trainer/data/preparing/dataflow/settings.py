"""Settings of a Dataflow job, checked before anything is read, and passed to Beam as options."""

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from localvertex._base.userinput.errors import UserError
from trainer.settings import check_all, setting

_PATTERNS = {
    "project": (r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", "the id of the pipeline's project"),
    "region": (r"[a-z]+-[a-z]+[0-9]+", "the pipeline's region, such as us-central1"),
    # If Beam does not accept the name of a bucket, it creates another bucket.
    "folder": (
        r"gs://[a-z0-9][-_a-z0-9.]+[a-z0-9](?:/.*[^/])?",
        "a folder in a bucket; submit the pipeline with --pipeline-root=gs://...",
    ),
    "machine_type": (r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+", "a machine type of Compute Engine, such as e2-standard-4"),
    "subnetwork": (
        r"|(?:https://www\.googleapis\.com/compute/v1/projects/[a-z0-9.:-]+/)?regions/[a-z0-9-]+/subnetworks/[a-z0-9-]+",
        "regions/REGION/subnetworks/NAME, for a shared VPC after https://www.googleapis.com/compute/v1/projects/P/",
    ),
    "service_account": (r"|[a-zA-Z0-9._-]+@[a-zA-Z0-9.-]+", "the e-mail address of a service account"),
}
ENGINES = LOCAL, _ = ("local", "dataflow")
"""Engines that read the images: this machine, or the workers of a Dataflow job."""
WORKERS, DISK_GB = range(1, 4001), range(30, 65537)
_OF_THE_RUN = ("project", "region", "folder", "image")
"""Fields without a pipeline parameter of the prefix dataflow_."""
_LONGEST_SECONDS = 24 * 3600
"""Time after which Dataflow ends a job whose step was lost."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Machines and location of a job."""

    project: str
    region: str
    folder: str
    """Folder of the dataset on gs://, from which the job's name follows; before it is known, the pipeline root."""
    image: str
    """Container image of the workers: the step's own, so both have the same packages."""
    machine_type: str = "e2-standard-4"
    max_workers: int = setting("Maximum number of workers.", WORKERS, default=10)
    disk_size_gb: int = setting("Disk of each worker.", DISK_GB, default=50)
    subnetwork: str = ""
    service_account: str = ""
    pause_seconds: float = 10.0
    """Interval of the status lines."""

    def __post_init__(self) -> None:
        """Refuse values that Dataflow would otherwise refuse only after the images were listed.

        Raises:
            UserError: A value is wrong.
        """
        check_all(self, "dataflow_")
        check_texts(vars(self))
        place = re.search(r"regions/([^/]+)", self.subnetwork)
        if place and place[1] != self.region:
            raise UserError(f"{_show('subnetwork')} is in {place[1]}; expected one in the pipeline's {self.region}")

    @property
    def job_name(self) -> str:
        """The name of the dataset's job. Dataflow allows one active job of a name per project and region."""
        return f"prepare-{hashlib.sha256(self.folder.encode()).hexdigest()[:32]}"

    @property
    def staging(self) -> str:
        """Folder of the files that Beam stages; it is beside the work items and removed with them."""
        return f"{self.folder}/parts/work/staged"

    def arguments(self) -> list[str]:
        """Return the options of Beam's pipeline."""
        given = {
            "subnetwork": self.subnetwork,
            "service_account_email": self.service_account,
        }
        return [
            f"--project={self.project}",
            f"--region={self.region}",
            f"--job_name={self.job_name}",
            f"--temp_location={self.staging}",
            f"--staging_location={self.staging}",
            f"--sdk_container_image={self.image}",
            # The image contains Beam and this project, so nothing is installed on a worker.
            "--sdk_location=container",
            f"--worker_machine_type={self.machine_type}",
            f"--max_num_workers={self.max_workers}",
            f"--disk_size_gb={self.disk_size_gb}",
            "--no_use_public_ips",
            "--labels=created-by=image-training",
            f"--dataflow_service_options=max_workflow_runtime_walltime_seconds={_LONGEST_SECONDS}",
            *(f"--{name}={value}" for name, value in given.items() if value),
        ]


def check_texts(given: Mapping[str, Any]) -> None:
    """Refuse a wrong text among the given settings.

    Raises:
        UserError: A value is wrong.
    """
    for name in _PATTERNS.keys() & given.keys():
        pattern, expected = _PATTERNS[name]
        if not re.fullmatch(pattern, str(given[name])):
            raise UserError(f"{_show(name)} is {given[name]!r}; expected {expected}")


def _show(name: str) -> str:
    return {"folder": "pipeline_root"}.get(name, name) if name in _OF_THE_RUN else f"dataflow_{name}"

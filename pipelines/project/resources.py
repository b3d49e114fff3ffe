"""The resources of the pipeline in a project: their names, the mark of `cloud.py up`, and the commands for each."""

from dataclasses import dataclass
from typing import Any

from pipelines.project.gcloud import AccessDenied, CloudError, Gcloud, field

_KEY, _VALUE = "created-by", "image-training-cloud-py"
_LABEL = f"{_KEY}={_VALUE}"
"""The mark: a label of bucket and repository, and a part of the description of the service account."""
_DESCRIPTION = f"Runs the image training pipeline ({_LABEL})"

Command = tuple[str, ...]


class ForeignBucket(CloudError):
    """The bucket of this name is not the project's."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of the resources in a project."""

    project: str
    region: str
    name: str
    """Name of the repository and of the service account; the bucket is `<project>-<name>`."""

    @property
    def bucket(self) -> str:
        """URL of the bucket of the pipeline root."""
        return f"gs://{self.project}-{self.name}"

    @property
    def repository(self) -> str:
        """Address of the Artifact Registry repository."""
        return f"{self.region}-docker.pkg.dev/{self.project}/{self.name}"

    @property
    def account(self) -> str:
        """E-mail address of the service account of the steps."""
        return f"{self.name}@{self.project}.iam.gserviceaccount.com"

    @property
    def in_project(self) -> str:
        """Flag of commands for one project."""
        return f"--project={self.project}"

    @property
    def in_region(self) -> tuple[str, str]:
        """Flags of commands for one region of the project."""
        return f"--location={self.region}", self.in_project


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A bucket, a repository or a service account, and its commands."""

    title: str
    describe: Command
    create: tuple[Command, ...]
    """The last command marks it."""
    adopt: Command
    """Command that marks an existing resource."""
    remove: Command

    def find(self, gcloud: Gcloud) -> dict[str, Any] | None:
        """Return gcloud's description of it; None if it does not exist.

        Raises:
            CloudError: It cannot be read.
        """
        return gcloud.read(*self.describe)


def is_marked(found: dict[str, Any] | None) -> bool:
    """Return whether a resource exists and has the mark of `cloud.py up`."""
    if found is None:
        return False
    labels, description = found.get("labels"), found.get("description")
    labelled = isinstance(labels, dict) and labels.get(_KEY) == _VALUE
    return labelled or (isinstance(description, str) and _LABEL in description)


def bucket(names: Names) -> Resource:
    """Return the bucket of the pipeline root."""
    group = ("gcloud", "storage", "buckets")
    flags = (f"--location={names.region}", "--uniform-bucket-level-access", "--public-access-prevention")
    # `buckets create` has no flag for labels.
    mark = (*group, "update", names.bucket, f"--update-labels={_LABEL}")
    return Resource(
        title=f"bucket {names.bucket}",
        # Only --raw shows the project that a bucket is in.
        describe=(*group, "describe", names.bucket, "--raw"),
        create=((*group, "create", names.bucket, names.in_project, *flags), mark),
        adopt=mark,
        remove=("gcloud", "storage", "rm", "--recursive", names.bucket),
    )


def repository(names: Names) -> Resource:
    """Return the repository of the container image."""
    group = ("gcloud", "artifacts", "repositories")
    create = (*group, "create", names.name, "--repository-format=docker", f"--labels={_LABEL}", *names.in_region)
    return Resource(
        title=f"repository {names.repository}",
        describe=(*group, "describe", names.name, *names.in_region),
        create=(create,),
        adopt=(*group, "update", names.name, f"--update-labels={_LABEL}", *names.in_region),
        remove=(*group, "delete", names.name, *names.in_region, "--quiet"),
    )


def account(names: Names) -> Resource:
    """Return the service account of the steps."""
    group = ("gcloud", "iam", "service-accounts")
    description = f"--description={_DESCRIPTION}"
    return Resource(
        title=f"service account {names.account}",
        describe=(*group, "describe", names.account, names.in_project),
        create=((*group, "create", names.name, description, names.in_project),),
        adopt=(*group, "update", names.account, description, names.in_project),
        remove=(*group, "delete", names.account, names.in_project, "--quiet"),
    )


def find_bucket(gcloud: Gcloud, names: Names) -> dict[str, Any] | None:
    """Return gcloud's description of the bucket; None if no project has a bucket of this name.

    Raises:
        ForeignBucket: The bucket is not in the project, or the user may not read it.
        CloudError: It cannot be read for another reason.
    """
    project = gcloud.read("gcloud", "projects", "describe", names.project)
    try:
        found = bucket(names).find(gcloud)
    except AccessDenied as error:
        raise ForeignBucket(f"{names.bucket} is in another project, or you may not read it: {error}") from None
    # Bucket names are global, so the name does not prove the project.
    number = field(project, "projectNumber", names.project) if found is not None else ""
    if found is not None and field(found, "projectNumber", names.bucket) != number:
        raise ForeignBucket(f"{names.bucket} is in another project, not in {names.project}")
    return found

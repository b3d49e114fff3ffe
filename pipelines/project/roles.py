"""The roles of the pipeline's service account, and the commands that add and remove them."""

from dataclasses import dataclass

from pipelines.project.gcloud import Gcloud
from pipelines.project.resources import Command, Names


@dataclass(frozen=True, kw_only=True)
class Grant:
    """Roles of the service account on one resource."""

    group: Command
    """gcloud's command group, e.g. `storage buckets`."""
    resource: str
    roles: tuple[str, ...]
    flags: Command = ()
    """Flags that identify the resource."""

    def change(self, verb: str, role: str, names: Names) -> Command:
        """Return the command that adds or removes a role.

        Args:
            verb: Either add or remove.
            role: One of the roles.
            names: The names of the resources.
        """
        words = ("gcloud", *self.group, f"{verb}-iam-policy-binding", self.resource, *self.flags)
        # Without --condition=None gcloud refuses to change a policy that has a binding with a condition.
        return (*words, f"--member=serviceAccount:{names.account}", f"--role={role}", "--condition=None")

    def held_roles(self, gcloud: Gcloud, names: Names) -> list[str]:
        """Return which of the roles the service account has without a condition.

        Raises:
            CloudError: The policy cannot be read.
        """
        policy = gcloud.read("gcloud", *self.group, "get-iam-policy", self.resource, *self.flags) or {}
        bindings = [each for each in policy.get("bindings") or () if isinstance(each, dict) and "condition" not in each]
        member = f"serviceAccount:{names.account}"
        found = {each.get("role") for each in bindings if member in (each.get("members") or ())}
        return [role for role in self.roles if role in found]


def on_project(names: Names) -> Grant:
    """Return the roles on the project: starting the training job, and writing logs."""
    roles = ("roles/aiplatform.user", "roles/logging.logWriter")
    return Grant(group=("projects",), resource=names.project, roles=roles)


def on_bucket(names: Names) -> Grant:
    """Return the roles on the bucket: reading and writing objects."""
    return Grant(group=("storage", "buckets"), resource=names.bucket, roles=("roles/storage.objectUser",))


def on_repository(names: Names) -> Grant:
    """Return the roles on the repository: pulling the container image."""
    group = ("artifacts", "repositories")
    return Grant(group=group, resource=names.name, roles=("roles/artifactregistry.reader",), flags=names.in_region)


def on_account(names: Names) -> Grant:
    """Return the roles on the account itself: the pipeline starts the training job as the same account."""
    roles, flags = ("roles/iam.serviceAccountUser",), (names.in_project,)
    return Grant(group=("iam", "service-accounts"), resource=names.account, roles=roles, flags=flags)


def on_project_for_dataflow(names: Names) -> Grant:
    """Return the roles on the project for Dataflow: to start and cancel jobs, and to run their workers."""
    return Grant(group=("projects",), resource=names.project, roles=("roles/dataflow.admin", "roles/dataflow.worker"))

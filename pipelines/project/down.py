"""`python cloud.py down`: lists the resources marked by `up`, asks, and removes them; keeps everything else."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipelines.project import roles
from pipelines.project.gcloud import CloudError, Gcloud
from pipelines.project.resources import (
    Command,
    ForeignBucket,
    Names,
    Resource,
    account,
    bucket,
    find_bucket,
    is_marked,
    repository,
)


@dataclass(frozen=True, kw_only=True)
class _Removal:
    title: str
    command: Command


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What `down` removes, in this order, and what it keeps."""

    removals: list[_Removal] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """One line each, with the reason."""

    def add(self, resource: Resource, found: dict[str, Any] | None, contents: str = "") -> None:
        """List a resource for removal if it exists and is marked."""
        if found is None:
            self.kept.append(f"{resource.title} does not exist")
        elif not is_marked(found):
            adopt = f"if an earlier `up` created it, mark it: {shlex.join(resource.adopt)}"
            self.kept.append(f"{resource.title} is kept, since `cloud.py up` did not mark it; {adopt}")
        else:
            self.removals.append(_Removal(title=f"{resource.title}{contents}", command=resource.remove))

    def lines(self, names: Names) -> Iterator[str]:
        """Yield the lines that the user reads before the question."""
        yield f"To remove from {names.project}:" if self.removals else f"Nothing to remove from {names.project}."
        yield from (f"  {removal.title}" for removal in self.removals)
        yield from self.kept


def down(gcloud: Gcloud, names: Names, *, with_bucket: bool, confirm: Callable[[str], bool]) -> None:
    """Remove what `up` created; the bucket, with its data and checkpoints, only with `with_bucket`.

    Args:
        gcloud: Runs the commands.
        names: The names of the resources.
        with_bucket: Whether to remove the bucket too.
        confirm: Asks the user a question; not called in a dry run.

    Raises:
        CloudError: The user did not confirm, or a command failed. The message states what was removed.
    """
    plan = _plan(gcloud, names, with_bucket=with_bucket)
    print(*plan.lines(names), sep="\n", flush=True)
    count = len(plan.removals)
    if count and not gcloud.dry_run and not confirm(f"Remove these {count}, for good? Type yes to confirm: "):
        raise CloudError("not confirmed; nothing was removed")
    for number, removal in enumerate(plan.removals):
        try:
            gcloud.change(*removal.command)
        except CloudError as error:
            left = f"{number} of {count} were removed; run the command again to remove the others"
            raise CloudError(f"cannot remove {removal.title}: {error}; {left}") from None


def _plan(gcloud: Gcloud, names: Names, *, with_bucket: bool) -> _Plan:
    plan = _Plan()
    its_account, its_repository = account(names).find(gcloud), repository(names).find(gcloud)
    its_bucket, reason = _bucket(gcloud, names)
    if is_marked(its_account):
        # A role disappears with its resource, so only roles on resources that stay are removed.
        staying = [roles.on_project(names), roles.on_project_for_dataflow(names)]
        if its_bucket is not None and not (with_bucket and is_marked(its_bucket)):
            staying.append(roles.on_bucket(names))
        if its_repository is not None and not is_marked(its_repository):
            staying.append(roles.on_repository(names))
        plan.removals.extend(removal for grant in staying for removal in _roles(gcloud, names, grant))
    plan.add(account(names), its_account)
    plan.add(repository(names), its_repository, " with its container images")
    if reason:
        plan.kept.append(f"{reason}; it is kept")
    elif with_bucket or not is_marked(its_bucket):
        plan.add(bucket(names), its_bucket, " with everything in it")
    else:
        plan.kept.append(f"{names.bucket} is kept; --with-bucket removes it and its contents")
    return plan


def _bucket(gcloud: Gcloud, names: Names) -> tuple[dict[str, Any] | None, str]:
    """Return gcloud's description of the bucket, or why it is not the project's."""
    try:
        return find_bucket(gcloud, names), ""
    except ForeignBucket as error:
        return None, str(error)


def _roles(gcloud: Gcloud, names: Names, grant: roles.Grant) -> Iterator[_Removal]:
    for role in grant.held(gcloud, names):
        title = f"role {role} of {names.account} on {grant.resource}"
        yield _Removal(title=title, command=grant.change("remove", role, names))

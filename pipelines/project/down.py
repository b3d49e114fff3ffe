"""`python cloud.py down`: lists the resources marked by `up`, asks, and removes them; keeps everything else."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from localvertex._base.userinput.errors import UserError
from pipelines.project import roles
from pipelines.project.gcloud import CloudError, Gcloud, field as text_field
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

_REPOSITORY = re.compile(r"projects/[^/]+/locations/([^/]+)/repositories/([^/]+)")


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """Resources that `down` removes, in this order, and those that it keeps."""

    removals: list[tuple[str, Command]] = field(default_factory=list)
    """Titles and commands."""
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
            self.removals.append((f"{resource.title}{contents}", resource.remove))

    def lines(self, names: Names) -> Iterator[str]:
        """Yield the lines that the user reads before the question."""
        yield f"To remove from {names.project}:" if self.removals else f"Nothing to remove from {names.project}."
        yield from (f"  {title}" for title, _ in self.removals)
        yield from self.kept


def down(gcloud: Gcloud, names: Names, *, with_bucket: bool, confirm: Callable[[str], bool]) -> None:
    """Remove the resources that `up` created; the bucket, with its data and checkpoints, only with `with_bucket`.

    Args:
        gcloud: Runs the commands.
        names: The names of the resources.
        with_bucket: Whether to remove the bucket too.
        confirm: Asks the user a question; not called in a dry run.

    Raises:
        UserError: `up` left nothing in this region, and another region uses what would be removed.
        CloudError: The user did not confirm, or a command failed. The message states what was removed.
    """
    plan = _plan(gcloud, names, with_bucket=with_bucket)
    print(*plan.lines(names), sep="\n", flush=True)
    count = len(plan.removals)
    if count and not gcloud.dry_run and not confirm(f"Remove these {count}, for good? Type yes to confirm: "):
        raise CloudError("not confirmed; nothing was removed")
    for number, (title, command) in enumerate(plan.removals):
        try:
            gcloud.change(*command)
        except CloudError as error:
            left = f"{number} of {count} were removed; run the command again to remove the others"
            raise CloudError(f"cannot remove {title}: {error}; {left}") from None


def _plan(gcloud: Gcloud, names: Names, *, with_bucket: bool) -> _Plan:
    plan = _Plan()
    its_account, its_repository = account(names).find(gcloud), repository(names).find(gcloud)
    its_bucket, reason = _bucket(gcloud, names)
    bucket_region = names.region if its_bucket is None else text_field(its_bucket, "location", names.bucket).lower()
    other = _other_region(gcloud, names, its_bucket, bucket_region)
    has_own_bucket = is_marked(its_bucket) and bucket_region == names.region
    if other and not is_marked(its_repository) and not has_own_bucket:
        text = f"and region {other} uses {names.account} and its roles; to remove the resources of {other}"
        raise UserError(f"`up` created nothing in {names.region}, {text}: {_command(names, other, with_bucket)}")
    if other:
        last = f"to remove them last: {_command(names, other, with_bucket)}"
        plan.kept.append(f"{account(names).title} and its roles are kept, since region {other} uses them; {last}")
    else:
        if is_marked(its_account):
            # A role disappears with its resource, so only roles on resources that stay are removed.
            stays = its_bucket is not None and not (with_bucket and has_own_bucket)
            plan.removals.extend(_roles(gcloud, names, its_repository, bucket_stays=stays))
        plan.add(account(names), its_account)
    plan.add(repository(names), its_repository, " with its container images")
    if reason:
        plan.kept.append(f"{reason}; it is kept")
    elif is_marked(its_bucket) and bucket_region != names.region:
        there = f"to remove it there: {_command(names, bucket_region, with_bucket=True)}"
        plan.kept.append(f"{names.bucket} is kept, since it is in region {bucket_region}; {there}")
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


def _other_region(gcloud: Gcloud, names: Names, its_bucket: dict[str, Any] | None, bucket_region: str) -> str:
    """Return another region whose bucket or repository of this name uses the account; empty if there is none.

    Raises:
        CloudError: The repositories of all regions cannot be listed.
    """
    if bucket_region != names.region and (is_marked(its_bucket) or roles.on_bucket(names).held_roles(gcloud, names)):
        return bucket_region
    for each in gcloud.read_list("gcloud", "artifacts", "repositories", "list", "--location=all", names.in_project):
        name = text_field(each, "name", "a repository")
        found = _REPOSITORY.fullmatch(name)
        if found is None:
            raise CloudError(f"gcloud shows repository {name!r}; expected projects/PROJECT/locations/REGION/...")
        region = found[1]
        if found[2] == names.name and region != names.region:
            there = replace(names, region=region)
            if is_marked(each) or roles.on_repository(there).held_roles(gcloud, there):
                return region
    return ""


def _command(names: Names, region: str, with_bucket: bool) -> str:
    words = ("python", "cloud.py", "down", names.in_project, f"--region={region}", f"--name={names.name}")
    return shlex.join((*words, "--with-bucket") if with_bucket else words)


def _roles(
    gcloud: Gcloud, names: Names, its_repository: dict[str, Any] | None, *, bucket_stays: bool
) -> Iterator[tuple[str, Command]]:
    staying = [roles.on_project(names), roles.on_project_for_dataflow(names)]
    if bucket_stays:
        staying.append(roles.on_bucket(names))
    if its_repository is not None and not is_marked(its_repository):
        staying.append(roles.on_repository(names))
    for grant in staying:
        for role in grant.held_roles(gcloud, names):
            yield f"role {role} of {names.account} on {grant.resource}", grant.change("remove", role, names)

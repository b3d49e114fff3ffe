"""`python cloud.py up | down`: create or remove, with gcloud, the resources that the pipeline needs in a project.

Each step first checks what exists and changes only what is missing, so the command can be repeated.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from userinput import cli

_ROOT = pathlib.Path(__file__).resolve().parent
_APIS = ("aiplatform", "artifactregistry", "cloudbuild", "iam", "storage")
_IMAGE_NAME = "image-training-python"
_IDENTIFIER = r"[a-z][a-z0-9-]{4,28}[a-z0-9]"
"""A project id, or the name of a service account."""
_UNKNOWN_DIGEST = "sha256:" + "0" * 64
"""The digest that a dry run prints, because only a build has a real one."""


class CloudError(Exception):
    """A command failed, or an existing resource is not as expected; the message is one line."""


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
class Grant:
    """Roles of the service account on one resource."""

    group: tuple[str, ...]
    """gcloud's command group, e.g. `storage buckets`."""
    resource: str
    roles: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Flags that identify the resource."""
    condition: tuple[str, ...] = ()
    """Without `--condition=None` gcloud asks if the policy of a project already has conditions."""


def _grants(names: Names) -> tuple[Grant, ...]:
    """Return the roles that the steps need (docs/cloud.md); the first grant is the project's."""
    return (
        Grant(
            group=("projects",),
            resource=names.project,
            roles=("roles/aiplatform.user", "roles/logging.logWriter"),
            condition=("--condition=None",),
        ),
        Grant(group=("storage", "buckets"), resource=names.bucket, roles=("roles/storage.objectUser",)),
        Grant(
            group=("artifacts", "repositories"),
            resource=names.name,
            roles=("roles/artifactregistry.reader",),
            flags=names.in_region,
        ),
        # The pipeline starts the training job as the same account.
        Grant(
            group=("iam", "service-accounts"),
            resource=names.account,
            roles=("roles/iam.serviceAccountUser",),
            flags=(names.in_project,),
        ),
    )


class Shell:
    """Runs commands, or prints those that would change something."""

    def __init__(self, *, dry_run: bool) -> None:
        self.dry_run = dry_run

    def read(self, *words: str) -> Any:
        """Return the JSON output of a command that changes nothing; None if the resource does not exist.

        Raises:
            CloudError: The command failed for another reason.
        """
        if self.dry_run:
            return None
        done = self._run([*words, "--format=json"], stdout=subprocess.PIPE)
        if done.returncode == 0:
            return json.loads(done.stdout or "null")
        if any(text in done.stderr for text in ("NOT_FOUND", "not found", "does not exist")):
            return None
        raise CloudError(_failure(words, done.stderr))

    def change(self, *words: str) -> None:
        """Print a command and, except in a dry run, run it.

        Raises:
            CloudError: The command failed.
        """
        print(shlex.join(words), flush=True)
        if not self.dry_run and (done := self._run(list(words))).returncode:
            raise CloudError(_failure(words, done.stderr))

    def _run(self, words: list[str], stdout: int | None = None) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=_ROOT, check=False)
        except FileNotFoundError:
            raise CloudError(f"{words[0]} is not installed; see https://cloud.google.com/sdk/docs/install") from None


def _failure(words: Sequence[str], stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()] or ["the command gave no reason"]
    return f"{' '.join(lines)[:600]} (from: {shlex.join(words)})"


def up(shell: Shell, names: Names) -> None:
    """Create what is missing, build the container image, and compile the pipeline for it."""
    _enable_apis(shell, names)
    _create_bucket(shell, names)
    repository = ("gcloud", "artifacts", "repositories")
    if shell.read(*repository, "describe", names.name, *names.in_region) is None:
        shell.change(*repository, "create", names.name, "--repository-format=docker", *names.in_region)
    account = ("gcloud", "iam", "service-accounts")
    if shell.read(*account, "describe", names.account, names.in_project) is None:
        shell.change(*account, "create", names.name, names.in_project)
    for grant in _grants(names):
        _give_roles(shell, names, grant)
    image = _build_image(shell, names)
    shell.change(sys.executable, "compile.py", "--image", image, "--region", names.region)
    flags = f"--project={names.project} --region={names.region} --pipeline-root={names.bucket}/pipelines"
    print(f"Ready. Next:\n  python -m pipelines submit {flags} --service-account={names.account}")


def _enable_apis(shell: Shell, names: Names) -> None:
    listed = shell.read("gcloud", "services", "list", "--enabled", names.in_project) or []
    enabled = {service["config"]["name"] for service in listed}
    missing = [name for api in _APIS if (name := f"{api}.googleapis.com") not in enabled]
    if missing:
        shell.change("gcloud", "services", "enable", *missing, names.in_project)


def _create_bucket(shell: Shell, names: Names) -> None:
    buckets = ("gcloud", "storage", "buckets")
    found = shell.read(*buckets, "describe", names.bucket)
    if found is None:
        flags = (f"--location={names.region}", "--uniform-bucket-level-access", "--public-access-prevention")
        shell.change(*buckets, "create", names.bucket, names.in_project, *flags)
    elif found["location"].lower() != names.region:
        # Every read of a job would cross regions.
        raise CloudError(
            f"{names.bucket} is in {found['location']}, not in {names.region}; give another --name or --region"
        )


def _roles(shell: Shell, names: Names, grant: Grant) -> set[str]:
    """Return the roles that the service account has on the resource."""
    policy = shell.read("gcloud", *grant.group, "get-iam-policy", grant.resource, *grant.flags) or {}
    member = f"serviceAccount:{names.account}"
    return {binding["role"] for binding in policy.get("bindings", []) if member in binding["members"]}


def _give_roles(shell: Shell, names: Names, grant: Grant) -> None:
    held = _roles(shell, names, grant)
    words = ("gcloud", *grant.group, "add-iam-policy-binding", grant.resource, *grant.flags)
    for role in grant.roles:
        if role not in held:
            shell.change(*words, f"--member=serviceAccount:{names.account}", f"--role={role}", *grant.condition)


def _build_image(shell: Shell, names: Names) -> str:
    """Build, test and push the container image if it is missing, and return its name with the digest."""
    image = f"{names.repository}/{_IMAGE_NAME}"
    tagged = f"{image}:{_fingerprint()}"
    describe = ("gcloud", "artifacts", "docker", "images", "describe", tagged)
    found = shell.read(*describe)
    if found is None:
        flags = ("--config=cloudbuild.yaml", f"--substitutions=_IMAGE={tagged}", names.in_project)
        shell.change("gcloud", "builds", "submit", ".", *flags)
        found = shell.read(*describe)
    if found is None and not shell.dry_run:
        raise CloudError(f"the build did not push {tagged}; see Cloud Build > History in the console")
    return f"{image}@{found['image_summary']['digest'] if found else _UNKNOWN_DIGEST}"


def image_files() -> tuple[str, ...]:
    """Return the files and folders of the container image, and the files that decide how it is built."""
    lines = (_ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = (line.removeprefix("!") for line in lines if line.startswith("!"))
    return ("Dockerfile", ".dockerignore", "cloudbuild.yaml", *copied)


def _fingerprint() -> str:
    """Return 32 hexadecimal digits, the tag of the image, so that the same image is not built twice."""
    digest = hashlib.sha256()
    for path in sorted(each for name in image_files() for each in [_ROOT / name, *(_ROOT / name).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(_ROOT).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:32]


def down(shell: Shell, names: Names, *, with_bucket: bool) -> None:
    """Remove what `up` created; the bucket, with its data and checkpoints, only with `with_bucket`."""

    def exists(*words: str) -> bool:
        return shell.dry_run or bool(shell.read("gcloud", *words))

    project = _grants(names)[0]
    held = set(project.roles) if shell.dry_run else _roles(shell, names, project)
    member = f"--member=serviceAccount:{names.account}"
    for role in project.roles:
        if role in held:
            words = ("remove-iam-policy-binding", names.project, member, f"--role={role}", *project.condition)
            shell.change("gcloud", "projects", *words)
    if exists("iam", "service-accounts", "describe", names.account, names.in_project):
        shell.change("gcloud", "iam", "service-accounts", "delete", names.account, names.in_project, "--quiet")
    if exists("artifacts", "repositories", "describe", names.name, *names.in_region):
        shell.change("gcloud", "artifacts", "repositories", "delete", names.name, *names.in_region, "--quiet")
    if not with_bucket:
        print(f"{names.bucket} is kept; --with-bucket removes it and its contents")
    elif exists("storage", "buckets", "describe", names.bucket):
        shell.change("gcloud", "storage", "rm", "--recursive", names.bucket)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = cli.Parser(
        "python cloud.py",
        description="Create or remove the resources that the pipeline needs in a Google Cloud project.",
    )
    parser.add_argument("command", choices=("up", "down"), help="up creates what is missing; down removes it")
    parser.add_argument("--project", required=True, help="project id")
    parser.add_argument("--region", default="us-central1", help="region of bucket, repository and jobs (%(default)s)")
    parser.add_argument("--name", default="image-training", help="name of account and repository (%(default)s)")
    parser.add_argument("--with-bucket", action="store_true", help="down: also remove the bucket and its contents")
    parser.add_argument("--dry-run", action="store_true", help="print the commands for an empty project, run nothing")
    options = parser.parse_args(argv)
    # Google is strictest about the name of the account, which is created last: check everything first.
    for flag, value, pattern, expected in (
        ("--project", options.project, _IDENTIFIER, "a project id such as my-project-123"),
        ("--region", options.region, r"[a-z]+-[a-z]+[0-9]+", "a region such as us-central1"),
        ("--name", options.name, _IDENTIFIER, "6 to 30 characters a-z, 0-9 and -, a letter first"),
    ):
        if not re.fullmatch(pattern, value):
            parser.error(f"{flag} is {value!r}; expected {expected}")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command with the arguments of this process, or with `argv`.

    Returns:
        The exit code: 0 success, 1 a command failed, 2 invalid input, 130 stopped.
    """
    options = _parse(argv)
    return cli.run(lambda: _run(options), failures=(CloudError,))


def _run(options: argparse.Namespace) -> int:
    shell = Shell(dry_run=options.dry_run)
    names = Names(project=options.project, region=options.region, name=options.name)
    if options.command == "up":
        up(shell, names)
    else:
        down(shell, names, with_bucket=options.with_bucket)
    return cli.DONE


if __name__ == "__main__":
    sys.exit(main())

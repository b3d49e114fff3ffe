"""`python cloud.py up | down`: what a project needs for the pipeline, made with gcloud, or taken away again.

Every step looks first and changes only what is missing, so it can be run again; `--dry-run` prints the commands.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from userinput import cli

HERE = pathlib.Path(__file__).resolve().parent
APIS = ("aiplatform", "artifactregistry", "cloudbuild", "iam", "storage")
PROJECT_ROLES = ("roles/aiplatform.user", "roles/logging.logWriter")
IMAGE_NAME = "image-training-python"
IMAGE_FILES = (
    "Dockerfile", ".dockerignore", "cloudbuild.yaml", "pyproject.toml", "README.md", "LICENSE", "requirements/gpu.txt",
    "accelerators", "compiled", "components", "localvertex", "pipelines", "trainer", "training_job", "userinput",
)  # fmt: skip
"""What the image is made of: its tag is their fingerprint, so that the same image is not built twice."""
IDENTIFIER = r"[a-z][a-z0-9-]{4,28}[a-z0-9]"
"""What Google takes as id of a project and as name of a service account."""
UNKNOWN_DIGEST = "sha256:" + "0" * 64
"""Stands in a dry run for the digest that only a build tells."""


class Stopped(Exception):
    """A command failed, or what is there is not what is wanted; the message is one line."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """What things are called."""

    project: str
    region: str
    name: str
    """Beginning of all names; the bucket's is `<project>-<name>`."""

    @property
    def bucket(self) -> str:
        """Bucket of the pipeline root."""
        return f"gs://{self.project}-{self.name}"

    @property
    def repository(self) -> str:
        """Address of the Artifact Registry repository."""
        return f"{self.region}-docker.pkg.dev/{self.project}/{self.name}"

    @property
    def account(self) -> str:
        """E-mail of the service account that the steps run as."""
        return f"{self.name}@{self.project}.iam.gserviceaccount.com"


class Shell:
    """Runs commands, or only prints those that would change something."""

    def __init__(self, *, dry_run: bool) -> None:
        self.dry_run = dry_run

    def look(self, *words: str) -> Any:
        """Return what a command that changes nothing prints as JSON; None where the thing does not exist.

        Raises:
            Stopped: It failed for another reason.
        """
        if self.dry_run:
            return None
        done = self._run([*words, "--format=json"], stdout=subprocess.PIPE)
        if done.returncode == 0:
            return json.loads(done.stdout or "null")
        if any(text in done.stderr for text in ("NOT_FOUND", "not found", "does not exist")):
            return None
        raise Stopped(_failure(words, done.stderr))

    def change(self, *words: str) -> None:
        """Print a command and, unless it is a dry run, run it.

        Raises:
            Stopped: It failed.
        """
        print(shlex.join(words), flush=True)
        if not self.dry_run and (done := self._run(list(words))).returncode:
            raise Stopped(_failure(words, done.stderr))

    def _run(self, words: list[str], stdout: int | None = None) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=HERE, check=False)
        except FileNotFoundError:
            raise Stopped(f"{words[0]} is not installed; see https://cloud.google.com/sdk/docs/install") from None


def _failure(words: Sequence[str], stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()] or ["it gave no reason"]
    return f"{' '.join(lines)[:600]} (from: {shlex.join(words)})"


def up(shell: Shell, names: Names) -> None:
    """Make what is missing, build the image, and compile the pipeline for it."""
    enable_apis(shell, names)
    make_bucket(shell, names)
    make_repository(shell, names)
    make_account(shell, names)
    image = build_image(shell, names)
    shell.change(sys.executable, "compile.py", "--image", image, "--region", names.region)
    where = f"--project={names.project} --region={names.region} --pipeline-root={names.bucket}/pipelines"
    print(f"Ready. Next:\n  python -m pipelines submit {where} --service-account={names.account}")


def enable_apis(shell: Shell, names: Names) -> None:
    """Enable the APIs that are not."""
    on = shell.look("gcloud", "services", "list", "--enabled", f"--project={names.project}") or []
    enabled = {service["config"]["name"] for service in on}
    missing = [name for api in APIS if (name := f"{api}.googleapis.com") not in enabled]
    if missing:
        shell.change("gcloud", "services", "enable", *missing, f"--project={names.project}")


def make_bucket(shell: Shell, names: Names) -> None:
    """Make the bucket in the region of the jobs.

    Raises:
        Stopped: It is somewhere else: every read would cross regions.
    """
    found = shell.look("gcloud", "storage", "buckets", "describe", names.bucket)
    if found is None:
        shell.change(
            "gcloud", "storage", "buckets", "create", names.bucket, f"--project={names.project}",
            f"--location={names.region}", "--uniform-bucket-level-access", "--public-access-prevention",
        )  # fmt: skip
    elif found["location"].lower() != names.region:
        raise Stopped(
            f"{names.bucket} is in {found['location']}, not in {names.region}; give another --name or --region"
        )


def make_repository(shell: Shell, names: Names) -> None:
    """Make the Docker repository."""
    place = (f"--location={names.region}", f"--project={names.project}")
    if shell.look("gcloud", "artifacts", "repositories", "describe", names.name, *place) is None:
        shell.change("gcloud", "artifacts", "repositories", "create", names.name, "--repository-format=docker", *place)


def make_account(shell: Shell, names: Names) -> None:
    """Make the service account and give it what the steps need and nothing more (docs/cloud.md)."""
    project = f"--project={names.project}"
    if shell.look("gcloud", "iam", "service-accounts", "describe", names.account, project) is None:
        shell.change("gcloud", "iam", "service-accounts", "create", names.name, project)
    for what, roles in grants(names):
        bindings = (shell.look("gcloud", *what[:-1], "get-iam-policy", *what[-1:], *_place(what, names)) or {}).get(
            "bindings", []
        )
        held = {binding["role"] for binding in bindings if f"serviceAccount:{names.account}" in binding["members"]}
        for role in roles:
            if role not in held:
                shell.change(
                    "gcloud", *what[:-1], "add-iam-policy-binding", *what[-1:], *_place(what, names),
                    f"--member=serviceAccount:{names.account}", f"--role={role}", *_unconditional(what),
                )  # fmt: skip


def grants(names: Names) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield (gcloud's words for a resource, roles on it) for the service account."""
    yield ("projects", names.project), PROJECT_ROLES
    yield ("storage", "buckets", names.bucket), ("roles/storage.objectUser",)
    yield ("artifacts", "repositories", names.name), ("roles/artifactregistry.reader",)
    # The pipeline starts the training job as the same account.
    yield ("iam", "service-accounts", names.account), ("roles/iam.serviceAccountUser",)


def _place(what: tuple[str, ...], names: Names) -> tuple[str, ...]:
    if what[0] == "artifacts":
        return f"--location={names.region}", f"--project={names.project}"
    return (f"--project={names.project}",) if what[0] == "iam" else ()


def _unconditional(what: tuple[str, ...]) -> tuple[str, ...]:
    # Without it gcloud asks where a project's policy has conditions already.
    return ("--condition=None",) if what[0] == "projects" else ()


def build_image(shell: Shell, names: Names) -> str:
    """Build, test and push the image unless it is there; return its name with the digest."""
    image = f"{names.repository}/{IMAGE_NAME}"
    tagged = f"{image}:{fingerprint()}"
    look = ("gcloud", "artifacts", "docker", "images", "describe", tagged)
    found = shell.look(*look)
    if found is None:
        shell.change(
            "gcloud", "builds", "submit", ".", "--config=cloudbuild.yaml", f"--substitutions=_IMAGE={tagged}",
            f"--project={names.project}",
        )  # fmt: skip
        found = shell.look(*look)
    if found is None and not shell.dry_run:
        raise Stopped(f"the build ended, but {tagged} is not there; look at Cloud Build > History in the console")
    return f"{image}@{found['image_summary']['digest'] if found else UNKNOWN_DIGEST}"


def fingerprint() -> str:
    """Return 32 hexadecimal digits that change with any file of the image."""
    digest = hashlib.sha256()
    for path in sorted(each for name in IMAGE_FILES for each in [HERE / name, *(HERE / name).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(HERE).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:32]


def down(shell: Shell, names: Names, *, with_bucket: bool) -> None:
    """Remove what `up` made; the bucket, with data and checkpoints in it, only when that is asked for."""
    project, place = f"--project={names.project}", f"--location={names.region}"
    account = f"serviceAccount:{names.account}"
    policy = shell.look("gcloud", "projects", "get-iam-policy", names.project) or {}
    for role in PROJECT_ROLES:
        members = [member for each in policy.get("bindings", []) if each["role"] == role for member in each["members"]]
        if shell.dry_run or account in members:
            shell.change(
                "gcloud", "projects", "remove-iam-policy-binding", names.project, f"--member={account}",
                f"--role={role}", "--condition=None",
            )  # fmt: skip
    if shell.dry_run or shell.look("gcloud", "iam", "service-accounts", "describe", names.account, project):
        shell.change("gcloud", "iam", "service-accounts", "delete", names.account, project, "--quiet")
    if shell.dry_run or shell.look("gcloud", "artifacts", "repositories", "describe", names.name, place, project):
        shell.change("gcloud", "artifacts", "repositories", "delete", names.name, place, project, "--quiet")
    if not with_bucket:
        print(f"{names.bucket} is kept; --with-bucket removes it with everything in it")
    elif shell.dry_run or shell.look("gcloud", "storage", "buckets", "describe", names.bucket):
        shell.change("gcloud", "storage", "rm", "--recursive", names.bucket)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's values."""
    parser = cli.Parser("python cloud.py", description="Make, or remove, what a project needs for the pipeline.")
    parser.add_argument("what", choices=("up", "down"), help="up makes what is missing; down removes it again")
    parser.add_argument("--project", required=True, help="project id")
    parser.add_argument("--region", default="us-central1", help="region of bucket, image and jobs (%(default)s)")
    parser.add_argument("--name", default="image-training", help="name of account and repository (%(default)s)")
    parser.add_argument("--with-bucket", action="store_true", help="down: remove the bucket and all that is in it")
    parser.add_argument("--dry-run", action="store_true", help="print the commands for an empty project, run nothing")
    flags = parser.parse_args(argv)
    for flag, value, pattern, expected in (
        ("--project", flags.project, IDENTIFIER, "a project id such as my-project-123"),
        ("--region", flags.region, r"[a-z]+-[a-z]+[0-9]+", "a region such as us-central1"),
        ("--name", flags.name, IDENTIFIER, "6 to 30 characters a-z, 0-9 and -, a letter first"),
    ):
        # Before anything is made: the account's name is what Google is strictest about, and it comes last.
        if not re.fullmatch(pattern, value):
            parser.error(f"{flag} is {value!r}; expected {expected}")
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 done, 1 a command failed, 130 stopped."""
    flags = parse(argv)
    shell, names = Shell(dry_run=flags.dry_run), Names(project=flags.project, region=flags.region, name=flags.name)

    def change() -> int:
        if flags.what == "up":
            up(shell, names)
        else:
            down(shell, names, with_bucket=flags.with_bucket)
        return cli.DONE

    return cli.run(change, failures=(Stopped,))


if __name__ == "__main__":
    sys.exit(main())
